//! `server`: a real ZooKeeper on this machine, to try programs with. `server --help` says how to use it.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::Parser;
use zklock_testing::{Result, Server};

/// Starts a ZooKeeper server on 127.0.0.1, in memory, and prints its host string. Ctrl-C ends it.
#[derive(Debug, Parser)]
#[command(name = "server", version, max_term_width = 100)]
struct Args {
    /// The port it listens on [default: one that is free]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// The servers' tickTime, in milliseconds: sessions are of 2 to 20 ticks
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    tick: u64,
}

fn main() -> ExitCode {
    match serve(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> Result<()> {
    let (interrupt, interrupted) = channel();
    if let Err(error) = ctrlc::set_handler(move || interrupt.send(()).unwrap_or_default()) {
        eprintln!("server: Ctrl-C will leave its files behind: {error}");
    }
    let tick = Duration::from_millis(args.tick);
    let mut builder = Server::builder()
        .tick_time(tick)
        .min_session_timeout(2 * tick)
        .max_session_timeout(20 * tick);
    if let Some(port) = args.port {
        builder = builder.port(port);
    }
    let server = builder.start()?;
    // For scripts too: this is all that goes to stdout.
    println!("{}", server.hosts());
    let _ = std::io::stdout().flush();
    eprintln!(
        "A ZooKeeper server, in memory, for as long as this runs. Ctrl-C ends it. In another shell:"
    );
    eprintln!("  make lock-test ARGS='--hosts {}'", server.hosts());
    let _ = interrupted.recv();
    Ok(())
}
