//! The table of watches in every interleaving of a few threads: a watch ends once, or is forgotten,
//! and whoever waits for it is woken.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use loom::thread;

use super::*;
use crate::sync::every_interleaving;

fn event(kind: EventKind) -> Event {
    Event { kind, path: "/a".to_owned() }
}

fn looked_at(watch: &mut Watch, waker: &Waker) -> Option<Code> {
    match Pin::new(watch).poll(&mut Context::from_waker(waker)) {
        Poll::Ready(event) => Some(event.err().map_or(Code::OK, |error| error.code())),
        Poll::Pending => None,
    }
}

fn ended(watch: &mut Watch) -> Code {
    looked_at(watch, Waker::noop()).expect("a watch that has ended")
}

/// Counts as the checker does not see: it must not put in order what the table does not.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_watch_that_is_waited_for_ends_once_beside_its_event_and_the_sessions_end() {
    let seen: Arc<std::sync::Mutex<BTreeSet<(bool, Code)>>> = Arc::default();
    let all = Arc::clone(&seen);
    every_interleaving(move || {
        let table = Arc::new(WatchTable::default());
        let mut watch = table.add("/a", WatchOf::Data);
        let others = [EventKind::CHANGED, EventKind::DELETED].map(|kind| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.fire(&event(kind)))
        });
        let closer = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.close(Code::SESSION_EXPIRED))
        };
        let woken = Arc::new(Woken::default());
        // The checker does not see a look at the channel, but what goes before: that is taken apart.
        table.len();
        let at_once = looked_at(&mut watch, &Waker::from(Arc::clone(&woken)));
        for other in others.into_iter().chain([closer]) {
            other.join().unwrap();
        }
        let waited = at_once.is_none();
        assert_eq!(woken.0.load(Ordering::SeqCst), usize::from(waited));
        let code = at_once.unwrap_or_else(|| ended(&mut watch));
        seen.lock().unwrap().insert((waited, code));
        assert_eq!(table.len(), 0);
    });
    let codes = [Code::OK, Code::SESSION_EXPIRED];
    let every_way = codes.iter().flat_map(|code| [(true, *code), (false, *code)]).collect();
    assert_eq!(*all.lock().unwrap(), every_way);
}

#[test]
fn no_watch_that_is_set_beside_the_sessions_end_stays_without_an_answer() {
    every_interleaving(|| {
        let table = Arc::new(WatchTable::default());
        let adders = ["/a", "/b"].map(|path| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.add(path, WatchOf::Children))
        });
        table.close(Code::SESSION_EXPIRED);
        // What is said later changes nothing.
        table.close(Code::CLOSING);
        for adder in adders {
            assert_eq!(ended(&mut adder.join().unwrap()), Code::SESSION_EXPIRED);
        }
        assert_eq!(table.len(), 0);
    });
}

#[test]
fn a_watch_that_is_dropped_beside_an_event_leaves_nothing_and_takes_nothing_from_others() {
    every_interleaving(|| {
        let table = Arc::new(WatchTable::default());
        let dropped = table.add("/a", WatchOf::Children);
        let mut ending = table.add("/a", WatchOf::Existence);
        let mut staying = table.add("/a", WatchOf::Children);
        let dropper = thread::spawn(move || drop(dropped));
        let adder = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.add("/a", WatchOf::Existence))
        };
        table.fire(&event(EventKind::CREATED));
        dropper.join().unwrap();
        let mut added = adder.join().unwrap();
        assert_eq!(ended(&mut ending), Code::OK);
        assert_eq!(looked_at(&mut staying, Waker::noop()), None);
        let came_before = looked_at(&mut added, Waker::noop());
        assert!(came_before.is_none_or(|code| code == Code::OK));
        assert_eq!(table.len(), if came_before.is_some() { 1 } else { 2 });
        table.fire(&event(EventKind::DELETED));
        assert_eq!(ended(&mut staying), Code::OK);
        assert_eq!(came_before.unwrap_or_else(|| ended(&mut added)), Code::OK);
        assert_eq!(table.len(), 0);
    });
}

/// Sets another watch where it is woken, and keeps it.
struct Again {
    table: Arc<WatchTable>,
    next: std::sync::Mutex<Option<Watch>>,
}

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        // Under the table's lock, this would wait for itself.
        let next = self.table.add("/a", WatchOf::Data);
        *self.next.lock().unwrap() = Some(next);
    }
}

#[test]
fn who_is_woken_may_set_the_next_watch_at_once() {
    every_interleaving(|| {
        let table = Arc::new(WatchTable::default());
        let mut watch = table.add("/a", WatchOf::Data);
        let again =
            Arc::new(Again { table: Arc::clone(&table), next: std::sync::Mutex::default() });
        assert_eq!(looked_at(&mut watch, &Waker::from(Arc::clone(&again))), None);
        let closer = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.close(Code::CLOSING))
        };
        table.fire(&event(EventKind::DELETED));
        closer.join().unwrap();
        let mut next = again.next.lock().unwrap().take().expect("it was woken");
        ended(&mut watch);
        // Set before the end or after it: ended by it in any case.
        assert_eq!(ended(&mut next), Code::CLOSING);
        assert_eq!(table.len(), 0);
    });
}
