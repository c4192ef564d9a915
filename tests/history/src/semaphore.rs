//! A semaphore whose limit changes.
//!
//! Of holds that certainly hold together, the last one was admitted no earlier than the latest of their calls, and no
//! later than the latest of their returns. So many permits there must have been at some time in between. That is
//! necessary, but not sufficient: the order of admissions is not searched.

use crate::check::{Found, story};
use crate::hold::{Hold, Interval, Lock};

pub fn check(lock: &Lock) -> Vec<Found> {
    let mut holds: Vec<&Hold> = lock.holds.iter().collect();
    holds.sort_by_key(|hold| hold.returned);
    let mut inside: Vec<&Hold> = Vec::new();
    let mut found = Vec::new();
    for hold in holds {
        inside.retain(|before| before.certain_until() > hold.returned.at);
        inside.push(hold);
        let from = inside.iter().map(|hold| hold.called.at).max().unwrap_or(0);
        let taken: usize = inside.iter().map(|hold| hold.permits).sum();
        let limit = highest(lock, from, hold.returned.at);
        if limit.is_some_and(|limit| taken > limit) {
            found.push(("more permits are taken than there are", story(&inside)));
        }
    }
    found
}

/// The highest limit that may have been in force; `None` where nobody has said any.
fn highest(lock: &Lock, from: i64, to: i64) -> Option<usize> {
    // A change that had returned before another was called is over by the time that one returned.
    let ended = lock
        .limits
        .iter()
        .filter(|(change, _)| change.to < from)
        .map(|(change, _)| change.from)
        .max();
    let counts = |change: &&(Interval, usize)| {
        change.0.from <= to && ended.is_none_or(|latest| change.0.to >= latest)
    };
    lock.limits.iter().filter(counts).map(|(_, limit)| *limit).max()
}
