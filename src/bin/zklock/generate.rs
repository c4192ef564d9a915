//! `zklock generate`: man pages and shell completions, from the definition of the command line.

use std::io;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Args, Command};
use clap_complete::{Shell, generate_to};

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
        .subcommands(shown)
        .disable_help_subcommand(true)
}

fn write(directory: &Path, mut command: Command) -> io::Result<()> {
    let (man, completions) = (directory.join("man"), directory.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "zklock", &completions)?;
    }
    // A page for each command.
    clap_mangen::generate_to(command, &man)
}
