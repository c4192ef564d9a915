//! Holding without a request, as soon as the claim before ours has gone.
//!
//! The server gives each number once. So if a single claim is before ours and goes, ours is the first. There is one
//! exception: its holder may have replaced it with another claim (`change.rs`), as holders of read/write locks do.
//!
//! A holder may also announce its release: it writes to its znode and deletes it in one transaction, and a watch on the
//! znode reports "changed". A holder is the first, so after that ours is.
//!
//! A write to such a claim is its release because no other client can write to it:
//! - other sessions: its ACL gives WRITE and ADMIN to an identity of the holder's session, and only that session knows the
//!   password. The servers enforce ACLs on this connection: each one that is believed has seen them refuse a write;
//! - the holder's program: the client refuses `set`, `set_acl` and transactions that write to a claim, in every interface;
//! - a handle that the program owns, or a session that another process had: they announce nothing;
//! - a session with super rights can, and a program that writes by the C client's own handle of ours: documented with
//!   `announced_releases`.
//!
//! Some claims go without the release that they were to announce. Then the session has ended, the client has cancelled,
//! or somebody deletes claims by hand and may delete ours next. So a listing decides.
//!
//! Both shortcuts need our own claim to be still there: behind a waiter that has lost its claim, the next waiter watches
//! the same claim. While the session lives, only a deletion by hand takes the claim away. So a claim is believed to be
//! there for its first 100 ms, which saves each short wait a request and an event. If somebody deletes it by hand in that
//! time, its client and the next one may both hold. The look at a hold of 100 ms (`deletion_watch.rs`) ends that, and the
//! fencing tokens still order the two.
//!
//! A claim that waits for longer is watched on the same connection. There, the event of its deletion comes before the
//! events of all later transactions. On another connection, a listing decides.

use std::time::Duration;

use super::continuity::Connection;
use crate::client::{TrustedSession, Watch, WatchEventKind};

/// For how long a claim is believed to be there, and a hold to last, although somebody may have deleted the znode by hand.
pub(crate) const UNWATCHED: Duration = Duration::from_millis(100);

/// The nearest claim before ours, which is watched.
pub(crate) struct Behind {
    /// The transaction that made it.
    pub(crate) czxid: i64,
    /// The connection on which the rest is true.
    pub(crate) connection: Connection,
    /// Whether no other was before ours: when it is deleted, ours is the first.
    pub(crate) is_only: bool,
    /// Whether it says so when it is released: when it is written to, ours is the first.
    pub(crate) is_announced: bool,
    pub(crate) is_followed: bool,
}

impl Behind {
    /// The part of this that is still true after the event.
    pub(crate) fn after(self, event: WatchEventKind) -> Option<Behind> {
        let is_followed = match event {
            WatchEventKind::Deleted if self.is_announced => return None,
            WatchEventKind::Deleted => self.is_only,
            WatchEventKind::DataChanged if self.is_announced => true,
            _ => return None,
        };
        Some(Behind { is_followed, ..self })
    }
}

pub(crate) struct OwnWatch {
    czxid: i64,
    connection: Connection,
    state: WatchState,
}

enum WatchState {
    Watching(Watch),
    /// Its event has come, or none can come any more.
    Over {
        is_deleted: bool,
    },
}

impl OwnWatch {
    pub(crate) async fn begin(session: &TrustedSession, path: &str, czxid: i64) -> OwnWatch {
        let connection = Connection::of(session);
        let state = match session.get_and_watch(path).await {
            Ok(found) if found.value.stat.czxid == czxid => WatchState::Watching(found.watch),
            // Another's by now.
            Ok(_) => WatchState::Over { is_deleted: true },
            Err(error) => WatchState::Over { is_deleted: error.is_no_node() },
        };
        OwnWatch { czxid, connection, state }
    }

    pub(crate) fn is_of(&self, czxid: i64) -> bool {
        self.czxid == czxid
    }

    /// Whether its event has come, and says that the claim was deleted.
    pub(crate) fn is_deleted(&mut self) -> bool {
        if let WatchState::Watching(watch) = &mut self.state {
            if let Some(event) = watch.try_event() {
                let is_deleted = event.is_ok_and(|event| event.kind == WatchEventKind::Deleted);
                self.state = WatchState::Over { is_deleted };
            }
        }
        matches!(self.state, WatchState::Over { is_deleted: true })
    }

    /// Whether that claim of ours is still there, as of the last event on this connection.
    pub(crate) fn is_intact(&mut self, session: &TrustedSession, czxid: i64) -> bool {
        let is_deleted = self.is_deleted();
        let is_watching = !is_deleted && matches!(self.state, WatchState::Watching(_));
        is_watching && self.is_of(czxid) && self.connection == Connection::of(session)
    }
}
