//! What a lock costs: counted where it passes.

use std::collections::BTreeSet;
use std::thread;

use test_support::{TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::Strategy;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Direction, Rule};

use crate::bench::Bench;

const QUEUE: Strategy = Strategy::Queue;

#[test]
fn a_queue_lock_that_nobody_else_uses_costs_a_create_and_a_delete() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.client();
    let lock = bench.lock(&client, QUEUE);
    let costs = || bench.asked_by(|| lock.acquire().wait().unwrap().release().wait().unwrap());
    costs();
    let listed = costs();
    // The directory is watched from then on, which nobody waits for.
    assert_eq!(listed[..2], [Op::Create2, Op::GetChildren2]);
    eventually("no listing is needed", || costs() == [Op::Create2, Op::Delete]);
    for _ in 0..3 {
        assert_eq!(costs(), [Op::Create2, Op::Delete]);
    }
}

#[test]
fn the_first_acquire_of_a_lock_that_was_never_used_lists_once_before_its_claim_and_once_after() {
    let bench = Bench::shared();
    let client = bench.client();
    bench.lock(&client, QUEUE).acquire().wait().unwrap().release().wait().unwrap();
    let made = [Op::GetChildren2, Op::CreateContainer, Op::Create2, Op::GetChildren2];
    assert_eq!(bench.asked()[..4], made);
}

#[test]
fn trying_a_lock_that_nobody_else_uses_costs_one_request() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let (client, other) = (bench.client(), bench.direct());
    let lock = bench.lock(&client, QUEUE);
    let tried = || {
        bench.proxy.clear_seen();
        let guard = lock.try_acquire().wait().unwrap();
        let asked = bench.asked();
        if let Some(guard) = guard {
            guard.release().wait().unwrap();
        }
        asked
    };
    assert_eq!(tried()[..3], [Op::GetChildren2, Op::Create2, Op::GetChildren2]);
    eventually("no listing is needed", || tried() == [Op::Create2]);
    assert_eq!(tried(), [Op::Create2]);
    // Where somebody has come in between, that is seen, and a taken lock is left alone from the next time on.
    let guard = bench.lock(&other, QUEUE).acquire().wait().unwrap();
    assert!(lock.try_acquire().wait().unwrap().is_none());
    assert_eq!(tried()[0], Op::GetChildren2);
    guard.release().wait().unwrap();
    assert!(lock.try_acquire().wait().unwrap().is_some());
}

#[test]
fn acquiring_a_free_queue_lock_takes_one_round_trip() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.client();
    // The first on a path asks for its directory; others know it, also by another `Lock`.
    bench.lock(&client, QUEUE).acquire().wait().unwrap().release().wait().unwrap();
    bench.proxy.clear_seen();
    let gate = bench.proxy.hold(bench.replies().once());
    let waiting = acquire_in_background(&bench.lock(&client, QUEUE));
    gate.wait_reached(TIMEOUT).unwrap();
    // No reply has arrived, and all that it needs to ask has been asked.
    bench.proxy.wait_for(&Rule::request(Ops::lists()), 1, TIMEOUT).unwrap();
    assert_eq!(bench.asked(), [Op::Create2, Op::GetChildren2]);
    gate.release();
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(bench.asked()[..2], [Op::Create2, Op::GetChildren2]);
    // A watch on the directory at most, which nobody waits for.
    assert!(bench.asked()[2..].iter().all(|op| *op == Op::GetData));
    guard.release().wait().unwrap();
}

#[test]
fn a_free_lock_of_another_strategy_costs_a_create_a_look_and_a_delete() {
    for strategy in [Strategy::Poll, Strategy::Watch] {
        let bench = Bench::shared();
        let client = bench.client();
        bench.lock(&client, strategy).acquire().wait().unwrap().release().wait().unwrap();
        let mut asked = bench.asked();
        // A look that took long is repeated.
        asked.dedup();
        assert_eq!(asked, [Op::Create2, Op::GetData, Op::Delete]);
    }
}

#[test]
fn a_release_wakes_one_waiter_of_a_queue_and_costs_it_few_requests() {
    const WAITERS: usize = 8;
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut stranger = bench.stranger(QUEUE);
    let clients: Vec<_> = (0..WAITERS).map(|_| bench.client()).collect();
    bench.proxy.clear_seen();
    let mut waiters = Vec::new();
    for client in &clients {
        waiters.push(acquire_in_background(&bench.lock(client, QUEUE)));
        let session = session_id(client);
        eventually("it watches", || bench.watches_of(session) > 0);
    }
    stranger.leave();
    for (woken, waiter) in waiters.into_iter().enumerate() {
        let guard = waiter.join().unwrap().unwrap();
        let events = bench.proxy.count(&Rule::event());
        // Who has waited for long hears of the end of its own claim, too.
        assert!((woken + 1..=2 * (woken + 1)).contains(&events), "{events} events: {woken}");
        guard.release().wait().unwrap();
    }
    let seen = bench.proxy.seen();
    let any = bench.requests();
    // A client may have needed two to connect.
    let connections = seen.iter().filter(|seen| any.matches(seen)).map(|seen| seen.connection);
    let connections: BTreeSet<u64> = connections.collect();
    assert_eq!(connections.len(), WAITERS);
    for connection in connections {
        let own = seen.iter().filter(|seen| seen.connection == connection);
        let events = own.clone().filter(|seen| seen.direction == Direction::Event).count();
        assert!((1..=2).contains(&events), "connection {connection}: {events}");
        let asked: Vec<Op> = own.filter(|seen| any.matches(seen)).map(|seen| seen.op).collect();
        // The first acquire of a client on a path asks for the directory, and has it watched. One that waits for long
        // watches its own claim, and one that is held for long is looked at again.
        assert!(asked.len() <= 8, "connection {connection}: {asked:?}");
    }
}

#[test]
fn threads_that_contend_for_a_queue_lock_stay_within_five_requests_for_each_acquire() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 50;
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let clients: Vec<_> = (0..THREADS).map(|_| bench.client()).collect();
    bench.proxy.clear_seen();
    let threads: Vec<_> = clients
        .iter()
        .map(|client| {
            let lock = bench.lock(client, QUEUE);
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let acquires = THREADS * ROUNDS;
    let requests = bench.proxy.count(&bench.requests());
    // And who waits or holds for long looks at its own.
    assert!(requests <= 6 * acquires, "{requests} requests for {acquires} acquires");
    let events = bench.proxy.count(&Rule::event());
    // Who has waited for long hears of the end of its own claim, too.
    assert!(events <= 2 * acquires, "{events} events for {acquires} acquires");
}
