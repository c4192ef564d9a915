//! Finds the claims that were created without an answer.
//!
//! The uuid in its data identifies a claim, so claims have to be read to be found. One look-up reads all
//! claims of a session in a directory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use uuid::Uuid;

use super::payload;
use super::sent_after::SentAfter;
use crate::client::{Children, TrustedSession, Znode};
use crate::error::{Code, Error, Result};
use crate::retry;
use crate::runtime::{Pending, Timer};
use crate::znode::Stat;
use crate::zookeeper::name::{self, Naming};

pub(crate) const READS: usize = 64;

/// The claims of a session in one directory: path and czxid of each.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) by_uuid: HashMap<Uuid, Vec<(Arc<str>, i64)>>,
    /// Claims with data that another client has replaced.
    pub(crate) nameless: Vec<(Arc<str>, i64)>,
    /// Of claims that were sent before, it says nothing.
    pub(crate) sent_after: SentAfter,
}

pub(crate) async fn look_up(
    session: TrustedSession,
    directory: String,
    sent_after: SentAfter,
) -> Result<Found> {
    // The server that we are connected to now may be behind the one that took the creates. Both
    // requests are in flight before the first is awaited.
    let caught_up = session.catch_up(&directory);
    let listed = session.children(&directory).await;
    caught_up.await?;
    let Children { names, stat } = match listed {
        Ok(listed) => listed,
        Err(error) if error.is_no_node() => return Ok(Found { sent_after, ..Found::default() }),
        Err(error) => return Err(error),
    };
    let is_candidate = |name: &String| {
        Naming::may_be_ours(session.id(), name) && sent_after.allows(stat.czxid, name)
    };
    let mut candidates = names.into_iter().filter(is_candidate);
    let mut reads = VecDeque::new();
    let mut found = Found { sent_after, ..Found::default() };
    loop {
        while reads.len() < READS {
            let Some(name) = candidates.next() else { break };
            let path = name::join(&directory, &name);
            reads.push_back((session.get(&path), path));
        }
        let Some((read, path)) = reads.pop_front() else { return Ok(found) };
        let read = read_again(&session, &path, read).await;
        // Its name says that it is a claim of this session, and only its data say which. It goes with the session.
        if matches!(&read, Err(error) if error.code() == Code::NO_AUTH) {
            session.leave_behind(&path);
        }
        note(&mut found, &session, read, path)?;
    }
}

/// Looks whether the znode at a path is a claim of this session.
pub(crate) async fn look_at(session: &TrustedSession, path: String) -> Result<Found> {
    let caught_up = session.catch_up(&path);
    let read = session.get(&path).await;
    caught_up.await?;
    let mut found = Found::default();
    note(&mut found, session, read, path)?;
    Ok(found)
}

type Read = Result<Znode>;

fn note(found: &mut Found, session: &TrustedSession, read: Read, path: String) -> Result<()> {
    match read {
        Ok(Znode { data, stat }) if stat.ephemeral_owner == session.id() => {
            match payload::uuid(&data) {
                Some(uuid) => {
                    found.by_uuid.entry(uuid).or_default().push((path.into(), stat.czxid))
                }
                // What the program made by hand, and never wrote to again, is no claim.
                None if stat.version > 0 => found.nameless.push((path.into(), stat.czxid)),
                None => {}
            }
        }
        Ok(_) => {}
        // Deleted, or it may not be read.
        Err(error) if error.is_no_node() || error.code() == Code::NO_AUTH => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Waits for a read; one that was refused for the crowd is repeated by itself.
async fn read_again(session: &TrustedSession, path: &str, mut read: Pending<Znode>) -> Read {
    loop {
        match read.await {
            Err(error) if error.code() == Code::THROTTLED_OP => {
                Timer::after(retry::SOON).await;
                read = session.get(path);
            }
            read => return read,
        }
    }
}

/// The stat of the first of the claims that a transaction has created with that data. Its czxid is that of all claims of
/// the transaction.
///
/// If the directory was recreated, another claim may have that name by now, even one of this session. So the data is
/// compared, which carries a uuid. Without certainty the outcome is unknown: then the claims are looked up. A look-up could
/// not read what this session may not read either, so that is deleted.
pub(crate) async fn read_created(
    session: &TrustedSession,
    paths: &[&str],
    data: &[u8],
) -> Result<Stat> {
    let first = paths.first().copied().unwrap_or_default();
    match session.get(first).await {
        Ok(found) if found.stat.ephemeral_owner == session.id() && found.data == data => {
            Ok(found.stat)
        }
        Err(error) if error.code() == Code::NO_AUTH => {
            for path in paths {
                // Its name is given once. If the reply is lost, it goes with the session.
                drop(session.guaranteed_delete(&Arc::from(*path), 0, false, Arc::default()));
            }
            Err(error)
        }
        Ok(_) | Err(_) => Err(Error::new("create", first, Code::OPERATION_TIMEOUT)),
    }
}
