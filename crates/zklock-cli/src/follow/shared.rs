//! The picture that the follower makes, for others to look at.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use zklock::Contender;
use zklock::zookeeper::SessionState;

use super::holds::{Hold, Past};
use super::meters::Meters;
use crate::look::locks::Found;

/// A lock that somebody holds or waits for.
#[derive(Clone, Debug)]
pub struct View {
    pub found: Found,
    /// Holders first, then those who wait, in their order.
    pub contenders: Vec<Contender>,
    /// Of those who hold, by token: when that began, as far as it is known.
    pub holds: Vec<Arc<Hold>>,
}

impl View {
    pub fn holder(&self) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.held_since.is_some())
    }

    pub fn waiters(&self) -> usize {
        self.contenders.len() - self.holders()
    }

    pub fn holders(&self) -> usize {
        self.contenders.iter().filter(|contender| contender.held_since.is_some()).count()
    }

    /// When the first of the holds began.
    pub fn since(&self) -> Option<SystemTime> {
        self.holds.iter().map(|hold| hold.began).min()
    }
}

/// All of it at one moment.
#[derive(Clone)]
pub struct Picture {
    /// Grows with every change.
    pub version: u64,
    /// By path.
    pub locks: Vec<Arc<View>>,
    /// Holds that have ended, the last of them last.
    pub past: Past,
    pub connection: SessionState,
    /// Since when the connection is as it is.
    pub connection_since: SystemTime,
    /// So many znodes are to be read.
    pub unread: usize,
    /// All of them were read once.
    pub is_complete: bool,
    /// So many znodes are not followed, for there are too many.
    pub left_out: usize,
    /// The last error, and when it was.
    pub error: Option<(SystemTime, String)>,
}

impl Picture {
    pub fn is_connected(&self) -> bool {
        self.connection == SessionState::Connected
    }

    pub fn held(&self) -> usize {
        self.locks.iter().filter(|lock| lock.holder().is_some()).count()
    }

    pub fn waiting(&self) -> usize {
        self.locks.iter().map(|lock| lock.waiters()).sum()
    }
}

/// Where the follower puts its pictures.
pub struct Shared {
    picture: Mutex<Arc<Picture>>,
    pub meters: Meters,
}

impl Shared {
    pub fn new(meters: Meters) -> Shared {
        let picture = Picture {
            version: 0,
            locks: Vec::new(),
            past: Past::default(),
            connection: SessionState::Connecting,
            connection_since: SystemTime::now(),
            unread: 1,
            is_complete: false,
            left_out: 0,
            error: None,
        };
        Shared { picture: Mutex::new(Arc::new(picture)), meters }
    }

    pub fn picture(&self) -> Arc<Picture> {
        Arc::clone(&self.picture.lock())
    }

    pub fn show(&self, picture: Picture) {
        *self.picture.lock() = Arc::new(picture);
    }
}

/// What a state of the connection is called.
pub fn connection_name(state: SessionState) -> &'static str {
    match state {
        SessionState::Connecting => "connecting",
        SessionState::Connected => "connected",
        SessionState::Suspended => "connection lost",
        SessionState::Lost => "session expired",
        _ => "closed",
    }
}
