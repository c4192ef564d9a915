//! A claim, as the client that has made it knows it.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use uuid::Uuid;

use super::database::Row;
use super::session::Session;
use crate::lock::{
    AcquireTrace, Contender, HoldTrace, Kind, LostReason, MAX_TEXT, Requests, with_owner,
};
use crate::runtime::Latest;
use crate::text::one_line;

/// Where a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Waits,
    Holds,
    Over(LostReason),
}

pub(super) struct Claim {
    pub(super) lock: Arc<str>,
    /// Of no session yet.
    row: Row,
    place: OnceLock<Place>,
    pub(super) status: Latest<Status>,
    /// Why somebody wants it to end.
    pub(super) requests: Requests,
    /// The contender that keeps it out, as last seen.
    pub(super) ahead: Mutex<Option<Contender>>,
    trace: HoldTrace,
}

/// The path that names a claim.
pub(crate) fn path_of(lock: &str, number: i64) -> String {
    format!("{}/{number:010}", lock.trim_end_matches('/'))
}

/// Where it is.
pub(super) struct Place {
    pub(super) session: Arc<Session>,
    pub(super) number: i64,
}

impl Claim {
    /// Of the host, the process and the thread that call this.
    pub(super) fn new(lock: &Arc<str>, kind: Kind, limit: u32, label: &str) -> Arc<Claim> {
        let (id, session, path) = (Uuid::new_v4(), Uuid::nil(), lock.to_string());
        let row = with_owner(|host, pid, thread| {
            let [host, thread, label] = [host, thread, label].map(|text| one_line(text, MAX_TEXT));
            Row { id, session, lock: path, kind, limit, host, pid, thread, label }
        });
        Arc::new(Claim {
            lock: Arc::clone(lock),
            row,
            place: OnceLock::new(),
            status: Latest::new(Status::Waits),
            requests: Requests::default(),
            ahead: Mutex::default(),
            trace: HoldTrace::default(),
        })
    }

    pub(super) fn id(&self) -> Uuid {
        self.row.id
    }

    pub(super) fn kind(&self) -> Kind {
        self.row.kind
    }

    /// As it is to be made.
    pub(super) fn row(&self, session: Uuid) -> Row {
        Row { session, ..self.row.clone() }
    }

    /// It was made.
    pub(super) fn is_at(&self, session: &Arc<Session>, number: i64) {
        let _ = self.place.set(Place { session: Arc::clone(session), number });
    }

    /// Where it was made, once that is known.
    pub(super) fn place(&self) -> Option<&Place> {
        self.place.get()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.status.get(), Status::Over(_))
    }

    /// Once it is over, it stays over, for its first reason.
    pub(super) fn set(&self, new: Status) {
        self.status.update(|status| {
            let changes = *status != new && !matches!(status, Status::Over(_));
            if changes {
                *status = new;
            }
            changes
        });
        if matches!(new, Status::Over(_)) {
            self.trace_end();
        }
    }

    /// Notes the hold, which may be over by now, for the log.
    pub(super) fn trace(&self, acquire: &AcquireTrace) {
        self.trace.begin(acquire, &self.path(), self.token());
        self.trace_end();
    }

    fn trace_end(&self) {
        if let Status::Over(reason) = self.status.get() {
            self.trace.end(|| (self.path(), self.token()), reason);
        }
    }

    /// 0 until it is made.
    pub(super) fn token(&self) -> i64 {
        self.place().map_or(0, |place| place.number)
    }

    /// The path that names it.
    pub(super) fn path(&self) -> Arc<str> {
        path_of(&self.lock, self.token()).into()
    }

    /// Whether it asks for more permits than that.
    pub(super) fn wants_more_than(&self, limit: u32) -> bool {
        matches!(self.kind(), Kind::Permits(number) if number > limit)
    }
}
