//! The znode that says how many permits a semaphore has: the directory of its claims.

use super::limit::Limit;
use crate::client::{Op, TrustedSession, Znode};
use crate::error::{Code, Error, Result};
use crate::lock::LockError;
use crate::path::own_name;
use crate::retry;
use crate::runtime::{Timer, within};
use crate::znode::CreateMode;
use crate::zookeeper::acquire::attempt::{ClaimStatus, create_parents};
use crate::zookeeper::acquire::listing::Listing;
use crate::zookeeper::name;
use crate::zookeeper::refusal::{found, refused};
use crate::zookeeper::spec::LockSpec;

/// Makes the lock's directory, which says how many permits there are; persistent, so that it goes on to.
pub(crate) async fn make_directory(
    lock: &LockSpec,
    session: &TrustedSession,
) -> Result<ClaimStatus> {
    let data = Limit::first(lock.limit).write();
    match session.create(&lock.path, &data, &lock.acl, CreateMode::Persistent).await {
        Err(error) if error.is_no_node() => create_parents(session, lock, &lock.path).await,
        Err(error) if !error.is_node_exists() => Err(error),
        made => {
            if let Ok(made) = made {
                lock.memory.made_directory(made.stat.czxid);
            }
            Ok(ClaimStatus::Again)
        }
    }
}

/// How many permits there were when the directory was listed; `None` if that may have changed since.
pub(crate) async fn limit(
    lock: &LockSpec,
    session: &TrustedSession,
    listing: &Listing,
) -> Result<Option<Limit>> {
    let directory = &listing.directory;
    if let Some(limit) = lock.memory.limit(directory) {
        return Ok(Some(limit));
    }
    let Some(Znode { data, stat }) = found(session.get(&lock.path).await)? else {
        return Ok(None);
    };
    if let Some(limit) = Limit::read(&data) {
        lock.memory.saw_limit(&stat, limit);
        return Ok(lock.memory.limit(directory));
    }
    // Another kind of lock has made the directory, or somebody has written over the number.
    let limit = Limit::after(&data, data.is_empty() && stat.version == 0, lock.limit);
    match session.set(&lock.path, &limit.write_over(&data), Some(stat.version)).await {
        Err(error) if !is_overtaken(&error) => Err(error),
        _ => Ok(None),
    }
}

pub(crate) async fn read(lock: &LockSpec, session: &TrustedSession) -> Result<u32> {
    let limit = found(session.get(&lock.path).await)?.and_then(|found| Limit::read(&found.data));
    Ok(limit.map_or(lock.limit, |limit| limit.now))
}

/// Sets how many there are, until that is certain.
pub(crate) async fn change(lock: &LockSpec, number: u32) -> Result<(), LockError> {
    let set = async {
        let mut may_be_set = false;
        loop {
            let session = match lock.session().await {
                Err(error) if may_be_set => return Err(error.after_a_write()),
                session => session?,
            };
            match set(lock, &session, number).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.is_transient() => {
                    may_be_set |= retry::may_be_done(error.code());
                    Timer::after(retry::SOON).await;
                }
                Err(error) => return Err(refused(&lock.path, error)),
            }
        }
    };
    let late = || {
        let error = Error::new("set", &lock.path, Code::OPERATION_TIMEOUT);
        Err(LockError::outcome_unknown(&lock.path, error))
    };
    within(lock.client.operation_deadline(), set, late).await
}

/// Sets how many there are, unless somebody else was faster with something. Gives whether it is set.
async fn set(lock: &LockSpec, session: &TrustedSession, number: u32) -> Result<bool> {
    let Znode { data, stat } = match session.get(&lock.path).await {
        Ok(read) => read,
        Err(error) if error.is_no_node() => {
            let lock = LockSpec { limit: number, ..lock.clone() };
            return match make_directory(&lock, session).await? {
                ClaimStatus::Impossible(_) => Err(error),
                _ => Ok(false),
            };
        }
        Err(error) => return Err(error),
    };
    if Limit::read(&data).is_some_and(|limit| limit.now == number) {
        return Ok(true);
    }
    let limit = Limit::after(&data, data.is_empty() && stat.version == 0, number).write_over(&data);
    // The next waiter watches the children, so one is created and deleted.
    let child = name::join(&lock.path, own_name!("limit"));
    let ops = [
        Op::Set { path: lock.path.to_string(), data: limit, version: Some(stat.version) },
        Op::create(child.clone(), "", CreateMode::Ephemeral),
        Op::delete(child),
    ];
    match session.multi(&ops).await {
        Ok(_) => Ok(true),
        Err(error) if error.failed_op_index() == Some(0) && is_overtaken(&error) => Ok(false),
        Err(error) if error.code() == Code::NO_AUTH => {
            Err(Error::new("set", &lock.path, Code::NO_AUTH))
        }
        Err(error) => Err(error),
    }
}

fn is_overtaken(error: &Error) -> bool {
    error.is_no_node() || error.code() == Code::BAD_VERSION
}
