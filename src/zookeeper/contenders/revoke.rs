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
use crate::zookeeper::refusal::{found, refused};
use crate::zookeeper::shortcuts::announced;
use crate::zookeeper::spec::LockSpec;

/// Asks that holder for the lock, or breaks its hold and waits until its claim is gone. `false`: it does not hold any more.
pub(crate) async fn revoke(
    lock: &LockSpec,
    holder: &Contender,
    what: &Revocation,
) -> Result<bool, LockError> {
    let is_break = matches!(what, Revocation::Break { .. });
    // Where a reply was lost, the claim may have gone by the order before that is known.
    let may_be_written = AtomicBool::new(false);
    let revoked = async {
        let mut holder = holder.clone();
        loop {
            let write = |session| write(lock, session, &holder, what, &may_be_written);
            if until_answered(lock, write).await? {
                if !is_break {
                    return Ok(true);
                }
                may_be_written.store(true, Ordering::Relaxed);
                until_answered(lock, |session| changed(session, &holder)).await?;
                continue;
            }
            match until_answered(lock, |session| changed_hold(lock, session, &holder)).await? {
                Some(path) => holder.path = path,
                None => return Ok(is_break && may_be_written.load(Ordering::Relaxed)),
            }
        }
    };
    let late = || {
        let error = Error::new("revoke", &holder.path, Code::OPERATION_TIMEOUT);
        Err(LockError::outcome_unknown(&lock.path, error))
    };
    let deadline = if is_break { None } else { lock.client.operation_deadline() };
    within(deadline, revoked, late).await.map_err(|error| {
        if may_be_written.load(Ordering::Relaxed) { error.after_a_write() } else { error }
    })
}

/// Retries on trusted sessions until there is an answer.
async fn until_answered<T, F: Future<Output = Result<T>>>(
    lock: &LockSpec,
    work: impl Fn(TrustedSession) -> F,
) -> Result<T, LockError> {
    loop {
        let session = lock.session().await?;
        match work(session).await {
            Err(error) if error.is_transient() => Timer::after(retry::SOON).await,
            done => return done.map_err(|error| refused(&lock.path, error)),
        }
    }
}

/// Writes it where the holder reads it. `false`: the claim is gone. An unknown outcome sets `may_be_written`.
async fn write(
    lock: &LockSpec,
    session: TrustedSession,
    holder: &Contender,
    what: &Revocation,
    may_be_written: &AtomicBool,
) -> Result<bool> {
    let unread = |why| Error::with_detail("revoke", &holder.path, Code::BAD_ARGUMENTS, why);
    loop {
        let claim = found(session.get(&holder.path).await)?.filter(|claim| is_of(claim, holder));
        let Some(claim) = claim else { return Ok(false) };
        if payload::uuid(&claim.data).is_none() {
            return Err(unread(OF_ANOTHER_LIBRARY));
        }
        let (path, znode) = if announced::says_so(&claim.data) {
            // It may be gone with every claim in it.
            let directory = found(session.get(&lock.path).await)?;
            let Some(directory) = directory else { return Ok(false) };
            (&*lock.path, directory)
        } else {
            (&*holder.path, claim)
        };
        let data = wanted::with(&znode.data, holder.token, what);
        let data = data.ok_or_else(|| unread(NO_TEXT))?;
        if data == znode.data {
            return Ok(true);
        }
        match session.set(path, &data, Some(znode.stat.version)).await {
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

async fn changed(session: TrustedSession, holder: &Contender) -> Result<()> {
    if !session.has_room_to_watch(&holder.path, WatchFor::Later) {
        Timer::after(retry::WITHOUT_A_WATCH).await;
        return Ok(());
    }
    let watched = found(session.get_and_watch(&*holder.path).await)?;
    if let Some(watched) = watched.filter(|watched| is_of(&watched.value, holder)) {
        // It ends with an error where the session does: the next one shows what has become of it.
        drop(watched.watch.await);
    }
    Ok(())
}

fn is_of(found: &Znode, holder: &Contender) -> bool {
    payload::token(&holder.path, &found.data, &found.stat) == holder.token
}

/// The present claim of a hold, if the hold was changed to another kind and its earlier claim is gone.
async fn changed_hold(
    lock: &LockSpec,
    session: TrustedSession,
    holder: &Contender,
) -> Result<Option<String>> {
    let kind = name::kind(name::last(&holder.path));
    if lock.strategy != Strategy::Queue || !kind.can_change() {
        return Ok(None);
    }
    let Some(listing) = found(lock.memory.list(&session, &lock.path).await)? else {
        return Ok(None);
    };
    // Where an upgrade was taken back, it is the claim that was there before.
    let was_upgrade = kind == Kind::Upgrade;
    let may_be = |name: &&str| {
        name::is_in_anothers_place(name) || was_upgrade && name::kind(name) == Kind::Upgradeable
    };
    let names = listing.in_order().filter(may_be);
    let mut claims = Scan::new(lock, &session, listing.directory.czxid, names).wide();
    while let Some(Claimed { name, znode }) = claims.next().await? {
        let path = name::join(&lock.path, name);
        if payload::token(&path, &znode.data, &znode.stat) == holder.token
            && !name::is_upgrade(name)
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
