//! What locks do to the servers: counted, not timed.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use test_support::{Bench, TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::{Client, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{CreateMode, Op, Ops};

use crate::seeds::c_lock_test::{Poll, Watch};
use crate::seeds::monitor::Monitor;
use crate::seeds::numbered_child;
use crate::seeds::peers::wait_by_exists;
use crate::seeds::textbook::{UniqueName, WatchesChildren};

const WAITERS: usize = 8;

fn clients(bench: &Bench) -> Vec<Client> {
    (0..WAITERS).map(|_| bench.client()).collect()
}

/// Ours in the same crowd: what one release costs, as events and creates.
fn one_release_of_ours(bench: &Bench, clients: &[Client]) -> (usize, usize) {
    let mut holder = bench.stranger("lock-");
    let waiting: Vec<_> =
        clients.iter().map(|client| acquire_in_background(&bench.lock(client))).collect();
    for client in clients {
        eventually("it waits", || bench.watched_by(session_id(client)).len() == 1);
    }
    bench.proxy.clear_seen();
    holder.leave();
    eventually("one of them acquires", || waiting.iter().any(|one| one.is_finished()));
    let seen = (
        bench.proxy.count(&Rule::event().path_prefix(&bench.path)),
        bench.proxy.count(&Rule::request(Ops::creates()).path_prefix(&bench.path)),
    );
    assert_eq!(waiting.iter().filter(|one| one.is_finished()).count(), 1);
    clients.iter().for_each(|client| client.close().wait().unwrap());
    waiting.into_iter().for_each(|one| drop(one.join().unwrap()));
    seen
}

#[test]
fn a_release_wakes_one_of_those_who_wait() {
    let mut bench = Bench::shared();
    let clients = clients(&bench);
    let mut holder = bench.raw();
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let seed = |zk| UniqueName { zk, node: bench.path.clone() };
    let watches: Vec<_> =
        clients.iter().map(|client| seed(client).lock_or_watch().unwrap().unwrap()).collect();
    bench.proxy.clear_seen();
    holder.delete(&bench.path).unwrap();
    watches.into_iter().for_each(|watch| drop(watch.wait().unwrap()));
    let winners = clients.iter().filter(|client| seed(client).lock_or_watch().unwrap().is_none());
    assert_eq!(winners.count(), 1);
    assert_eq!(bench.proxy.count(&Rule::event().path(&bench.path)), WAITERS, "for one of them");
    clients.iter().for_each(|client| drop(seed(client).unlock()));

    bench.path.push('2');
    bench.raw().create(&bench.path, b"").unwrap();
    assert_eq!(one_release_of_ours(&bench, &clients), (1, 0));
}

#[test]
fn a_release_makes_nobody_try_in_vain() {
    let mut bench = Bench::shared();
    let clients = clients(&bench);
    let mut holder = bench.raw();
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let conditions: Vec<Arc<Monitor>> = clients.iter().map(|_| Arc::default()).collect();
    let creates = |bench: &Bench| Rule::request(Ops::creates()).path(&bench.path);
    thread::scope(|scope| {
        for (client, condition) in clients.iter().zip(&conditions) {
            let (node, condition) = (bench.path.clone(), Arc::clone(condition));
            let seed = Watch { zk: client, node, condition };
            scope.spawn(move || seed.lock(|| {}).unwrap());
        }
        let waiting = || conditions.iter().map(|condition| condition.waiting()).sum::<usize>();
        eventually("all wait", || waiting() == WAITERS);
        bench.proxy.clear_seen();
        holder.delete(&bench.path).unwrap();
        bench.proxy.wait_for(&creates(&bench), WAITERS, TIMEOUT).unwrap();
        eventually("all but one wait again", || waiting() == WAITERS - 1);
        let refused = Rule::reply(Ops::creates()).path(&bench.path).error(-110);
        assert_eq!(bench.proxy.count(&refused), WAITERS - 1);
        conditions.iter().for_each(|condition| condition.close());
    });

    bench.path.push('2');
    bench.raw().create(&bench.path, b"").unwrap();
    assert_eq!(one_release_of_ours(&bench, &clients), (1, 0));
}

#[test]
fn a_crowd_is_served_with_events_in_proportion_to_it() {
    let mut bench = Bench::with_directory();
    let clients = clients(&bench);
    let events = |bench: &Bench| bench.proxy.count(&Rule::event().path_prefix(&bench.path));
    let mut holder = bench.stranger("lock-");
    let mut line: Vec<WatchesChildren> =
        clients.iter().map(|client| WatchesChildren::enter(client, &bench.path).unwrap()).collect();
    let mut watches: Vec<_> =
        line.iter().map(|seed| seed.lock_or_watch().unwrap().unwrap()).collect();
    bench.proxy.clear_seen();
    holder.leave();
    while !line.is_empty() {
        watches.drain(..).for_each(|watch| drop(watch.wait().unwrap()));
        assert!(line[0].lock_or_watch().unwrap().is_none(), "the first holds");
        watches.extend(line[1..].iter().map(|seed| seed.lock_or_watch().unwrap().unwrap()));
        line.remove(0).unlock().unwrap();
    }
    // The holders' own looks leave a watch each as well.
    let quadratic = WAITERS * (WAITERS + 1) / 2;
    assert!(events(&bench) >= quadratic, "{}", events(&bench));

    bench.next();
    let mut holder = bench.stranger("lock-");
    let waiting: Vec<_> = clients
        .iter()
        .map(|client| {
            let (lock, session) = (bench.lock(client), session_id(client));
            let one = thread::spawn(move || {
                lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
            });
            eventually("it waits", || bench.watched_by(session).len() == 1);
            one
        })
        .collect();
    bench.proxy.clear_seen();
    holder.leave();
    waiting.into_iter().for_each(|one| one.join().unwrap());
    // One each; a second one where a slow machine made a tenure so long that its claim was watched.
    assert!((WAITERS..=2 * WAITERS).contains(&events(&bench)), "{}", events(&bench));
}

#[test]
fn a_lock_that_polls_pauses() {
    const TRIES: usize = 300;
    let mut bench = Bench::shared();
    let (client, ours) = (bench.client(), bench.client());
    let mut holder = bench.raw();
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let seed = Poll { zk: &client, node: bench.path.clone() };
    let creates = |path: &str| Rule::request(Ops::creates()).path(path);

    let spun = bench.path.clone();
    bench.path.push('2');
    holder.create_with(&bench.path, b"", CreateMode::Ephemeral).unwrap();
    let waiting = acquire_in_background(&bench.lock(&ours).strategy(Strategy::Poll));
    bench.proxy.wait_for(&creates(&bench.path), 1, TIMEOUT).unwrap();
    // Side by side, for as long as the port takes for its tries.
    assert!(!seed.lock(TRIES).unwrap());
    let (asked, paused) =
        (bench.proxy.count(&creates(&spun)), bench.proxy.count(&creates(&bench.path)));
    assert_eq!(asked, TRIES);
    assert!(paused * 2 < asked, "{paused} against {asked}");
    holder.delete(&bench.path).unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn waits_that_come_to_nothing_leave_no_watch() {
    const ROUNDS: usize = 25;
    let mut bench = Bench::with_directory();
    let client = bench.client();
    let session = session_id(&client);
    for round in 1..=ROUNDS {
        let mut holder = bench.stranger("lock-");
        let own = numbered_child(&client, &bench.path, "lock-").unwrap();
        let gate = bench.proxy.hold(Rule::request(Op::Exists).path(&holder.path).once());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_by_exists(&client, &bench.path, &own).unwrap());
            gate.wait_reached(TIMEOUT).unwrap();
            holder.leave();
            gate.release();
            assert!(waiting.join().unwrap().is_none(), "it holds");
        });
        client.delete(&format!("{}/{own}", bench.path), None).wait().unwrap();
        assert_eq!(bench.watched_by(session).len(), round, "one more for a znode that is no more");
    }

    bench.next();
    let client = bench.client();
    let (session, lock) = (session_id(&client), bench.lock(&client));
    for round in 0..ROUNDS {
        let mut holder = bench.stranger("lock-");
        let gate = bench.proxy.hold(Rule::request(Op::GetData).path(&holder.path).once());
        let waiting = acquire_in_background(&lock);
        gate.wait_reached(TIMEOUT).unwrap();
        holder.leave();
        gate.release();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
        // And waits that are given up, some before the first answer, some later.
        let mut holder = bench.stranger("lock-");
        for wait in 0..8 {
            let timeout = Duration::from_micros(200 + 300 * (wait + round as u64 % 8));
            assert!(lock.acquire().within(timeout).wait().unwrap_err().is_timeout());
        }
        eventually("only the holder is left", || bench.children().len() == 1);
        holder.leave();
    }
    eventually("no watch is left", || bench.watched_by(session).is_empty());
    bench.expect_empty();
}
