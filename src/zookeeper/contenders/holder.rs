//! Waits until somebody else holds a lock, or nobody does.

use crate::client::{TrustedSession, Watch, WatchFor, Watched};
use crate::error::Result;
use crate::lock::{Contender, LockError, Strategy};
use crate::retry;
use crate::runtime::Timer;
use crate::zookeeper::claim::payload;
use crate::zookeeper::refusal::found;
use crate::zookeeper::spec::LockSpec;

/// Waits until the holder differs from `seen`, and returns it. In `seen`, `Some(token)` is the holder with that token,
/// `Some(None)` is no holder, and `None` returns the holder at once.
pub(crate) async fn other_than(
    lock: &LockSpec,
    seen: Option<Option<i64>>,
) -> Result<Option<Contender>, LockError> {
    loop {
        let session = lock.session().await?;
        let holder = match super::first(lock, &session, 1).await {
            Ok(first) => first.into_iter().next(),
            Err(LockError::Store { source, .. }) if source.is_transient() => {
                Timer::after(retry::SOON).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        if seen != Some(holder.as_ref().map(|holder| holder.token)) {
            return Ok(holder);
        }
        let path = holder.as_ref().map_or(&*lock.path, |holder| &*holder.path);
        if !session.has_room_to_watch(path, WatchFor::Later) {
            Timer::after(retry::WITHOUT_A_WATCH).await;
            continue;
        }
        let watch = match &holder {
            Some(holder) => of_its_end(&session, holder).await,
            None => of_a_first(lock, &session).await,
        };
        match watch {
            // It ends with an error where the session does: then the next one shows what has become of it.
            Ok(Some(watch)) => drop(watch.await),
            Ok(None) => Timer::after(retry::SOON).await,
            Err(error) if error.is_transient() => Timer::after(retry::SOON).await,
            Err(error) => return Err(LockError::store(&lock.path, error)),
        }
    }
}

async fn of_its_end(session: &TrustedSession, holder: &Contender) -> Result<Option<Watch>> {
    let watched = found(session.get_and_watch(&*holder.path).await)?;
    let watched = watched.filter(|watched| {
        let znode = &watched.value;
        payload::token(&holder.path, &znode.data, &znode.stat) == holder.token
    });
    Ok(watched.map(|watched| watched.watch))
}

/// Watches for a first claim; `None` if there may be one by now.
async fn of_a_first(lock: &LockSpec, session: &TrustedSession) -> Result<Option<Watch>> {
    if lock.strategy == Strategy::Queue {
        if let Some(watched) = found(session.children_and_watch(&lock.path).await)? {
            let first = super::first(lock, session, 1).await;
            return Ok(first.is_ok_and(|first| first.is_empty()).then_some(watched.watch));
        }
    }
    let Watched { value: stat, watch } = session.exists_and_watch(&lock.path).await?;
    Ok(stat.is_none().then_some(watch))
}
