//! `zklock generate`: man pages and shell completions, from the definition of the command line.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Args, Command, ValueHint};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct GenerateOptions {
    /// Where man/ and completions/ go
    directory: PathBuf,
}

/// # Errors
/// The directory can't be written.
pub fn generate(options: &GenerateOptions, command: Command) -> Result<u8, Failure> {
    write(&options.directory, for_people(&command))
        .map_err(|error| Failure::new(format!("{}: {error}", options.directory.display())))?;
    Ok(0)
}

/// Without the commands that zklock runs itself by.
fn for_people(all: &Command) -> Command {
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let text = |text: Option<&StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    Command::new("zklock")
        .version(env!("CARGO_PKG_VERSION"))
        .about(text(all.get_about()))
        .after_help(text(all.get_after_help()))
        .args(all.get_arguments().cloned())
        .subcommands(shown)
        .mut_subcommand("run", |run| {
            run.mut_arg("command", |command| command.value_hint(ValueHint::CommandWithArguments))
        })
        .disable_help_subcommand(true)
}

fn write(directory: &Path, mut command: Command) -> io::Result<()> {
    let (man, completions) = (directory.join("man"), directory.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "zklock", &completions)?;
    }
    let options = options_with_values(&command);
    for (file, more) in [
        ("zklock.bash", for_commands_in_bash(&options)),
        ("zklock.fish", for_commands_in_fish(&options)),
    ] {
        let text = std::fs::read_to_string(completions.join(file))?;
        std::fs::write(completions.join(file), text + &more)?;
    }
    command.build();
    // A page for each command.
    for command in command.get_subcommands().chain([&command]) {
        std::fs::write(man.join(Man::new(command.clone()).get_filename()), page(command)?)?;
    }
    Ok(())
}

/// A man page, whose sections are those of the help.
fn page(command: &Command) -> io::Result<String> {
    let more = command.get_after_long_help().or(command.get_after_help());
    let more = more.map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    // Options that the short help leaves out would have no text.
    Man::new(command.clone().mut_args(|option| option.hide_short_help(false))).render(&mut page)?;
    let page = String::from_utf8_lossy(&page).into_owned();
    let (before, extra) = page.split_once(".SH EXTRA\n").unwrap_or((&page, ""));
    let version = &extra[extra.find(".SH ").unwrap_or(extra.len())..];
    let mut page = before.to_owned();
    for section in more.split("\n\n").filter(|section| !section.is_empty()) {
        let (heading, body) = section.split_once(':').unwrap_or(("Notes", section));
        let _ = writeln!(page, ".SH {}\n.nf", heading.to_uppercase());
        for line in body.lines().filter(|line| !line.is_empty()) {
            let line = line.strip_prefix("  ").unwrap_or(line);
            let _ = writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"));
        }
        page += ".fi\n";
    }
    Ok(page + version)
}

/// The options of `zklock run` that take a value.
fn options_with_values(all: &Command) -> Vec<String> {
    let run = all.get_subcommands().find(|command| command.get_name() == "run");
    let options = run.into_iter().flat_map(Command::get_arguments);
    let options = options.filter(|option| option.get_action().takes_values());
    let names = options.flat_map(|option| {
        let long = option.get_long_and_visible_aliases().unwrap_or_default();
        let short = option.get_short().map(|short| format!("-{short}"));
        long.into_iter().map(|long| format!("--{long}")).chain(short).collect::<Vec<_>>()
    });
    names.collect()
}

/// After its path, `zklock run` takes a command with arguments of its own.
fn for_commands_in_bash(options: &[String]) -> String {
    let names = options.join("|");
    format!(
        r#"
_zklock_with_commands() {{
    local at words=0 cur="${{COMP_WORDS[COMP_CWORD]}}"
    # 1 is run, 2 its path, 3 the command.
    for ((at = 1; at < COMP_CWORD && words < 3; at++)); do
        case "${{COMP_WORDS[at]}}" in
            {names}) ((at++)) ;;
            -*) ;;
            run) ((words++)) ;;
            *) ((words == 0)) || ((words++)) ;;
        esac
    done
    if ((words < 2)) || [[ $words == 2 && $cur == -* ]]; then
        _zklock "$@"
    elif ((words == 2)); then
        COMPREPLY=($(compgen -c -- "$cur"))
    else
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}}
complete -F _zklock_with_commands -o bashdefault -o default zklock
"#
    )
}

/// As for bash.
fn for_commands_in_fish(options: &[String]) -> String {
    let names = options.join(" ");
    format!(
        r#"
function __fish_zklock_command
    set -l tokens (commandline -opc)
    set -l words 0
    # 1 is run, 2 its path.
    while test $words -lt 2
        set -e tokens[1]
        set -q tokens[1]; or return 1
        switch $tokens[1]
            case {names}
                set -e tokens[1]
            case '-*'
            case '*'
                test $words -gt 0 -o $tokens[1] = run; and set words (math $words + 1)
        end
    end
    set -e tokens[1]
    test "$tokens[1]" = --; and set -e tokens[1]
    complete --do-complete=(string join ' ' -- (string escape -- $tokens) (commandline -ct))
end
complete -c zklock -n "__fish_zklock_using_subcommand run" -f -a "(__fish_zklock_command)"
"#
    )
}
