//! Who holds a lock, where something is wanted of them.

use std::io::{BufRead, IsTerminal};

use zklock::Store;
use zklock::{Contender, Lock};

use crate::failure::Failure;
use crate::look::kinds::Library;
use crate::look::locks;
use crate::look::who::library_of;
use crate::output::say;

/// The lock at a path, and all who hold it.
///
/// # Errors
/// No server answers.
pub fn of(store: &Store, path: &str) -> Result<(Lock, Vec<Contender>), Failure> {
    let lock = locks::at(store, path)?;
    let mut holders = lock.contenders().wait()?;
    holders.retain(|contender| contender.held_since.is_some());
    Ok((lock, holders))
}

/// Whether the holder still has its claim. It is identified by its token: the path may be another's by now, and a hold
/// that was downgraded has another znode.
pub fn is_there(store: &Store, lock: &Lock, holder: &Contender) -> Result<bool, Failure> {
    if let Some(client) = store.client() {
        let stat = client.exists(&holder.path).wait()?;
        if stat.is_some_and(|stat| stat.czxid == holder.token) {
            return Ok(true);
        }
    }
    Ok(lock.contenders().wait()?.iter().any(|other| other.token == holder.token))
}

/// Whether it reads what is written into its claim.
pub fn is_zklock(holder: &Contender) -> bool {
    library_of(holder) == Library::Zklock.name()
}

/// Asks the person at the terminal.
///
/// # Errors
/// Nobody is there; `instead` says what to do then.
pub fn confirmed(question: std::fmt::Arguments, instead: &str) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::new(format!("nobody is there to be asked: {instead}")));
    }
    say(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    let _ = input.lock().read_line(&mut answer);
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
