//! `zklock ask`: asks the holder of a lock to give way.

use std::time::{Duration, Instant};

use super::holders;
use crate::failure::Failure;
use crate::look::who::{in_short, library_of};
use crate::output::{say, show};
use crate::servers::Servers;
use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct AskOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// The reason, for the holder's log
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// How long to wait for the release
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::text::parse_duration)]
    wait: Duration,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
Guarantees:
  The lock passes on without a moment in which two have it: the command of
  `zklock run` gets SIGTERM, and SIGKILL after the grace, and the lock is
  released when all of it is gone.

Limits:
  A program has to read the request, by Guard::release_requests, and may
  decline. One that does not read it keeps the lock: see `zklock break`.

Exit status:
  0    the holder gave way, or nobody held the lock
  1    the holder did not give way in time
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock ask /locks/report --reason deployment
  zklock ask --wait 5m /locks/report";

const PAUSE: Duration = Duration::from_millis(100);
const NOT_IN_TIME: u8 = 1;

/// # Errors
/// No server answers, or the holder's znode may not be written.
pub fn ask(options: &AskOptions) -> Result<u8, Failure> {
    let store = options.servers.connect()?;
    let path = &options.path;
    let (lock, holders) = holders::of(&store, path)?;
    if holders.is_empty() {
        show(format_args!("{path}: nobody holds it\n"));
        return Ok(0);
    }
    if let Some(other) = holders.iter().find(|it| !holders::is_zklock(it)) {
        return Err(Failure::new(format!(
            "{path}: {} holds it by another library ({}), which can't be asked",
            in_short(other),
            library_of(other)
        )));
    }
    for holder in &holders {
        lock.request_release(holder, &options.reason).wait()?;
    }
    let asked = Instant::now();
    for holder in &holders {
        let who = in_short(holder);
        while holders::is_there(&store, &lock, holder)? {
            if asked.elapsed() >= options.wait {
                say(format_args!(
                    "{path}: {who} has not given way within {}: its program does not read what it was asked, or \
                     declines. `zklock break` takes the lock from it",
                    humantime::format_duration(options.wait)
                ));
                return Ok(NOT_IN_TIME);
            }
            std::thread::sleep(PAUSE);
        }
        show(format_args!("{path}: {who} has given way\n"));
    }
    Ok(0)
}
