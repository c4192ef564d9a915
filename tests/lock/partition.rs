//! A network that splits the servers: a client can be on the side that knows less.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use zklock::{GuardState, LostReason, Strategy};
use zklock_testing::{Ensemble, Server};

use crate::bench::{PATIENCE, acquire_in_background, eventually, options};

/// What a holder and its successor came to know, in the order of one mutex.
type Journal = Arc<Mutex<Vec<&'static str>>>;

/// One run: a holder's server is cut off from the other servers while another client waits at their leader. Tells what
/// happened in which order, and how the holder's guard stood when the other one had acquired.
fn split(
    ensemble: &Ensemble,
    follower: usize,
    leader: usize,
    path: &str,
) -> (Vec<&'static str>, GuardState) {
    // The leader expires the session of whom it does not hear of, long before the follower gives the leader up.
    let timeout = Duration::from_secs(3);
    let options_of_holder = options().session_timeout(timeout);
    let holder = options_of_holder.connect(&ensemble.member(follower).hosts()).wait().unwrap();
    let other = options().connect(&ensemble.member(leader).hosts()).wait().unwrap();
    let guard =
        holder.lock(path).strategy(Strategy::Queue).acquire_within(PATIENCE).wait().unwrap();

    let journal = Journal::default();
    let (lost, told) = (guard.lost(), Arc::clone(&journal));
    let teller = thread::spawn(move || {
        let reason = lost.wait_timeout(PATIENCE);
        told.lock().push("lost");
        reason
    });
    let lock = other.lock(path).strategy(Strategy::Queue);
    let successor = acquire_in_background(&lock);
    eventually("it waits", || lock.contenders().wait().unwrap().len() == 2);
    assert_eq!(guard.state(), GuardState::Held);
    ensemble.isolate(follower).unwrap();

    let others = successor.join().unwrap().unwrap();
    // The look comes after the acquire: a guard that still says "held" here said so while there were two.
    let state = guard.state();
    journal.lock().push("acquired");
    assert!(others.fencing_token() > guard.fencing_token());
    assert_eq!(teller.join().unwrap(), Some(LostReason::Session));
    ensemble.rejoin(follower).unwrap();
    ensemble.member(follower).wait_ready(PATIENCE).unwrap();
    others.release().wait().unwrap();
    let order = journal.lock().clone();
    (order, state)
}

#[test]
fn a_holder_on_a_follower_without_its_leader_is_told_before_another_acquires() {
    const RUNS: usize = 2;
    let tick = Duration::from_millis(500);
    let ensemble = Server::builder()
        .tick_time(tick)
        .sync_limit(10 * tick)
        .partitionable(true)
        .start_ensemble(3)
        .unwrap();
    let leader = ensemble.wait_for_quorum(PATIENCE).unwrap();
    let followers: Vec<usize> = (0..3).filter(|index| *index != leader).collect();
    for run in 0..RUNS {
        let (cut, kept) = (followers[run % 2], followers[(run + 1) % 2]);
        // On the side that goes on: there a lost wake-up would keep the successor waiting.
        let busy = ensemble.keep_busy_through(&[leader, kept]).unwrap();
        let (order, state) = split(&ensemble, cut, leader, &format!("/partition-{run}"));
        assert_eq!(order, ["lost", "acquired"], "run {run}: two believed that they held");
        assert_eq!(state, GuardState::Lost, "run {run}: two believe that they hold");
        drop(busy);
    }
}
