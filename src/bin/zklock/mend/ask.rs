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
    let Some(holder) = lock.holder().wait()? else {
        show(format_args!("{path}: nobody holds it\n"));
        return Ok(0);
    };
    let who = in_short(&holder);
    if library_of(&holder) != Library::Zklock.name() {
        return Err(Failure::new(format!(
            "{path}: {who} holds it by another library ({}), which can't be asked",
            library_of(&holder)
        )));
    }
    if !tell(&client, &holder, &options.reason)? {
        show(format_args!("{path}: {who} has just let go\n"));
        return Ok(0);
    }
    let asked = Instant::now();
    while asked.elapsed() < options.wait {
        // By its token: its znode's name may be another's by now, where the lock is one znode.
        let is_there =
            client.exists(&holder.path).wait()?.is_some_and(|stat| stat.czxid == holder.token);
        if !is_there {
            show(format_args!("{path}: {who} has given way\n"));
            return Ok(0);
        }
        std::thread::sleep(PAUSE);
    }
    say(format_args!(
        "{path}: {who} has not given way within {}: only `zklock run` reads what it was asked. End that program, and its \
         session's timeout frees the lock",
        humantime::format_duration(options.wait)
    ));
    Ok(NOT_IN_TIME)
}

/// Writes the request into the holder's znode; false where that is gone.
fn tell(client: &Client, holder: &Contender, reason: &str) -> Result<bool, Failure> {
    loop {
        let znode = match client.get(&holder.path).wait() {
            Ok(znode) if znode.stat.czxid == holder.token => znode,
            Ok(_) => return Ok(false),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let data = request::add(&znode.data, reason);
        match client.set(&holder.path, &data, Some(znode.stat.version)).wait() {
            Ok(_) => return Ok(true),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) if error.code() == zklock::Code::BAD_VERSION => {}
            Err(error) => return Err(error.into()),
        }
    }
}
