//! The command line.

use clap::{Parser, Subcommand};

use crate::generate::GenerateOptions;
use crate::hold::HoldOptions;
use crate::look::last::LastOptions;
use crate::look::ls::LsOptions;
use crate::look::watch::WatchOptions;
use crate::look::who::WhoOptions;
use crate::mend::ask::AskOptions;
use crate::mend::break_hold::BreakOptions;
use crate::mend::clean::CleanOptions;
use crate::mend::doctor::DoctorOptions;
use crate::run::options::RunOptions;
#[cfg(feature = "serve")]
use crate::serve::ServeOptions;
use crate::servers::Servers;
use crate::supervise::exec::ExecOptions;
use crate::supervise::supervisor::SuperviseOptions;
#[cfg(feature = "top")]
use crate::top::TopOptions;

/// Locks on Apache ZooKeeper, from the shell: run a command under a lock, see who holds what.
#[derive(Debug, Parser)]
#[command(name = "zklock", version, max_term_width = 100, after_help = examples())]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Each command has them, wherever they are given.
    #[command(flatten)]
    _servers: Servers,
}

const EXAMPLES: &str = "\
Examples:
  zklock run /locks/report -- make report        one run at a time in a cluster
  zklock run --no-wait /locks/sync -- rsync ...  skip it while another runs
  zklock ls /locks                               the locks and their holders
  zklock who /locks/report                       its holder and its waiters
  zklock top /locks                              the locks, live
  zklock doctor                                  check the servers";

/// Those of the commands that are built in.
fn examples() -> String {
    let is_built_in = |line: &&str| cfg!(feature = "top") || !line.contains("zklock top");
    EXAMPLES.lines().filter(is_built_in).collect::<Vec<_>>().join("\n")
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command under a lock, which it never outlives
    Run(Box<RunOptions>),
    /// Hold a lock until standard input ends or a signal comes
    Hold(HoldOptions),
    /// List the locks held below a path: holder, time, number of waiters
    Ls(LsOptions),
    /// Show the holder of a lock and its waiters, in order
    Who(WhoOptions),
    /// Print a line each time a lock changes hands
    Watch(WatchOptions),
    /// Show the last run of a `run --once-per` job: host, time, status
    Last(LastOptions),
    /// Show the locks below a path live, as `top` does
    #[cfg(feature = "top")]
    Top(TopOptions),
    /// Serve a web page of the locks below a path, and metrics for Prometheus
    #[cfg(feature = "serve")]
    Serve(ServeOptions),
    /// Ask the holder of a lock to release it, and wait until it has
    Ask(AskOptions),
    /// Take a lock from its holder, notifying it before another can hold it
    Break(BreakOptions),
    /// Find and delete claims that belong to no session
    Clean(CleanOptions),
    /// Check servers, versions, sessions and permissions
    Doctor(DoctorOptions),
    /// Write man pages and shell completions into a directory
    #[command(hide = true)]
    Generate(GenerateOptions),
    #[command(hide = true)]
    Supervise(SuperviseOptions),
    #[command(hide = true)]
    Become(ExecOptions),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    /// Man pages take over the headings. What is below them fits a narrow terminal, so nothing wraps it again.
    #[test]
    fn help_is_in_sections_and_wrapped_once() {
        let all = Args::command();
        let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
        for command in shown.chain([&all]) {
            let name = command.get_name();
            let more = command.get_after_long_help().or(command.get_after_help());
            let more = more.map(ToString::to_string).unwrap_or_default();
            let sections: &[&str] =
                if name == "zklock" { &["Examples"] } else { &["Exit status", "Examples"] };
            for section in sections {
                assert!(more.lines().any(|line| line.starts_with(section)), "{name}: {section}");
            }
            for line in more.lines().filter(|line| !line.is_empty()) {
                let is_heading = line.ends_with(':') && !line.starts_with(' ');
                assert!(is_heading || line.starts_with("  "), "{name}: {line}");
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    /// What a shell makes of a line that has no more than spaces and comments.
    #[cfg(all(feature = "serve", feature = "top"))]
    fn words(line: &str) -> Vec<&str> {
        let line = line.split(" # ").next().unwrap_or_default();
        let words = line.split_whitespace();
        words.skip_while(|word| !word.ends_with("zklock")).collect()
    }

    #[cfg(all(feature = "serve", feature = "top"))]
    #[test]
    fn each_example_in_the_documentation_is_a_command_line() {
        let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = package.ancestors().nth(2).unwrap();
        let documents =
            std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let documents = documents.chain([root.join("README.md")]);
        let documents = documents.filter(|path| path.extension().is_some_and(|end| end == "md"));
        let texts: Vec<String> =
            documents.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let blocks = texts.iter().flat_map(|text| text.split("\n```").skip(1).step_by(2));
        let starts = ["zklock ", "ExecStart=/usr/local/bin/zklock ", "0 2 * * * ", "*/5 * * * * "];
        let mut tried = 0;
        for line in blocks.flat_map(str::lines).map(str::trim) {
            if starts.iter().any(|start| line.starts_with(start)) && !line.contains("zklock = ") {
                let words: Vec<&str> =
                    words(line).into_iter().filter(|word| *word != "...").collect();
                Args::try_parse_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
                tried += 1;
            }
        }
        assert!(tried > 10, "{tried}");
    }
}
