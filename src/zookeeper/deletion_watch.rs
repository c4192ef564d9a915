//! Watches the znodes of locks that are held for longer: whether somebody else deletes them, or writes into one what is
//! wanted of its holder.
//!
//! A watch costs a request, so short tenures go without. One task for all tenures of a lock looks
//! every 100 ms for those that have become old enough, and ends when there are none.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_lite::future::or;
use parking_lot::Mutex;

use super::tenure::Tenure;
use crate::client::{ClientInner, WatchEventKind, WatchFor};
use crate::lock::LostReason;
use crate::runtime::{Timer, now};

/// From how long on a tenure is watched.
const LONG: Duration = Duration::from_millis(100);
/// The pause before a look whose outcome is unknown is repeated.
const AFTER_TROUBLE: Duration = Duration::from_millis(50);
/// The pause where so much is watched that there is no room for this.
const WITHOUT_ROOM: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct DeletionWatch {
    posts: Mutex<Posts>,
}

#[derive(Default)]
struct Posts {
    /// Tenures that are not watched yet.
    young: Vec<Weak<Tenure>>,
    running: bool,
}

impl DeletionWatch {
    pub(super) fn add(self: &Arc<Self>, tenure: &Arc<Tenure>) {
        let mut posts = self.posts.lock();
        posts.young.push(Arc::downgrade(tenure));
        if !posts.running {
            posts.running = true;
            let client = Arc::clone(&tenure.client);
            let rounds = Arc::clone(self).make_rounds(Arc::clone(&client));
            drop(posts);
            client.spawn(rounds);
        }
    }

    async fn make_rounds(self: Arc<Self>, client: Arc<ClientInner>) {
        loop {
            Timer::after(LONG).await;
            let mut old = Vec::new();
            {
                let mut posts = self.posts.lock();
                posts.young.retain(|tenure| match tenure.upgrade() {
                    Some(tenure) if tenure.ended().is_some() => false,
                    Some(tenure) if now() - tenure.since >= LONG => {
                        old.push(tenure);
                        false
                    }
                    Some(_) => true,
                    None => false,
                });
                if old.is_empty() && posts.young.is_empty() {
                    posts.running = false;
                    return;
                }
            }
            for tenure in old {
                client.spawn(watch(tenure));
            }
        }
    }
}

/// Ends the tenure when its znode is deleted, or says that it is broken. Ends itself with the znode or the session.
async fn watch(tenure: Arc<Tenure>) {
    while tenure.ended().is_none() {
        if !tenure.node.session.has_room_to_watch(&tenure.node.path, WatchFor::Deletion) {
            let pause = Timer::after(WITHOUT_ROOM);
            or(pause, async {
                tenure.over().await;
            })
            .await;
            continue;
        }
        match tenure.node.session.get_and_watch(&tenure.node.path).await {
            Ok(found) if found.value.stat.czxid == tenure.node.czxid => {
                if let Some(grace) = tenure.heed(&found.value.data) {
                    Timer::after(grace).await;
                    return drop(tenure.delete_broken());
                }
                match found.watch.await {
                    Ok(event) if event.kind == WatchEventKind::Deleted => break,
                    // Somebody wrote to it.
                    Ok(_) => continue,
                    Err(_) => return,
                }
            }
            // Another's by now, or nobody's.
            Ok(_) => break,
            Err(error) if error.is_no_node() => break,
            Err(error) if error.is_session_over() => return,
            Err(_) => {
                Timer::after(AFTER_TROUBLE).await;
            }
        }
    }
    tenure.end(LostReason::Deleted);
}
