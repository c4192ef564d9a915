//! Processes that hold a lock in a store of leases: killed, frozen, ended, and many of them.

use std::time::Duration;

use test_support::{Process, TIMEOUT, acquire_in_background, child_about, say};
use zklock::GuardState;

use crate::place::{Elsewhere, patient};

const PATH: &str = "/locks/elsewhere";
const SHORT: Duration = Duration::from_secs(2);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

/// Runs each of these for each such store, with sessions of some length.
macro_rules! each_elsewhere {
    ($(fn $name:ident($at:ident: $lease:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            fn contract($at: &dyn Elsewhere) $body

            #[cfg(feature = "mysql")]
            #[test]
            fn mysql() {
                contract(&crate::mysql::Server::with($lease));
            }

            #[cfg(feature = "postgres")]
            #[test]
            fn postgres() {
                contract(&crate::postgres::Server::with($lease));
            }

            #[cfg(feature = "redis")]
            #[test]
            fn redis() {
                contract(&crate::redis::server_with($lease));
            }

            #[cfg(feature = "sqlite")]
            #[test]
            fn sqlite() {
                contract(&crate::sqlite::file_with($lease));
            }
        }
    )+};
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_lock_is_held_and_looked_at() {
    let Some(about) = child_about() else { return };
    let (millis, address) = about.split_once(' ').unwrap();
    let timeout = Duration::from_millis(millis.parse().unwrap());
    let store = patient(timeout).connect(address).wait().unwrap();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let (token, lost) = (guard.fencing_token(), guard.lost());
    let mut guard = Some(guard);
    say(token);
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
        match (line.trim(), &guard) {
            ("look", Some(guard)) => say(format_args!("{:?} {:?}", guard.state(), lost.get())),
            ("release", _) => {
                let released = guard.take().map(|guard| guard.release().wait());
                say(format_args!("{:?}", released.unwrap().map_err(|error| error.is_lost())));
            }
            // Drops all of it, and ends.
            _ => return,
        }
        line.clear();
    }
}

/// A process that holds the lock, and its fencing token.
fn holder(at: &dyn Elsewhere) -> (Process, i64) {
    let about = format!("{} {}", at.session_timeout().as_millis(), at.address());
    let test = "elsewhere::in_a_child_process_a_lock_is_held_and_looked_at";
    let mut holder = Process::start_test(test, &about);
    let token = holder.hear().unwrap().parse().unwrap();
    (holder, token)
}

/// Somebody deletes the row of a waiter's claim, and then that of the holder's.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub fn rows_are_deleted<E: Elsewhere>(
    start: impl Fn(Duration) -> E,
    delete_number: impl Fn(&E, i64),
) {
    use test_support::{eventually, unless_it_stalls};
    use zklock::LostReason;
    const LEASE: Duration = Duration::from_secs(3);
    unless_it_stalls(LEASE / 4, || {
        let at = start(LEASE);
        let (store, other) = (at.connect(), at.connect());
        let guard = store.lock(PATH).acquire().wait().unwrap();
        let waiting = acquire_in_background(&other.lock(PATH));
        let waiter =
            || other.lock(PATH).contenders().wait().unwrap().get(1).map(|waits| waits.token);
        eventually("it waits", || waiter().is_some());
        let before = waiter().unwrap();
        delete_number(&at, before);
        eventually("it waits again", || waiter().is_some_and(|now| now > before));
        assert!(!waiting.is_finished());
        delete_number(&at, guard.fencing_token());
        assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
        let next = waiting.join().unwrap().unwrap();
        assert!(guard.release().wait().unwrap_err().is_lost());
        assert_eq!(next.state(), GuardState::Held);
        next.release().wait().unwrap();
    });
}

each_elsewhere! {
    fn tokens_go_on_above_those_of_another_store(at: LONG) {
        let store = at.connect();
        let token = |lock: &str| {
            let guard = store.lock(lock).acquire().wait().unwrap();
            let token = guard.fencing_token();
            guard.release().wait().unwrap();
            token
        };
        let first = token(PATH);
        // Larger than all that was given.
        let above = first + 1_000_000_000_000_000;
        for above in [above, 1] {
            let options = patient(at.session_timeout());
            drop(options.tokens_above(above).connect(&at.address()).wait().unwrap());
        }
        let mut last = above;
        for lock in [PATH, PATH, "/locks/b", "/locks/c", "/locks/d"] {
            let next = token(lock);
            assert!(next > above, "{lock}: {next} is not above {above}");
            assert!(lock != PATH || next > last);
            last = next;
        }
    }

    fn a_holder_that_is_killed_is_followed_by_the_next_with_a_larger_token(at: SHORT) {
        let (holder, token) = holder(at);
        let store = at.connect();
        let waiting = acquire_in_background(&store.lock(PATH));
        // Kills it.
        drop(holder);
        let guard = waiting.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        guard.release().wait().unwrap();
    }

    fn what_a_killed_process_held_is_held_while_its_lease_lasts(at: LONG) {
        drop(holder(at));
        let store = at.connect();
        assert!(store.lock(PATH).try_acquire().wait().unwrap().is_none());
        let error = store.lock(PATH).acquire().within(SHORT).wait().unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
    }

    fn a_holder_that_was_frozen_beyond_its_lease_sees_the_loss_first_and_releases_nobodys_lock(at: SHORT) {
        let (mut holder, token) = holder(at);
        let store = at.connect();
        let waiting = acquire_in_background(&store.lock(PATH));
        holder.running.freeze();
        let guard = waiting.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        // It is the first thing that waits for it.
        holder.tell("look");
        holder.running.thaw();
        holder.expect("Lost Some(Session)");
        assert_eq!(holder.ask("release"), "Err(true)");
        assert!(holder.end().success());
        let now = store.lock(PATH).holder().wait().unwrap().map(|now| now.token);
        // Or the test itself stood still for as long.
        assert!(now == Some(guard.fencing_token()) || guard.is_lost());
    }

    fn a_try_that_finds_its_session_over_is_made_in_the_next(at: LONG) {
        let store = at.connect();
        for _ in 0..5 {
            let _held = store.lock(PATH).acquire().wait().unwrap();
            at.lose(PATH);
            let tried = store.lock("/locks/beside").try_acquire().wait().unwrap();
            tried.expect("nobody has it").release().wait().unwrap();
        }
    }

    fn what_was_dropped_at_the_end_of_a_process_is_released(at: LONG) {
        let (mut holder, _) = holder(at);
        holder.tell("end");
        assert!(holder.end().success());
        let store = at.connect();
        store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }

    fn sixteen_threads_of_eight_processes_lose_no_increment_and_leave_nothing(at: LONG) {
        let directory = tempfile::tempdir().unwrap();
        let counter = directory.path().join("count");
        std::fs::write(&counter, "0 0").unwrap();
        let store = at.connect();
        let about = format!("{} {}", at.address(), counter.display());
        let test = "elsewhere::in_a_child_process_threads_count_under_a_lock";
        let processes: Vec<_> = (0..PROCESSES).map(|_| Process::start_test(test, &about)).collect();
        for mut process in processes {
            process.expect("\"done\"");
            assert!(process.end().success());
        }
        let text = std::fs::read_to_string(&counter).unwrap();
        let counted: u64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(counted, (PROCESSES * THREADS) as u64 * ROUNDS);
        let guard = store.lock(PATH).try_acquire().wait().unwrap().expect("nobody is left");
        assert_eq!(guard.state(), GuardState::Held);
        guard.release().wait().unwrap();
    }
}

const PROCESSES: usize = 8;
const THREADS: usize = 2;
const ROUNDS: u64 = 10;

/// What a child process does; nothing in any other: increments what only the lock protects, and has every token be
/// larger than the last.
#[test]
fn in_a_child_process_threads_count_under_a_lock() {
    let Some(about) = child_about() else { return };
    let (address, counter) = about.split_once(' ').unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let store = zklock::connect(address).wait().unwrap();
                for _ in 0..ROUNDS {
                    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
                    let text = std::fs::read_to_string(counter).unwrap();
                    let (count, token) = text.split_once(' ').unwrap();
                    let count: u64 = count.parse().unwrap();
                    let token: i64 = token.parse().unwrap();
                    assert!(guard.fencing_token() > token);
                    std::thread::yield_now();
                    let text = format!("{} {}", count + 1, guard.fencing_token());
                    std::fs::write(counter, text).unwrap();
                    guard.release().wait().unwrap();
                }
            });
        }
    });
    say("done");
}
