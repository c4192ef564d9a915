//! `zklock break`: takes a lock from its holder, fenced.

use std::time::Duration;

use clap::Args;
use zklock::Store;
use zklock::{Client, Code, Contender, Lock};

use super::holders;
use crate::failure::Failure;
use crate::look::who::{in_short, library_of};
use crate::output::{say, show};
use crate::servers::Servers;

#[derive(Args, Debug)]
#[command(after_help = MORE)]
pub struct BreakOptions {
    /// The lock's path
    #[arg(value_parser = crate::run::options::lock_path)]
    path: String,

    /// The reason, for the holder's log
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// How long the holder's program may work on after its guard says that the lock is lost
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::text::parse_duration)]
    grace: Duration,

    /// How long to wait for the holder
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::text::parse_duration)]
    wait: Duration,

    /// Delete the claim of a holder that has not stopped by then, or whose library does not support breaking. That
    /// holder may still believe that it holds the lock
    #[arg(long)]
    force: bool,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    servers: Servers,
}

const MORE: &str = "\
Guarantees:
  Nobody else has the lock before its holder knows that it has lost it. The
  holder's guard says Lost at once, its guarded writes fail, and then its own
  library deletes the claim: when the program has dropped the guard, or when
  the grace is over. `zklock run` kills its command first.

Limits:
  A holder that is cut off from the servers cannot be reached; it loses the
  lock within its session timeout. Only a program that is stuck with a live
  session, or another library, needs --force, which guarantees nothing: the
  holder may go on believing that it holds the lock. Only ZooKeeper has
  --force. `zklock ask` is the friendly form.

Exit status:
  0    none of the holders has it any more, or nobody held it
  1    not in time
  125  zklock failed: the servers cannot be reached, or an argument is wrong

Examples:
  zklock break /locks/report
  zklock break --yes --reason stuck /locks/report";

const NOT_IN_TIME: u8 = 1;

/// # Errors
/// No server answers, nobody can be asked or the answer was no, or the holder's znode may not be written.
pub fn break_hold(options: &BreakOptions) -> Result<u8, Failure> {
    let store = options.servers.connect()?;
    let path = &options.path;
    let (lock, found) = holders::of(&store, path)?;
    if found.is_empty() {
        show(format_args!("{path}: nobody holds it\n"));
        return Ok(0);
    }
    if let Some(other) = found.iter().find(|it| !options.force && !holders::is_zklock(it)) {
        return Err(Failure::new(format!(
            "{path}: {} holds it by another library ({}), which reads no orders: --force deletes its claim, and it may go on \
             believing that it holds the lock",
            in_short(other),
            library_of(other)
        )));
    }
    let who: Vec<String> = found.iter().map(in_short).collect();
    let question = format_args!("{path}: break the hold of {}?", who.join(", "));
    if !options.yes && !holders::confirmed(question, "give --yes to break it")? {
        return Err(Failure::new("nothing was broken"));
    }
    let mut late = 0;
    for holder in &found {
        late += usize::from(!options.has_broken(&store, &lock, holder)?);
    }
    Ok(if late == 0 { 0 } else { NOT_IN_TIME })
}

impl BreakOptions {
    /// Whether that holder has it no more.
    fn has_broken(&self, store: &Store, lock: &Lock, holder: &Contender) -> Result<bool, Failure> {
        let (path, who) = (&self.path, in_short(holder));
        if holders::is_zklock(holder) {
            let broken = lock.break_hold(holder, &self.reason, self.grace).within(self.wait);
            match broken.wait() {
                Ok(_) => {
                    show(format_args!("{path}: {who} has lost it\n"));
                    return Ok(true);
                }
                Err(error) if error.is_outcome_unknown() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if !self.force {
            say(format_args!(
                "{path}: {who} has not broken off within {}, and its session is alive: its program is stuck, or was made \
                 with an earlier version. End it, or delete its claim with --force",
                humantime::format_duration(self.wait)
            ));
            return Ok(false);
        }
        let Some(client) = store.client() else {
            return Err(Failure::new(format!(
                "{path}: --force deletes znodes, and this store has none: end the program of {who}, and its lease runs out"
            )));
        };
        delete(client, lock, holder)?;
        show(format_args!("{path}: deleted the claim of {who}, which may not know\n"));
        Ok(true)
    }
}

/// Deletes the claim, and no other's by its name.
fn delete(client: &Client, lock: &Lock, holder: &Contender) -> Result<(), Failure> {
    loop {
        let contenders = lock.contenders().wait()?;
        let Some(claim) = contenders.iter().find(|other| other.token == holder.token) else {
            return Ok(());
        };
        let Some(stat) = client.exists(&claim.path).wait()? else { continue };
        // A hold that was downgraded keeps its token in a later znode, whose name nobody else gets.
        let is_downgraded = holders::is_zklock(claim) && claim.path != lock.path();
        if stat.czxid != holder.token && !is_downgraded {
            continue;
        }
        match client.delete(&claim.path, Some(stat.version)).wait() {
            // A universal claim has a second znode.
            Ok(()) => {}
            Err(error) if error.is_no_node() || error.code() == Code::BAD_VERSION => {}
            Err(error) => return Err(error.into()),
        }
    }
}
