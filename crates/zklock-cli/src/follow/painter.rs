//! What is known of the locks, as a picture for others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use zklock::Contender;
use zklock::zookeeper::SessionState;

use super::holds::{Holds, Look};
use super::shared::{Picture, Shared, View};
use super::tree::Tree;
use crate::look::locks::Found;

/// No more pictures than one in that time are made.
const FRAME: Duration = Duration::from_millis(200);

/// What a listing showed of a lock whose contenders are being read.
pub struct Listed {
    pub found: Found,
    pub pzxid: Option<i64>,
    /// When that changed, as far as it is known.
    pub changed: Option<SystemTime>,
}

pub struct Painter {
    shared: Arc<Shared>,
    holds: Holds,
    locks: BTreeMap<String, Arc<View>>,
    picture: Picture,
    shown: Option<Instant>,
    is_changed: bool,
}

impl Painter {
    pub fn new(shared: Arc<Shared>) -> Painter {
        let picture = Picture::clone(&shared.picture());
        let (holds, locks) = (Holds::default(), BTreeMap::new());
        Painter { shared, holds, locks, picture, shown: None, is_changed: true }
    }

    pub fn is_connected(&self) -> bool {
        self.picture.is_connected()
    }

    /// Something may look different from now on.
    pub fn change(&mut self) {
        self.is_changed = true;
    }

    pub fn session(&mut self, state: SessionState) {
        match state {
            SessionState::Suspended => self.shared.meters.connection_losses.inc(),
            SessionState::Lost => self.shared.meters.own_sessions_lost.inc(),
            _ => {}
        }
        self.picture.connection = state;
        self.picture.connection_since = SystemTime::now();
    }

    pub fn error(&mut self, error: String) {
        self.shared.meters.errors.inc();
        self.picture.error = Some((SystemTime::now(), error));
    }

    pub fn lock(&mut self, listed: Listed, contenders: Vec<Contender>) {
        let Listed { found, pzxid, changed } = listed;
        let now = SystemTime::now();
        let look = Look { path: &found.path, contenders: &contenders, pzxid, changed, now };
        let holds = self.holds.look(&look, &self.shared.meters);
        if contenders.is_empty() {
            self.locks.remove(&found.path);
        } else {
            let view = Arc::new(View { found, contenders, holds });
            self.locks.insert(view.found.path.clone(), view);
        }
    }

    /// Nobody holds it any more, or waits for it.
    pub fn free(&mut self, path: String, changed: Option<SystemTime>) {
        let found = Found { path, claims: Vec::new() };
        self.lock(Listed { found, pzxid: None, changed }, Vec::new());
    }

    /// Shows what is known, if it has changed; so many are to be read for the first time. Gives when to do so, if it
    /// is too soon.
    pub fn show(&mut self, now: Instant, tree: &Tree, unread: usize) -> Option<Instant> {
        if !self.is_changed {
            return None;
        }
        let next = self.shown.map(|shown| shown + FRAME);
        if next.is_some_and(|next| next > now) {
            return next;
        }
        (self.shown, self.is_changed) = (Some(now), false);
        self.picture.unread = unread;
        self.picture.is_complete |= unread == 0;
        self.picture.version += 1;
        self.picture.locks = self.locks.values().cloned().collect();
        self.picture.past = self.holds.past();
        self.picture.left_out = tree.left_out();
        self.shared.show(self.picture.clone());
        None
    }
}
