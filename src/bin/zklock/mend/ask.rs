//! `zklock ask`: asks the holder of a lock to give way.

use std::time::{Duration, Instant};

use clap::Args;
use zklock::{Client, Contender};

use crate::failure::Failure;
use crate::look::kinds::Library;
use crate::look::locks;
use crate::look::who::{in_short, library_of};
use crate::output::{say, show};
use crate::request;
use crate::servers::Servers;

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct AskOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// Why, for the holder's log
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// How long to wait for it
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    wait: Duration,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
The holder is asked by a line in its own znode. `zklock run` reads it: its command gets SIGTERM, SIGKILL after the
grace, and the lock is released when all of it is gone. So the lock passes on without a moment in which two have it.
Other programs do not read it; nothing happens then, and the status is 1.

Exit status: 0 it gave way, or nobody had the lock; 1 not in time";

const PAUSE: Duration = Duration::from_millis(100);
const NOT_IN_TIME: u8 = 1;

/// # Errors
/// No server answers, or the holder's znode may not be written.
pub fn ask(options: &AskOptions) -> Result<u8, Failure> {
    let client = options.servers.settings()?.connect()?;
    let path = &options.path;
    let lock = locks::at(&client, path)?;
    let mut holders = lock.contenders().wait()?;
    holders.retain(|contender| contender.held_since.is_some());
    if holders.is_empty() {
        show(format_args!("{path}: nobody holds it\n"));
        return Ok(0);
    }
    if let Some(other) = holders.iter().find(|it| library_of(it) != Library::Zklock.name()) {
        return Err(Failure::new(format!(
            "{path}: {} holds it by another library ({}), which can't be asked",
            in_short(other),
            library_of(other)
        )));
    }
    for holder in &holders {
        tell(&client, holder, &options.reason)?;
    }
    let asked = Instant::now();
    for holder in &holders {
        let who = in_short(holder);
        // By its token: its znode's name may be another's by now, where the lock is one znode.
        let is_there = || -> Result<bool, Failure> {
            let stat = client.exists(&holder.path).wait()?;
            Ok(stat.is_some_and(|stat| stat.czxid == holder.token))
        };
        while is_there()? {
            if asked.elapsed() >= options.wait {
                say(format_args!(
                    "{path}: {who} has not given way within {}: only `zklock run` reads what it was asked. End that \
                     program, and its session's timeout frees the lock",
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

/// Writes the request into the holder's znode, unless that is gone.
fn tell(client: &Client, holder: &Contender, reason: &str) -> Result<(), Failure> {
    loop {
        let znode = match client.get(&holder.path).wait() {
            Ok(znode) if znode.stat.czxid == holder.token => znode,
            Ok(_) => return Ok(()),
            Err(error) if error.is_no_node() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let data = request::add(&znode.data, reason);
        match client.set(&holder.path, &data, Some(znode.stat.version)).wait() {
            Ok(_) => return Ok(()),
            Err(error) if error.is_no_node() => return Ok(()),
            Err(error) if error.code() == zklock::Code::BAD_VERSION => {}
            Err(error) => return Err(error.into()),
        }
    }
}
