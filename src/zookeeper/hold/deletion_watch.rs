//! Watches the znodes of locks that are held for longer: whether somebody else deletes them, or writes into one what is
//! wanted of its holder.
//!
//! A watch costs a request, so tenures of less than 100 ms go without. One task for all tenures of a lock looks at those
//! that have become so old, and ends when there are none.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_lite::future::or;
use parking_lot::Mutex;

use super::Tenure;
use crate::client::{Watch, WatchEventKind, WatchFor, Znode};
use crate::error::Result;
use crate::retry;
use crate::runtime::{Timer, now};
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::shortcuts::succession::UNWATCHED;

/// The pause where so much is watched that there is no room for this.
const WITHOUT_ROOM: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct DeletionWatch {
    unwatched: Mutex<Unwatched>,
}

#[derive(Default)]
struct Unwatched {
    tenures: Vec<Weak<Tenure>>,
    is_looked_at: bool,
}

impl DeletionWatch {
    pub(crate) fn add(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let mut unwatched = self.unwatched.lock();
        unwatched.tenures.push(Arc::downgrade(tenure));
        if !unwatched.is_looked_at {
            unwatched.is_looked_at = true;
            let client = Arc::clone(&tenure.client);
            let task = Arc::clone(self).watch_old_ones(tenure.since + UNWATCHED);
            drop(unwatched);
            client.spawn(task);
        }
    }

    async fn watch_old_ones(self: Arc<Self>, first: Instant) {
        let mut next = Some(first);
        while let Some(at) = next.take() {
            Timer::at(at).await;
            let mut old = Vec::new();
            {
                let mut unwatched = self.unwatched.lock();
                unwatched.tenures.retain(|tenure| {
                    let tenure = tenure.upgrade().filter(|tenure| tenure.ended().is_none());
                    let Some(tenure) = tenure else { return false };
                    let is_old_at = tenure.since + UNWATCHED;
                    if is_old_at <= now() {
                        old.push(tenure);
                        return false;
                    }
                    next = Some(next.map_or(is_old_at, |next| next.min(is_old_at)));
                    true
                });
                unwatched.is_looked_at = next.is_some();
            }
            for tenure in old {
                watch(&tenure, None);
            }
        }
    }
}

/// Watches a claim that a tenure has got besides its first, or in the place of that.
pub(crate) async fn watch_later(tenure: Arc<Tenure>, node: Node) {
    let over = async {
        tenure.over().await;
    };
    or(Timer::after(UNWATCHED), over).await;
    watch(&tenure, Some(node));
}

/// Ends the tenure when a znode of that claim of its is deleted (its first one, unless it is named), or somebody has it
/// broken. Ends itself with the claim or the session.
fn watch(tenure: &Arc<Tenure>, later: Option<Node>) {
    let node = later.as_ref().unwrap_or(&tenure.node);
    let znodes = [Some(Arc::clone(&node.path)), node.second.clone()];
    for path in znodes.into_iter().flatten() {
        let later = later.clone().map(Box::new);
        let watched = Watching { tenure: Arc::clone(tenure), later, path };
        // As many as locks are held: what is there for a moment, or seldom, is in boxes.
        tenure.client.spawn(async move {
            match watched.node().requests_at().cloned() {
                None => watched.claim(true).await,
                Some(directory) => {
                    let requests = watched.directory(&directory);
                    Box::pin(or(watched.claim(false), requests)).await;
                }
            }
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
                return Box::pin(self.delete_after(grace)).await;
            }
            match watch.await {
                Ok(event) if event.kind == WatchEventKind::Deleted => break,
                // Somebody wrote to it.
                Ok(_) => continue,
                Err(_) => return,
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
                self.delete_after(grace).await;
                break;
            }
            if watch.await.is_err() {
                break;
            }
        }
        // The znode itself says when it is over.
        std::future::pending::<()>().await;
    }

    async fn delete_after(&self, grace: Duration) {
        Timer::after(grace).await;
        drop(self.tenure.delete_claims());
    }

    /// Reads and watches a znode as soon as there is room for that; an error says that it is not there. `None` once the
    /// tenure, its claim or its session is over.
    async fn look(&self, path: &Arc<str>) -> Option<Result<(Znode, Watch)>> {
        let (tenure, node) = (&self.tenure, self.node());
        let session = &node.session;
        while tenure.ended().is_none() && tenure.has(node) {
            if !session.has_room_to_watch(path, WatchFor::Deletion) {
                let pause = Timer::after(WITHOUT_ROOM);
                or(pause, async {
                    Arc::clone(tenure).over().await;
                })
                .await;
                continue;
            }
            match session.get_and_watch(Arc::clone(path)).await {
                Err(error) if error.is_session_over() => return None,
                Err(error) if !error.is_no_node() => Timer::after(retry::LATER).await,
                looked => return Some(looked.map(|found| (found.value, found.watch))),
            }
        }
        None
    }
}
