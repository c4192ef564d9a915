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
use crate::serve::ServeOptions;
use crate::servers::Servers;
use crate::supervise::exec::ExecOptions;
use crate::supervise::supervisor::SuperviseOptions;
use crate::top::TopOptions;

/// Locks on Apache ZooKeeper, from the shell: run a command under a lock, see who holds what.
#[derive(Debug, Parser)]
#[command(name = "zklock", version, max_term_width = 100, after_help = EXAMPLES)]
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
  zklock run /locks/report -- make report           one at a time in the whole cluster
  zklock run --no-wait /locks/sync -- rsync ...     not at all while another is at it
  zklock ls /locks                                  who holds what
  zklock who /locks/report                          who holds it, who waits
  zklock top /locks                                 the same, live
  zklock doctor                                     are the servers well?";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Takes a lock, runs a command, releases the lock: the command never outlives it
    Run(Box<RunOptions>),
    /// Takes a lock, and holds it until standard input ends or a signal comes
    Hold(HoldOptions),
    /// Lists the locks below a path that somebody holds: who, for how long, and how many wait
    Ls(LsOptions),
    /// Shows who holds a lock and who waits for it, in their order
    Who(WhoOptions),
    /// Prints a line whenever a lock comes to be held by another
    Watch(WatchOptions),
    /// Shows who ran last with `run --once-per`, when, and how it ended
    Last(LastOptions),
    /// Shows the locks below a path, live: holders, queues, for how long
    Top(TopOptions),
    /// Serves a page with the locks below a path, and metrics for Prometheus
    Serve(ServeOptions),
    /// Asks the holder of a lock to give way, and waits until it has
    Ask(AskOptions),
    /// Takes a lock from its holder, who knows of it before another can have it
    Break(BreakOptions),
    /// Shows, and deletes, what nobody will ever remove: claims that belong to no session
    Clean(CleanOptions),
    /// Finds out whether locks can be relied on here: servers, versions, sessions, permissions
    Doctor(DoctorOptions),
    /// Writes man pages and shell completions into a directory
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
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let more = command.get_after_long_help().or(command.get_after_help());
            let more = more.map(ToString::to_string).unwrap_or_default();
            for section in ["Exit status", "Examples"] {
                assert!(more.lines().any(|line| line.starts_with(section)), "{name}: {section}");
            }
            if name == "run" {
                continue;
            }
            for line in more.lines().filter(|line| !line.is_empty()) {
                let is_heading = line.ends_with(':') && !line.starts_with(' ');
                assert!(is_heading || line.starts_with("  "), "{name}: {line}");
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    /// What a shell makes of a line that has no more than spaces and comments.
    fn words(line: &str) -> Vec<&str> {
        let line = line.split(" # ").next().unwrap_or_default();
        let words = line.split_whitespace();
        words.skip_while(|word| !word.ends_with("zklock")).collect()
    }

    #[test]
    fn each_example_in_the_documentation_is_a_command_line() {
        let texts = [include_str!("../../../docs/command.md"), include_str!("../../../README.md")];
        let starts = ["zklock ", "ExecStart=/usr/local/bin/zklock ", "0 2 * * * ", "*/5 * * * * "];
        let mut tried = 0;
        for line in texts.iter().flat_map(|text| text.lines()).map(str::trim) {
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
