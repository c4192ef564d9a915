//! Who is given the next number holds without a listing, unless something has come in between.

use test_support::{TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::zookeeper::SessionState;
use zklock::{Client, Strategy};
use zklock_testing::wire::{CreateMode, Op, RawClient};

use crate::bench::Bench;

const QUEUE: Strategy = Strategy::Queue;

/// Nobody came between the acquires of one client. Then somebody does `between`: the next acquire lists.
fn listed_after(between: impl Fn(&Bench, &Client)) {
    let bench = Bench::own();
    bench.prepare(QUEUE);
    let client = bench.client();
    let lock = bench.lock(&client, QUEUE);
    let lists = || {
        bench.proxy.clear_seen();
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        let listed = bench.asked().contains(&Op::GetChildren2);
        let own = bench.claims(QUEUE).into_iter().find(|claim| claim.path == *guard.claim_path());
        assert_eq!(own.map(|claim| claim.czxid), Some(guard.fencing_token()));
        guard.release().wait().unwrap();
        listed
    };
    for round in 0..3 {
        eventually("no listing is needed", || !lists());
        between(&bench, &client);
        assert!(lists(), "round {round}");
    }
}

#[test]
fn another_claim_in_between_brings_the_listing_back() {
    listed_after(|bench, _| bench.stranger(QUEUE).leave());
}

#[test]
fn a_claim_that_waits_is_not_overtaken() {
    let bench = Bench::own();
    bench.prepare(QUEUE);
    let client = bench.client();
    let lock = bench.lock(&client, QUEUE);
    for _ in 0..4 {
        lock.acquire().wait().unwrap().release().wait().unwrap();
    }
    let guard = lock.acquire().wait().unwrap();
    let mut stranger = bench.stranger(QUEUE);
    guard.release().wait().unwrap();
    let behind = acquire_in_background(&lock);
    let session = session_id(&client);
    // The watch on the directory beside it.
    eventually("it watches who is ahead", || bench.watches_of(session) == 2);
    stranger.leave();
    behind.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_directory_that_was_made_anew_brings_the_listing_back() {
    listed_after(|bench, _| {
        // With as many children as were made in it before: the next number is the one that is expected.
        let raw = &mut bench.raw();
        let count = |raw: &mut RawClient| {
            let prefix = format!("{}/count-", bench.path);
            let path = raw.create_with(&prefix, b"", CreateMode::PersistentSequential).unwrap();
            raw.delete(&path).unwrap();
            path[path.len() - 10..].parse::<u32>().unwrap()
        };
        let given = count(raw);
        raw.delete(&bench.path).unwrap();
        raw.create(&bench.path, b"").unwrap();
        // The last number that the client held is the one before.
        while count(raw) + 2 < given {}
    });
}

#[test]
fn a_connection_that_was_lost_brings_the_listing_back() {
    listed_after(|bench, client| {
        bench.proxy.refuse();
        eventually("the connection is lost", || client.state() != SessionState::Connected);
        bench.proxy.heal();
    });
}

#[test]
fn another_session_brings_the_listing_back() {
    listed_after(|bench, client| {
        let before = client.session();
        bench.expire(client);
        eventually("it has another session", || {
            client.state() == SessionState::Connected && client.session() != before
        });
    });
}

#[test]
fn data_of_the_directory_that_change_bring_the_listing_back() {
    listed_after(|bench, _| {
        bench.ask(|raw| raw.set_data(&bench.path, b"x")).unwrap();
    });
}
