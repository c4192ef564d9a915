//! Watches the znodes of locks that are held for longer: whether somebody else deletes them, or writes into one what is
//! wanted of its holder.
//!
//! A watch costs a request, so claims that are held for less than 100 ms go without. One task for all claims of a client
//! looks at those that have become so old, and ends when there are none.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_lite::future::or;
use parking_lot::Mutex;

use super::Tenure;
use crate::client::{Watch, WatchEventKind, WatchFor, Znode};
use crate::error::{Error, Result};
use crate::retry;
use crate::runtime::{Timer, now};
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::shortcuts::succession::UNWATCHED;

/// The pause where so much is watched that there is no room for this.
const WITHOUT_ROOM: Duration = Duration::from_secs(5);

/// A request that the servers refuse is not repeated soon: the session may lack a permission.
fn pause_after(error: &Error) -> Duration {
    if error.code().is_server_decision() { WITHOUT_ROOM } else { retry::LATER }
}

/// The claims that a client holds and does not watch yet, the oldest first.
#[derive(Default)]
struct Unwatched {
    claims: VecDeque<UnwatchedClaim>,
    is_looked_at: bool,
}

struct UnwatchedClaim {
    tenure: Weak<Tenure>,
    czxid: i64,
    watched_from: Instant,
}

/// Watches the tenure's claim with that czxid once it is old enough, if the tenure has it by then.
pub(crate) fn watch_once_old(tenure: &Arc<Tenure>, czxid: i64) {
    let unwatched = tenure.client.registry.of::<Mutex<Unwatched>>("");
    let watched_from = now() + UNWATCHED;
    let claim = UnwatchedClaim { tenure: Arc::downgrade(tenure), czxid, watched_from };
    let mut all = unwatched.lock();
    all.claims.push_back(claim);
    if !std::mem::replace(&mut all.is_looked_at, true) {
        drop(all);
        tenure.client.spawn(watch_old_ones(unwatched, watched_from));
    }
}

async fn watch_old_ones(unwatched: Arc<Mutex<Unwatched>>, first: Instant) {
    let mut next = Some(first);
    while let Some(at) = next {
        Timer::at(at).await;
        let old;
        (old, next) = unwatched.lock().take_old();
        for claim in old {
            match claim.tenure.upgrade() {
                Some(tenure) if tenure.ended().is_none() => watch(&tenure, claim.czxid),
                Some(tenure) => {
                    let client = Arc::clone(&tenure.client);
                    client.spawn(async move { tenure.delete_lost_claims().await });
                }
                None => {}
            }
        }
    }
}

impl Unwatched {
    /// Takes what is old enough, or held no more. Gives also when there is more to take.
    fn take_old(&mut self) -> (Vec<UnwatchedClaim>, Option<Instant>) {
        let (mut old, now) = (Vec::new(), now());
        let is_due =
            |claim: &UnwatchedClaim| claim.watched_from <= now || claim.tenure.strong_count() == 0;
        while self.claims.front().is_some_and(is_due) {
            old.extend(self.claims.pop_front());
        }
        let next = self.claims.front().map(|claim| claim.watched_from);
        self.is_looked_at = next.is_some();
        (old, next)
    }
}

/// Ends the tenure when another client deletes a znode of this claim, or asks for a break. Ends itself with the claim, or
/// with trust in the session.
fn watch(tenure: &Arc<Tenure>, czxid: i64) {
    let later = if czxid == tenure.node.czxid {
        None
    } else {
        let Some(node) = tenure.nodes().into_iter().find(|own| own.czxid == czxid) else { return };
        Some(Box::new(node))
    };
    let node = later.as_deref().unwrap_or(&tenure.node);
    let znodes = [Some(Arc::clone(&node.path)), node.second.clone()];
    for path in znodes.into_iter().flatten() {
        let watched = Watching { tenure: Arc::clone(tenure), later: later.clone(), path };
        // As many as locks are held: what is there for a moment, or seldom, is in boxes.
        tenure.client.spawn(async move {
            match watched.node().requests_at().cloned() {
                None => watched.claim(true).await,
                Some(directory) => {
                    let requests = watched.directory(&directory);
                    Box::pin(or(watched.claim(false), requests)).await;
                }
            }
            Box::pin(watched.tenure.delete_lost_claims()).await;
        });
    }
}

struct Watching {
    tenure: Arc<Tenure>,
    /// The claim, unless it is the one that the tenure began with.
    later: Option<Box<Node>>,
    path: Arc<str>,
}

impl Watching {
    fn node(&self) -> &Node {
        self.later.as_deref().unwrap_or(&self.tenure.node)
    }

    /// Watches it; what is wanted of its holder may stand in it.
    async fn claim(&self, has_requests: bool) {
        let (tenure, node) = (&self.tenure, self.node());
        loop {
            let (broken, watch) = match Box::pin(self.look(&self.path)).await {
                None => return,
                Some(Ok((found, watch))) if found.stat.czxid == node.czxid => {
                    (has_requests.then(|| tenure.read_requests(&found.data)).flatten(), watch)
                }
                // Another's by now, or nobody's.
                Some(_) => break,
            };
            if let Some(grace) = broken {
                return self.delete_after(grace);
            }
            let lost = async {
                node.session.lost().await;
                None
            };
            match or(async { watch.await.ok() }, lost).await {
                Some(event) if event.kind == WatchEventKind::Deleted => break,
                // Somebody wrote to it.
                Some(_) => continue,
                None => return,
            }
        }
        // The tenure may have deleted it.
        if tenure.ended().is_none() && tenure.has(node) {
            // What else it has protects nothing any more, and stands in the way of others.
            tenure.end_deleted();
        }
    }

    /// Watches the directory for what is wanted of the holder.
    async fn directory(&self, path: &Arc<str>) {
        while let Some(Ok((found, watch))) = Box::pin(self.look(path)).await {
            if let Some(grace) = self.tenure.read_requests(&found.data) {
                self.delete_after(grace);
                break;
            }
            if watch.await.is_err() {
                break;
            }
        }
        // The znode itself says when it is over.
        std::future::pending::<()>().await;
    }

    /// Unless the guard is dropped before that.
    fn delete_after(&self, grace: Duration) {
        let tenure = Arc::downgrade(&self.tenure);
        self.tenure.client.spawn(async move {
            Timer::after(grace).await;
            if let Some(tenure) = tenure.upgrade() {
                drop(tenure.delete_claims());
            }
        });
    }

    /// Reads and watches a znode as soon as there is room for that; an error says that it is not there. `None` once the
    /// tenure, its claim or its session is over.
    async fn look(&self, path: &Arc<str>) -> Option<Result<(Znode, Watch)>> {
        let (tenure, node) = (&self.tenure, self.node());
        let session = &node.session;
        while tenure.ended().is_none() && tenure.has(node) {
            let pause = if session.has_room_to_watch(path, WatchFor::Deletion) {
                match session.get_and_watch(Arc::clone(path)).await {
                    Err(error) if error.is_session_over() => return None,
                    Err(error) if !error.is_no_node() => pause_after(&error),
                    looked => return Some(looked.map(|found| (found.value, found.watch))),
                }
            } else {
                WITHOUT_ROOM
            };
            or(Timer::after(pause), async {
                Arc::clone(tenure).over().await;
            })
            .await;
        }
        None
    }
}
