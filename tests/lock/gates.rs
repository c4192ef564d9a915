//! Transactions of other programs that stay open on the rows of one lock.

use std::time::{Duration, Instant};

use test_support::{TIMEOUT, acquire_in_background};
use zklock::Store;

use crate::place::Elsewhere;

/// `hold` begins a transaction that locks the row of the only lock that was ever used, and gives what ends it.
pub fn other_locks_go_on<E: FnOnce()>(server: &dyn Elsewhere, hold: impl FnOnce() -> E) {
    const READERS: u32 = 20;
    let store = server.connect();
    let stuck = store.read_write("/locks/stuck");
    let guards: Vec<_> = (0..READERS).map(|_| stuck.read().acquire().wait().unwrap()).collect();
    let end = hold();
    let waiting = acquire_in_background(&stuck.write());
    let mut releasing: Vec<_> = Vec::new();
    let mut guards = guards.into_iter();
    releasing.extend(guards.next().map(|guard| guard.release()));
    let beside_one = round(&store);
    releasing.extend(guards.map(|guard| guard.release()));
    // Each is tried until the database says that others are there. A busy machine may stand still in one round.
    let is_quick = |_| round(&store) < beside_one * (READERS / 3);
    assert!((0..10).any(is_quick), "a round took {beside_one:?} beside one");
    assert!(!waiting.is_finished());
    let witness = server.connect().read_write("/locks/stuck").write();
    assert_eq!(witness.contenders().wait().unwrap().len(), READERS as usize);
    end();
    for releasing in releasing {
        releasing.within(TIMEOUT).wait().unwrap();
    }
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

/// How long it takes to acquire another lock and to release it.
fn round(store: &Store) -> Duration {
    let begun = Instant::now();
    for _ in 0..3 {
        let guard = store.lock("/locks/beside").acquire().within(TIMEOUT).wait().unwrap();
        guard.release().wait().unwrap();
    }
    begun.elapsed()
}
