//! Nobody holds a lock together with somebody else, and tokens tell who came later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{TIMEOUT, eventually, options};
use zklock::{GuardState, Lock, Strategy};
use zklock_testing::Ensemble;

use crate::bench::{Bench, each_strategy};
use crate::place::each_store;

/// What a lock is to protect, and what shows that it did.
#[derive(Default)]
struct Protected {
    /// Read and written in two steps: an overlap loses an increment.
    counter: AtomicU64,
    occupied: AtomicBool,
    tokens: Mutex<Vec<i64>>,
}

impl Protected {
    fn enter(&self, token: i64) {
        assert!(!self.occupied.swap(true, Ordering::SeqCst), "two holders at once");
        let before = self.counter.load(Ordering::SeqCst);
        thread::yield_now();
        self.tokens.lock().push(token);
        self.counter.store(before + 1, Ordering::SeqCst);
        assert!(self.occupied.swap(false, Ordering::SeqCst), "two holders at once");
    }

    fn expect_entered(&self, times: usize) {
        let tokens = self.tokens.lock();
        assert_eq!(self.counter.load(Ordering::SeqCst), times as u64);
        assert_eq!(tokens.len(), times);
        assert!(tokens.is_sorted_by(|a, b| a < b), "tokens do not grow: {tokens:?}");
    }
}

const THREADS: usize = 4;
const ROUNDS: usize = 25;

fn contend(locks: Vec<Lock>) {
    let protected = Arc::new(Protected::default());
    let times = locks.len() * ROUNDS;
    let threads: Vec<_> = locks
        .into_iter()
        .enumerate()
        .map(|(thread, lock)| {
            let protected = Arc::clone(&protected);
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
                    protected.enter(guard.fencing_token());
                    // All three ways to let go.
                    match (thread + round) % 3 {
                        0 => guard.release().wait().unwrap(),
                        1 => drop(guard.release()),
                        _ => drop(guard),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    protected.expect_entered(times);
}

each_store! {
    fn clients_exclude_one_another(place) {
        contend((0..THREADS).map(|_| place.lock()).collect());
        place.expect_free();
    }

    fn threads_of_one_client_exclude_one_another(place) {
        let lock = place.lock();
        // Clones of a lock, and locks made apart.
        let locks = (0..THREADS).map(|n| if n % 2 == 0 { lock.clone() } else { place.again(&lock) });
        contend(locks.collect());
        place.expect_free();
    }
}

each_strategy! {
    fn a_client_that_tries_beside_those_that_wait_excludes_them(strategy) {
        let bench = Bench::shared();
        let protected = Arc::new(Protected::default());
        let waiting = bench.direct();
        let lock = bench.lock(&waiting, strategy);
        let inside = Arc::clone(&protected);
        let waiter = thread::spawn(move || {
            for _ in 0..ROUNDS {
                let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
                inside.enter(guard.fencing_token());
            }
        });
        let client = bench.direct();
        let lock = bench.lock(&client, strategy);
        let mut entered = ROUNDS;
        while !waiter.is_finished() {
            if let Some(guard) = lock.try_acquire().wait().unwrap() {
                protected.enter(guard.fencing_token());
                guard.release().wait().unwrap();
                entered += 1;
            }
        }
        waiter.join().unwrap();
        protected.expect_entered(entered);
    }
}

/// What one of several contenders does for as long as it may.
struct Worker {
    lock: Lock,
    protected: Arc<Protected>,
    entered: Arc<AtomicU64>,
}

impl Worker {
    fn work(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let guard = self.lock.acquire().within(2 * TIMEOUT).wait().unwrap();
            // A holder that was told to stop does not write.
            if guard.state() == GuardState::Held {
                self.protected.enter(guard.fencing_token());
                self.entered.fetch_add(1, Ordering::SeqCst);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn the_death_of_the_leader_breaks_neither_exclusion_nor_progress() {
    let ensemble = Ensemble::start(3).unwrap();
    let _busy = ensemble.keep_busy().unwrap();
    let stop = AtomicBool::new(false);
    let mut counts = Vec::new();
    let mut workers = Vec::new();
    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        let protected = Arc::new(Protected::default());
        let entered = Arc::new(AtomicU64::new(0));
        for _ in 0..2 {
            let client = options().connect(&ensemble.hosts()).wait().unwrap();
            let lock = client.lock(&format!("/deep/{strategy}")).strategy(strategy);
            let (protected, entered) = (Arc::clone(&protected), Arc::clone(&entered));
            workers.push(Worker { lock, protected, entered });
        }
        counts.push((protected, entered));
    }
    let entered =
        || counts.iter().map(|(_, entered)| entered.load(Ordering::SeqCst)).min().unwrap();
    thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| worker.work(&stop));
        }
        // Also when a check fails: the workers must come to an end.
        let end = Stop(&stop);
        eventually("they work", || entered() > 10);
        let mut leader = None;
        eventually("a leader says so", || {
            leader = ensemble.leader();
            leader.is_some()
        });
        let leader = leader.unwrap();
        ensemble.member(leader).kill();
        ensemble.wait_for_quorum(TIMEOUT).unwrap();
        let before: Vec<u64> =
            counts.iter().map(|(_, count)| count.load(Ordering::SeqCst)).collect();
        let now = || counts.iter().map(|(_, count)| count.load(Ordering::SeqCst));
        eventually("all go on under another leader", || {
            now().zip(&before).all(|(now, before)| now > before + 10)
        });
        ensemble.member(leader).start_again().unwrap();
        drop(end);
    });
    for (protected, entered) in &counts {
        protected.expect_entered(entered.load(Ordering::SeqCst) as usize);
    }
}

/// Stops the workers when it goes.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
