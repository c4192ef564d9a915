//! Transactions of other programs that stay open on the rows of one lock.

use std::thread;

use test_support::{TIMEOUT, acquire_in_background};

use crate::place::Elsewhere;

/// `hold` begins a transaction that locks the row of the only lock that was ever used, and gives what ends it.
pub fn other_locks_go_on<E: FnOnce()>(server: &dyn Elsewhere, hold: impl FnOnce() -> E) {
    let store = server.connect();
    let (stuck, beside) = (store.lock("/locks/stuck"), store.lock("/locks/beside"));
    let guard = stuck.acquire().wait().unwrap();
    let end = hold();
    let waiting = acquire_in_background(&stuck);
    let releasing = thread::spawn(move || guard.release().wait());
    for _ in 0..3 {
        let other = beside.acquire().within(TIMEOUT).wait().unwrap();
        other.release().wait().unwrap();
    }
    assert!(!waiting.is_finished() && !releasing.is_finished());
    end();
    releasing.join().unwrap().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}
