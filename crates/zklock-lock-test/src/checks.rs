//! What a lock promises, held against what the threads see.

use std::fmt;

use parking_lot::Mutex;
use zklock::{LostReason, LostSignal};

/// As many faults are printed in words; the others are counted.
const TOLD: usize = 10;
/// With fewer acquisitions per thread than that, uneven counts say nothing.
const ENOUGH_TO_COMPARE: u64 = 10;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A thread got the lock while another was inside.
    Overlap { inside: usize, inside_token: i64, entered: usize, token: i64 },
    /// A holder's token is not larger than its predecessor's.
    Token { thread: usize, token: i64, before: i64 },
    /// The counter file contradicts our increments.
    Counter { thread: Option<usize>, what: String },
    /// Somebody deleted a holder's node.
    Deleted { thread: usize, token: i64 },
    /// A thread got less than half of its share from a fair queue.
    Starving { thread: usize, acquisitions: u64, mean: u64 },
    /// Nobody got the lock in all the time.
    Idle { why: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Overlap { inside, inside_token, entered, token } => write!(
                f,
                "two holders: thread {entered} got the lock (token {token:#x}) while thread \
                 {inside} was inside and not told of a loss (token {inside_token:#x})"
            ),
            Violation::Token { thread, token, before } => write!(
                f,
                "fencing token: thread {thread} holds with {token:#x}, not more than {before:#x} \
                 of a holder before it"
            ),
            Violation::Counter { thread: Some(thread), what } => {
                write!(f, "counter file, thread {thread}: {what}")
            }
            Violation::Counter { thread: None, what } => write!(f, "counter file: {what}"),
            Violation::Deleted { thread, token } => write!(
                f,
                "deleted: thread {thread} held the lock (token {token:#x}) when somebody deleted \
                 its node"
            ),
            Violation::Starving { thread, acquisitions, mean } => write!(
                f,
                "starvation: thread {thread} got the lock {acquisitions} times, \
                 the threads' mean is {mean}"
            ),
            Violation::Idle { why } => write!(f, "nobody got the lock: {why}"),
        }
    }
}

/// Faults so far: all counted, the first ones kept.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    pub count: u64,
    pub first: Vec<Violation>,
}

impl Violations {
    pub fn add(&mut self, violation: Violation) {
        self.count += 1;
        if self.first.len() < TOLD {
            self.first.push(violation);
        }
    }
}

/// Tells whether a holder knows by now that it has lost the lock.
pub trait Loss: Send {
    fn is_told(&self) -> bool;
}

impl Loss for LostSignal {
    fn is_told(&self) -> bool {
        self.get().is_some_and(|reason| reason != LostReason::Released)
    }
}

struct Holder<L> {
    thread: usize,
    token: i64,
    loss: L,
}

/// Watches over one lock: who is inside, with which token, and what went wrong.
pub struct Checks<L> {
    inner: Mutex<Inner<L>>,
}

struct Inner<L> {
    inside: Vec<Holder<L>>,
    largest_token: Option<i64>,
    violations: Violations,
}

impl<L: Loss> Checks<L> {
    pub fn new() -> Checks<L> {
        let violations = Violations::default();
        Checks { inner: Mutex::new(Inner { inside: Vec::new(), largest_token: None, violations }) }
    }

    /// A thread has acquired the lock. Call it as soon as that is known.
    ///
    /// Whoever is inside then must have been notified that its lock is lost. A thread that was notified
    /// before it got here is no holder any more.
    pub fn enter(&self, thread: usize, token: i64, loss: L) {
        let mut inner = self.inner.lock();
        let Inner { inside, largest_token, violations } = &mut *inner;
        if !loss.is_told() {
            for holder in inside.iter().filter(|holder| !holder.loss.is_told()) {
                let (inside, inside_token) = (holder.thread, holder.token);
                violations.add(Violation::Overlap { inside, inside_token, entered: thread, token });
            }
            match *largest_token {
                Some(before) if token <= before => {
                    violations.add(Violation::Token { thread, token, before });
                }
                _ => *largest_token = Some(token),
            }
        }
        inside.push(Holder { thread, token, loss });
    }

    /// The thread is about to release the lock. Call it before.
    pub fn leave(&self, thread: usize) {
        self.inner.lock().inside.retain(|holder| holder.thread != thread);
    }

    pub fn add(&self, violation: Violation) {
        self.inner.lock().violations.add(violation);
    }

    pub fn into_violations(self) -> Violations {
        self.inner.into_inner().violations
    }
}

/// Threads that got less than half of the mean from a fair queue. One that lost the lock on its way
/// had something else to wait for, and is no evidence.
pub fn starving(per_thread: &[u64], lost: &[u64]) -> Vec<Violation> {
    let total: u64 = per_thread.iter().sum();
    let threads = per_thread.len() as u64;
    if total < ENOUGH_TO_COMPARE * threads {
        return Vec::new();
    }
    let threads_with_counts = per_thread.iter().zip(lost).enumerate();
    threads_with_counts
        .filter(|(_, (count, lost))| **lost == 0 && **count * 2 * threads < total)
        .map(|(thread, (&acquisitions, _))| Violation::Starving {
            thread,
            acquisitions,
            mean: total / threads,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Clone, Default)]
    struct Told(Arc<AtomicBool>);

    impl Loss for Told {
        fn is_told(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn found(checks: Checks<Told>) -> Vec<Violation> {
        checks.into_violations().first
    }

    #[test]
    fn holders_one_after_the_other_are_no_fault() {
        let checks = Checks::new();
        for token in 1..50 {
            let thread = token as usize % 3;
            checks.enter(thread, token, Told::default());
            checks.leave(thread);
        }
        assert_eq!(found(checks), []);
    }

    #[test]
    fn two_holders_at_once_are_reported() {
        let checks = Checks::new();
        checks.enter(1, 10, Told::default());
        checks.enter(2, 11, Told::default());
        checks.leave(1);
        checks.leave(2);
        let overlap = Violation::Overlap { inside: 1, inside_token: 10, entered: 2, token: 11 };
        assert_eq!(found(checks), [overlap]);
    }

    #[test]
    fn a_holder_that_was_told_of_its_loss_before_is_excused() {
        let checks = Checks::new();
        let told = Told::default();
        checks.enter(1, 10, told.clone());
        told.0.store(true, Ordering::SeqCst);
        checks.enter(2, 11, Told::default());
        checks.leave(1);
        checks.leave(2);
        assert_eq!(found(checks), []);
    }

    #[test]
    fn a_holder_that_is_told_only_afterwards_is_not_excused() {
        let checks = Checks::new();
        let told = Told::default();
        checks.enter(1, 10, told.clone());
        checks.enter(2, 11, Told::default());
        told.0.store(true, Ordering::SeqCst);
        assert_eq!(found(checks).len(), 1);
    }

    #[test]
    fn a_thread_that_lost_the_lock_on_its_way_in_overlaps_with_nobody() {
        let checks = Checks::new();
        let told = Told(Arc::new(AtomicBool::new(true)));
        checks.enter(2, 11, Told::default());
        checks.enter(1, 10, told);
        assert_eq!(found(checks), []);
    }

    #[test]
    fn a_token_that_does_not_grow_is_reported() {
        for token in [9, 10] {
            let checks = Checks::new();
            checks.enter(1, 10, Told::default());
            checks.leave(1);
            checks.enter(2, token, Told::default());
            checks.leave(2);
            assert_eq!(found(checks), [Violation::Token { thread: 2, token, before: 10 }]);
        }
    }

    #[test]
    fn a_starving_thread_is_reported() {
        let starved =
            |thread, acquisitions, mean| Violation::Starving { thread, acquisitions, mean };
        assert_eq!(starving(&[100, 49, 100], &[0; 3]), []);
        assert_eq!(starving(&[100, 30, 100], &[0; 3]), [starved(1, 30, 76)]);
        assert_eq!(starving(&[100, 100, 0], &[0; 3]), [starved(2, 0, 66)]);
    }

    #[test]
    fn uneven_counts_of_few_acquisitions_or_after_a_loss_are_no_starvation() {
        assert_eq!(starving(&[9, 0, 9], &[0; 3]), []);
        assert_eq!(starving(&[100, 30, 100], &[0, 1, 0]), []);
        assert_eq!(starving(&[500], &[0]), []);
        assert_eq!(starving(&[0], &[0]), []);
    }

    #[test]
    fn all_faults_are_counted_and_only_the_first_kept() {
        let mut violations = Violations::default();
        for n in 0..1_000 {
            violations.add(Violation::Idle { why: n.to_string() });
        }
        assert_eq!((violations.count, violations.first.len()), (1_000, TOLD));
    }
}
