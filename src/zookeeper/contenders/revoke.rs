//! Writes what is wanted of a holder where it reads that, and waits until it has broken off.

use std::sync::atomic::{AtomicBool, Ordering};

use super::wanted;
use crate::client::{TrustedSession, WatchFor, Znode};
use crate::error::{Code, Error, Result};
use crate::lock::{Contender, Kind, LockError, Revocation, Strategy};
use crate::retry;
use crate::runtime::{Timer, within};
use crate::zookeeper::acquire::scan::{Claimed, Scan};
use crate::zookeeper::claim::payload;
use crate::zookeeper::name;
use crate::zookeeper::refusal::refused;
use crate::zookeeper::shortcuts::announced;
use crate::zookeeper::spec::LockSpec;

/// Asks that holder for the lock; `false`: it does not hold any more.
pub(crate) async fn ask(
    lock: &LockSpec,
    holder: &Contender,
    request: &Revocation,
) -> Result<bool, LockError> {
    let late = || {
        let error = Error::new("revoke", &holder.path, Code::OPERATION_TIMEOUT);
        Err(LockError::outcome_unknown(&lock.path, error))
    };
    let may_be_written = AtomicBool::new(false);
    let asked = async {
        let mut holder = holder.clone();
        loop {
            let write = |session| write(lock, session, &holder, request, &may_be_written);
            if until_answered(lock, write).await? {
                return Ok(true);
            }
            match until_answered(lock, |session| changed_hold(lock, session, &holder)).await? {
                Some(path) => holder.path = path,
                None => return Ok(false),
            }
        }
    };
    let asked = within(lock.client.operation_deadline(), asked, late).await;
    asked.map_err(|error| known_of(&may_be_written, error))
}

/// Breaks that hold, and waits until its claim is gone; `false`: it was gone before.
pub(crate) async fn break_off(
    lock: &LockSpec,
    holder: &Contender,
    order: &Revocation,
) -> Result<bool, LockError> {
    // Where a reply was lost, the claim may have gone by the order before that is known.
    let may_be_written = AtomicBool::new(false);
    let broken = async {
        let mut holder = holder.clone();
        loop {
            let write = |session| write(lock, session, &holder, order, &may_be_written);
            if until_answered(lock, write).await? {
                may_be_written.store(true, Ordering::Relaxed);
                until_answered(lock, |session| changed(session, &holder)).await?;
                continue;
            }
            match until_answered(lock, |session| changed_hold(lock, session, &holder)).await? {
                Some(path) => holder.path = path,
                None => return Ok(may_be_written.load(Ordering::Relaxed)),
            }
        }
    };
    broken.await.map_err(|error| known_of(&may_be_written, error))
}

/// The error of an order or a request that may have been written.
fn known_of(may_be_written: &AtomicBool, error: LockError) -> LockError {
    if may_be_written.load(Ordering::Relaxed) { error.after_a_write() } else { error }
}

/// Does it on a session that works, until there is an answer.
async fn until_answered<T, F: Future<Output = Result<T>>>(
    lock: &LockSpec,
    work: impl Fn(TrustedSession) -> F,
) -> Result<T, LockError> {
    loop {
        let session = lock.client.trusted_session().await;
        let session = session.map_err(|error| LockError::closed(&lock.path, error))?;
        match work(session).await {
            Err(error) if error.is_transient() => Timer::after(retry::SOON).await,
            done => return done.map_err(|error| refused(&lock.path, error)),
        }
    }
}

/// Has it written where the holder reads it, once. `false`: the claim is gone. `may_be_written` says whether an outcome was
/// unknown.
async fn write(
    lock: &LockSpec,
    session: TrustedSession,
    holder: &Contender,
    what: &Revocation,
    may_be_written: &AtomicBool,
) -> Result<bool> {
    let unread = |why| Error::with_detail("revoke", &holder.path, Code::BAD_ARGUMENTS, why);
    loop {
        let claim = match session.get(&holder.path).await {
            Ok(found) if is_of(&found, holder) => found,
            Ok(_) => return Ok(false),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) => return Err(error),
        };
        if payload::uuid(&claim.data).is_none() {
            return Err(unread(OF_ANOTHER_LIBRARY));
        }
        let (path, found) = if announced::says_so(&claim.data) {
            let directory = session.get(&lock.path).await;
            match directory {
                // With every claim in it.
                Err(error) if error.is_no_node() => return Ok(false),
                found => (&*lock.path, found?),
            }
        } else {
            (&*holder.path, claim)
        };
        let data = wanted::with(&found.data, holder.token, what);
        let data = data.ok_or_else(|| unread(NO_TEXT))?;
        if data == found.data {
            return Ok(true);
        }
        match session.set(path, &data, Some(found.stat.version)).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) if error.code() == Code::BAD_VERSION => {}
            Err(error) => {
                may_be_written.fetch_or(error.is_outcome_unknown(), Ordering::Relaxed);
                return Err(error);
            }
        }
    }
}

const OF_ANOTHER_LIBRARY: &str =
    "the claim there is another library's, which would not read what is written into it";
const NO_TEXT: &str = "the znode in which its holder would read it has data that are no text";

/// Waits until the claim has changed, or may have.
async fn changed(session: TrustedSession, holder: &Contender) -> Result<()> {
    if !session.has_room_to_watch(&holder.path, WatchFor::Later) {
        Timer::after(retry::WITHOUT_A_WATCH).await;
        return Ok(());
    }
    match session.get_and_watch(&*holder.path).await {
        Ok(found) if is_of(&found.value, holder) => {
            // It ends with an error where the session does: the next one shows what has become of it.
            drop(found.watch.await);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_no_node() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether that is a claim of this holder.
fn is_of(found: &Znode, holder: &Contender) -> bool {
    payload::token(&holder.path, &found.data, &found.stat) == holder.token
}

/// Where the hold is claimed now whose claim is gone, if it goes on as one of another kind.
async fn changed_hold(
    lock: &LockSpec,
    session: TrustedSession,
    holder: &Contender,
) -> Result<Option<String>> {
    let kind = name::kind(name::last(&holder.path));
    if lock.strategy != Strategy::Queue || !kind.can_change() {
        return Ok(None);
    }
    let listing = match lock.memory.list(&session, &lock.path).await {
        Ok(listing) => listing,
        Err(error) if error.is_no_node() => return Ok(None),
        Err(error) => return Err(error),
    };
    // Where an upgrade was taken back, it is the claim that was there before.
    let was_upgrade = kind == Kind::Upgrade;
    let may_be = |name: &&str| {
        name::is_in_anothers_place(name) || was_upgrade && name::kind(name) == Kind::Upgradeable
    };
    let names = listing.in_order().filter(may_be);
    let mut claims = Scan::new(lock, &session, listing.directory.czxid, names).wide();
    while let Some(Claimed { name, data, stat }) = claims.next().await? {
        let path = name::join(&lock.path, name);
        if payload::token(&path, &data, &stat) == holder.token && !name::is_upgrade(name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
