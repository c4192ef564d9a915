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
use std::panic;
use std::process::{self, ExitCode};

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use failure::{FAILED, Failure};
use output::say;

fn main() -> ExitCode {
    end_on_panics();
    let args = Args::try_parse().unwrap_or_else(|error| {
        let printed = error.print();
        // A command's own statuses begin at 1, and doctor's: what zklock says of itself has to differ.
        if error.use_stderr() {
            process::exit(FAILED.into());
        }
        output::expect_written(printed.and_then(|()| std::io::stdout().flush()));
        process::exit(0)
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

/// A panic on any thread ends this process. Without that thread the rest could be deaf to signals, or to the supervisor,
/// and hold the lock for ever.
fn end_on_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};
    use std::{env, thread};

    use nix::sys::signal::Signal;

    use super::*;

    #[test]
    fn a_panic_on_another_thread_ends_the_process() {
        const PANICS: &str = "ZKLOCK_TEST_PANICS";
        if env::var_os(PANICS).is_some() {
            end_on_panics();
            let _ = thread::spawn(|| panic!("as intended")).join();
            return;
        }
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "tests::a_panic_on_another_thread_ends_the_process"]);
        let status = again.env(PANICS, "1").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().signal(), Some(Signal::SIGABRT as i32));
    }
}
