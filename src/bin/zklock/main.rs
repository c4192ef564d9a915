//! `zklock`, the command. `zklock --help` says how to use it.

mod args;
mod boot_clock;
mod failure;
mod look;
mod mark;
mod output;
mod processes;
mod run;
mod servers;
mod supervise;
mod text;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use failure::{FAILED, Failure};
use output::say;

fn main() -> ExitCode {
    let args = Args::try_parse().unwrap_or_else(|error| {
        let _ = error.print();
        // A command's own statuses begin at 1: what zklock says of itself has to differ.
        let is_run = std::env::args_os().nth(1).is_some_and(|first| first == "run");
        std::process::exit(match error.use_stderr() {
            true if is_run => FAILED.into(),
            true => 2,
            false => 0,
        })
    });
    let done = match args.command {
        Command::Run(options) => run::run(*options),
        Command::Ls(options) => look::ls::ls(&options),
        Command::Who(options) => look::who::who(&options),
        Command::Watch(options) => look::watch::watch(&options),
        Command::Last(options) => look::last::last(&options),
        Command::Supervise(options) => supervise::supervisor::supervise(options)
            .map(|()| 0)
            .map_err(|error| Failure::new(format!("supervise: {error}"))),
        Command::ExecCommand(options) => Ok(supervise::exec::exec(&options)),
    };
    ExitCode::from(done.unwrap_or_else(|failure| {
        say(format_args!("{failure}"));
        failure.code()
    }))
}
