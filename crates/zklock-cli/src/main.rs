//! `zklock`, the command. `zklock --help` says how to use it.

mod args;
mod boot_clock;
mod cgroup;
mod failure;
#[cfg(feature = "_follow")]
// The web page shows more of it than the terminal.
#[cfg_attr(not(feature = "serve"), allow(dead_code))]
mod follow;
mod generate;
mod hold;
mod interrupts;
mod look;
mod mark;
mod mend;
mod output;
mod processes;
mod run;
mod secure;
#[cfg(feature = "serve")]
mod serve;
mod servers;
mod supervise;
mod text;
#[cfg(feature = "top")]
mod top;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use failure::{FAILED, Failure};
use output::say;

fn main() -> ExitCode {
    let args = Args::try_parse().unwrap_or_else(|error| {
        let printed = error.print();
        // A command's own statuses begin at 1, and doctor's: what zklock says of itself has to differ.
        if error.use_stderr() {
            std::process::exit(FAILED.into());
        }
        output::expect_written(printed.and_then(|()| std::io::stdout().flush()));
        std::process::exit(0)
    });
    let done = match args.command {
        Command::Run(options) => run::run(*options),
        Command::Hold(options) => hold::hold(&options),
        Command::Ls(options) => look::ls::ls(&options),
        Command::Who(options) => look::who::who(&options),
        Command::Watch(options) => look::watch::watch(&options),
        Command::Last(options) => look::last::last(&options),
        #[cfg(feature = "top")]
        Command::Top(options) => top::top(&options),
        #[cfg(feature = "serve")]
        Command::Serve(options) => serve::serve(&options),
        Command::Ask(options) => mend::ask::ask(&options),
        Command::Break(options) => mend::break_hold::break_hold(&options),
        Command::Clean(options) => mend::clean::clean(&options),
        Command::Generate(options) => generate::generate(&options, Args::command()),
        Command::Doctor(options) => mend::doctor::doctor(&options),
        Command::Supervise(options) => supervise::supervisor::supervise(options)
            .map(|()| 0)
            .map_err(|error| Failure::new(format!("supervise: {error}"))),
        Command::Become(options) => Ok(supervise::exec::exec(&options)),
    };
    ExitCode::from(done.unwrap_or_else(|failure| {
        say(format_args!("{failure}"));
        FAILED
    }))
}
