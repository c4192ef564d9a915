//! The room for watches, which is limited. After each reconnection the C client sets all its watches again in one request.
//! If that is too large for the server, the server ends the connection, again and again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::WatchOf;
use crate::raw::Event;

/// The purpose of a watch. If room is short, less urgent watches are not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFor {
    /// To hear of a deletion that should not happen.
    Deletion,
    /// To wait far back in a queue.
    Later,
    /// To go on.
    Next,
}

/// The cost of a path beside its length.
const OVERHEAD: usize = 4;

/// The room for the watches of one session, in bytes of watched paths.
pub(crate) struct WatchRoom {
    limit: usize,
    /// The prefix that the server sees before each path.
    chroot: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// The C client's watches on each path, also those that nobody waits for any more.
    by_path: HashMap<Arc<str>, Kinds>,
    bytes: usize,
    /// Reserved for watches that wait for the reply to their request.
    reserved: usize,
}

/// The kinds of watches, by number.
type Kinds = [bool; WatchOf::ALL.len()];

/// Room for one watch, until the reply to its request.
pub(crate) struct Reserved {
    room: Arc<WatchRoom>,
    bytes: usize,
}

impl WatchRoom {
    /// `request` is how large a request may be.
    pub(crate) fn new(request: usize, chroot: usize) -> Arc<WatchRoom> {
        // A quarter is for what the program itself watches on a handle of its own.
        Arc::new(WatchRoom { limit: request / 4 * 3, chroot, taken: Mutex::default() })
    }

    fn cost(&self, path: &str) -> usize {
        OVERHEAD + self.chroot + path.len()
    }

    /// Whether there is room for a watch on that path.
    pub(crate) fn has_room_for(&self, path: &str, purpose: WatchFor) -> bool {
        let limit = match purpose {
            WatchFor::Deletion => self.limit / 3,
            WatchFor::Later => self.limit / 3 * 2,
            WatchFor::Next => self.limit,
        };
        let taken = self.taken.lock();
        taken.bytes + taken.reserved + self.cost(path) <= limit || taken.by_path.contains_key(path)
    }

    /// Reserves room; `None` where there is none left.
    pub(crate) fn reserve(self: &Arc<Self>, path: &str, of: WatchOf) -> Option<Reserved> {
        let mut taken = self.taken.lock();
        let is_watched = taken.by_path.get(path).is_some_and(|kinds| kinds[of as usize]);
        let bytes = if is_watched { 0 } else { self.cost(path) };
        if taken.bytes + taken.reserved + bytes > self.limit && bytes > 0 {
            return None;
        }
        taken.reserved += bytes;
        Some(Reserved { room: Arc::clone(self), bytes })
    }

    /// An event ends the watches that it is for.
    pub(crate) fn fired(&self, event: &Event) {
        let mut taken = self.taken.lock();
        let Some(kinds) = taken.by_path.get_mut(&*event.path) else { return };
        let mut ended = 0;
        for of in WatchOf::ALL.into_iter().filter(|of| of.ends_with(event.kind)) {
            ended += usize::from(std::mem::take(&mut kinds[of as usize]));
        }
        let is_empty = !kinds.contains(&true);
        taken.bytes -= ended * self.cost(&event.path);
        if is_empty {
            taken.by_path.remove(&*event.path);
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

impl Reserved {
    /// The watch was set. Called on the completion thread, as [`WatchRoom::fired`] is.
    pub(crate) fn set(self, path: &Arc<str>, of: WatchOf) {
        let mut taken = self.room.taken.lock();
        let kinds = taken.by_path.entry(Arc::clone(path)).or_default();
        if !std::mem::replace(&mut kinds[of as usize], true) {
            taken.bytes += self.room.cost(path);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.room.taken.lock().reserved -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::EventKind;

    fn fired(room: &WatchRoom, kind: EventKind, path: &str) {
        room.fired(&Event { kind, path: path.to_owned() });
    }

    fn watch(room: &Arc<WatchRoom>, path: &str, of: WatchOf) -> bool {
        room.reserve(path, of).map(|reserved| reserved.set(&path.into(), of)).is_some()
    }

    #[test]
    fn what_is_watched_is_counted_once_until_its_event() {
        // Three times "/a" with a chroot of 4 bytes.
        let room = WatchRoom::new(40, 4);
        assert!(watch(&room, "/a", WatchOf::Data));
        assert!(watch(&room, "/a", WatchOf::Children));
        assert!(watch(&room, "/b", WatchOf::Existence));
        assert!(!watch(&room, "/c", WatchOf::Data));
        assert!(watch(&room, "/a", WatchOf::Data), "it is watched already");
        fired(&room, EventKind::CHILD, "/a");
        assert!(watch(&room, "/c", WatchOf::Data));
        assert!(!watch(&room, "/d", WatchOf::Data));
        fired(&room, EventKind::DELETED, "/a");
        fired(&room, EventKind::CREATED, "/b");
        fired(&room, EventKind::CHANGED, "/c");
        let taken = room.taken.lock();
        assert_eq!((taken.bytes, taken.reserved, taken.by_path.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_asked_for_has_its_room_and_a_refusal_gives_it_back() {
        let room = WatchRoom::new(20, 0);
        let first = room.reserve("/a", WatchOf::Data);
        let second = room.reserve("/b", WatchOf::Data);
        assert!(first.is_some() && second.is_some());
        assert!(room.reserve("/c", WatchOf::Data).is_none());
        drop(second);
        assert!(room.reserve("/c", WatchOf::Data).is_some());
    }

    #[test]
    fn the_less_urgent_go_without_first() {
        let room = WatchRoom::new(48, 0);
        let purposes = [WatchFor::Deletion, WatchFor::Later, WatchFor::Next];
        let mut had_room = Vec::new();
        for path in ["/a", "/b", "/c", "/d", "/e", "/f", "/g"] {
            had_room.push(purposes.map(|purpose| room.has_room_for(path, purpose)));
            watch(&room, path, WatchOf::Data);
        }
        let counts: Vec<usize> =
            (0..3).map(|n| had_room.iter().filter(|has| has[n]).count()).collect();
        assert_eq!(counts, [2, 4, 6]);
    }
}
