//! Those who stand in a queue, one after the other.

use std::thread::JoinHandle;

use test_support::{acquire_in_background, eventually};
use zklock::{Guard, Lock, LockError};

pub type Waiting = JoinHandle<Result<Guard, LockError>>;

/// Acquires in the background, and returns when the claim is in the queue as one of so many.
pub fn join(lock: &Lock, place: usize) -> Waiting {
    let waiting = acquire_in_background(lock);
    eventually("it is in line", || lock.contenders().wait().unwrap().len() == place);
    waiting
}

pub fn held(waiting: Waiting) -> Guard {
    waiting.join().unwrap().unwrap()
}

pub fn release(guards: impl IntoIterator<Item = Guard>) {
    guards.into_iter().for_each(|guard| guard.release().wait().unwrap());
}
