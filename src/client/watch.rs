//! Watches as channels, and the table in which they wait for their event.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::error::{Code, Error, Result};
use crate::process::{INHERITED, Process};
use crate::raw::{Event, EventKind};
use crate::runtime::{block_on, block_on_until, wake};
use crate::sync::Mutex;

/// An event of a watched znode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WatchEvent {
    /// The kind of the event.
    pub kind: WatchEventKind,
    /// The znode, by the name with which the watch was set.
    pub path: String,
}

/// The kinds of [`WatchEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WatchEventKind {
    /// The znode was created.
    Created,
    /// The znode was deleted.
    Deleted,
    /// The znode's data changed.
    DataChanged,
    /// A child was created or deleted.
    ChildrenChanged,
}

/// A watch on a znode: a future and a blocking receiver of its one event.
///
/// It survives reconnections. It ends with `SESSION_EXPIRED` when the session is over, and with `CLOSING` when the
/// client is closed.
///
/// # Cancel safety
/// Dropping it removes the watch on this side. The server keeps it until it fires.
#[must_use = "a watch that is dropped is forgotten"]
pub struct Watch {
    event: oneshot::AsyncReceiver<Result<WatchEvent>>,
    forget: Option<Forget>,
    /// Where its event comes.
    process: Process,
}

impl Watch {
    /// A watch that ends with what `event` receives.
    pub(crate) fn new(event: oneshot::AsyncReceiver<Result<WatchEvent>>) -> Watch {
        Watch { event, forget: None, process: Process::this() }
    }

    /// Blocks this thread until the event arrives.
    ///
    /// # Errors
    /// `SESSION_EXPIRED` or `CLOSING` if no event can arrive any more.
    pub fn wait(self) -> Result<WatchEvent> {
        block_on(self)
    }

    /// Its event, if that has come, or why none can come any more. It must not be waited for, or asked, again then.
    pub(crate) fn try_event(&mut self) -> Option<Result<WatchEvent>> {
        match Pin::new(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    /// As [`wait`](Watch::wait), for at most `timeout`. `None` means that the time has passed; the watch stays.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<WatchEvent>> {
        block_on_until(Instant::now().checked_add(timeout), self)
    }
}

impl Future for Watch {
    type Output = Result<WatchEvent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.process.is_this() {
            return Poll::Ready(Err(Error::with_detail("watch", "", Code::CLOSING, INHERITED)));
        }
        Pin::new(&mut self.event)
            .poll(cx)
            .map(|event| event.unwrap_or_else(|_| Err(Error::new("watch", "", Code::CLOSING))))
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.forget.as_ref().map(|forget| &forget.path);
        f.debug_struct("Watch").field("path", &path).finish_non_exhaustive()
    }
}

/// Takes a watch out of its table when its receiver goes.
struct Forget {
    table: Weak<WatchTable>,
    path: Arc<str>,
    id: u64,
    process: Process,
}

impl Drop for Forget {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade().filter(|_| self.process.is_this()) {
            table.forget(&self.path, self.id);
        }
    }
}

/// The object of a watch. It decides which events end the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchOf {
    Data,
    Existence,
    Children,
}

impl WatchOf {
    const ALL: [WatchOf; 3] = [WatchOf::Data, WatchOf::Existence, WatchOf::Children];

    fn ends_with(self, event: EventKind) -> bool {
        match event {
            EventKind::CREATED | EventKind::CHANGED => self != WatchOf::Children,
            EventKind::CHILD => self == WatchOf::Children,
            EventKind::DELETED | EventKind::NOT_WATCHING => true,
            _ => false,
        }
    }
}

/// The watches of one session, by path.
///
/// An entry is made by the completion of the read that set the watch, and taken by the event. Both
/// run on the C client's completion thread in the server's order, so no event can slip between.
#[derive(Default)]
pub(super) struct WatchTable {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    by_path: HashMap<Arc<str>, Vec<Entry>>,
    /// Set once no event can come any more.
    closed: Option<Code>,
}

struct Entry {
    id: u64,
    of: WatchOf,
    event: oneshot::Sender<Result<WatchEvent>>,
}

impl WatchTable {
    pub(super) fn add(self: &Arc<Self>, path: impl Into<Arc<str>>, of: WatchOf) -> Watch {
        let path = path.into();
        let (send, event) = oneshot::async_channel();
        let mut entries = self.entries.lock();
        if let Some(code) = entries.closed {
            drop(entries);
            let _ = send.send(Err(Error::new("watch", &path, code)));
            return Watch::new(event);
        }
        let id = entries.next;
        entries.next += 1;
        // Mostly there is one for a path.
        let of_path = entries.by_path.entry(Arc::clone(&path));
        of_path.or_insert_with(|| Vec::with_capacity(1)).push(Entry { id, of, event: send });
        let process = Process::this();
        let forget = Forget { table: Arc::downgrade(self), path, id, process };
        Watch { event, forget: Some(forget), process }
    }

    /// Ends the watches that the event is for. Others may be listening for it too, so an event
    /// without watches is nothing strange.
    pub(super) fn fire(&self, event: &Event) {
        let mut fired: Vec<Entry> = Vec::new();
        {
            let mut entries = self.entries.lock();
            if let Some(waiting) = entries.by_path.get_mut(&*event.path) {
                let (ended, kept) = std::mem::take(waiting)
                    .into_iter()
                    .partition(|entry| entry.of.ends_with(event.kind));
                fired = ended;
                *waiting = kept;
                if waiting.is_empty() {
                    entries.by_path.remove(&*event.path);
                }
            }
        }
        for entry in fired {
            let path = event.path.clone();
            let fired = match event.kind {
                EventKind::CREATED => Ok(WatchEvent { kind: WatchEventKind::Created, path }),
                EventKind::DELETED => Ok(WatchEvent { kind: WatchEventKind::Deleted, path }),
                EventKind::CHANGED => Ok(WatchEvent { kind: WatchEventKind::DataChanged, path }),
                EventKind::CHILD => Ok(WatchEvent { kind: WatchEventKind::ChildrenChanged, path }),
                _ => Err(Error::new("watch", &path, Code::NO_WATCHER)),
            };
            wake::answer(entry.event, fired);
        }
    }

    /// Ends every watch, now and later, with that code.
    pub(super) fn close(&self, code: Code) {
        let ended = {
            let mut entries = self.entries.lock();
            entries.closed.get_or_insert(code);
            std::mem::take(&mut entries.by_path)
        };
        for (path, waiting) in ended {
            for entry in waiting {
                wake::send(entry.event, Err(Error::new("watch", &path, code)));
            }
        }
    }

    fn forget(&self, path: &str, id: u64) {
        let mut entries = self.entries.lock();
        if let Some(waiting) = entries.by_path.get_mut(path) {
            waiting.retain(|entry| entry.id != id);
            if waiting.is_empty() {
                entries.by_path.remove(path);
            }
        }
    }

    /// Whether somebody waits for an event of that path.
    #[cfg(test)]
    pub(super) fn waits_for(&self, path: &str) -> bool {
        self.entries.lock().by_path.contains_key(path)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().by_path.values().map(Vec::len).sum()
    }
}

#[cfg(zklock_loom)]
#[path = "../../tests/inside/interleavings/watches.rs"]
mod interleavings;
mod room;

pub(crate) use room::{WatchFor, WatchRoom};

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, path: &str) -> Event {
        Event { kind, path: path.to_owned() }
    }

    #[test]
    fn each_event_ends_the_watches_it_is_for_and_no_others() {
        let table = Arc::new(WatchTable::default());
        let mut data = table.add("/a", WatchOf::Data);
        let mut children = table.add("/a", WatchOf::Children);
        table.fire(&event(EventKind::CHANGED, "/a"));
        assert_eq!(
            data.wait_timeout(Duration::ZERO).unwrap().unwrap().kind,
            WatchEventKind::DataChanged
        );
        assert!(children.wait_timeout(Duration::ZERO).is_none());
        table.fire(&event(EventKind::DELETED, "/a"));
        assert_eq!(
            children.wait_timeout(Duration::ZERO).unwrap().unwrap().kind,
            WatchEventKind::Deleted
        );
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_session_event_ends_no_watch() {
        let table = Arc::new(WatchTable::default());
        let mut watch = table.add("", WatchOf::Data);
        table.fire(&event(EventKind::SESSION, ""));
        assert!(watch.wait_timeout(Duration::ZERO).is_none());
    }

    #[test]
    fn a_dropped_watch_leaves_nothing_behind() {
        let table = Arc::new(WatchTable::default());
        let first = table.add("/a", WatchOf::Data);
        let second = table.add("/a", WatchOf::Data);
        drop(first);
        assert_eq!(table.len(), 1);
        drop(second);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_dropped_watch_leaves_the_others_on_its_path() {
        let table = Arc::new(WatchTable::default());
        let [first, dropped, last] = [(); 3].map(|()| table.add("/a", WatchOf::Data));
        drop(dropped);
        table.fire(&event(EventKind::DELETED, "/a"));
        for kept in [first, last] {
            assert_eq!(kept.wait().unwrap().kind, WatchEventKind::Deleted);
        }
    }

    #[test]
    fn a_closed_table_ends_watches_before_and_after() {
        let table = Arc::new(WatchTable::default());
        let before = table.add("/a", WatchOf::Data);
        table.close(Code::SESSION_EXPIRED);
        assert_eq!(before.wait().unwrap_err().code(), Code::SESSION_EXPIRED);
        let after = table.add("/a", WatchOf::Data);
        assert_eq!(after.wait().unwrap_err().code(), Code::SESSION_EXPIRED);
    }
}
