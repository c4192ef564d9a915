//! Holders that do not learn that they hold no more.

use std::time::Duration;

use test_support::{Bench, TIMEOUT, eventually, options, session_id, wait_for_another_session};
use zklock::LostReason;
use zklock::zookeeper::SessionState;

use crate::seeds::c_lock_test::Poll;
use crate::seeds::textbook::Reentrant;
use crate::seeds::timed::HeartbeatLock;

#[test]
fn a_holder_that_is_cut_off_knows_before_the_next_one_holds() {
    let mut bench = Bench::shared();
    let other = bench.direct();
    let short = options().session_timeout(Duration::from_secs(2));
    let client = short.connect(&bench.proxy.hosts()).wait().unwrap();
    let seed = |zk| Poll { zk, node: bench.path.clone() };
    let believes = seed(&client).lock(1).unwrap();
    bench.proxy.cut();
    eventually("the next one holds", || seed(&other).lock(1).unwrap());
    assert!(believes, "nothing has told it otherwise, nor would it have looked");

    bench.next();
    bench.proxy.heal();
    let client = short.connect(&bench.proxy.hosts()).wait().unwrap();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    bench.proxy.cut();
    let next = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.is_lost(), "it is told by its own clock, with no word from the servers");
    assert_eq!(guard.lost().get(), Some(LostReason::Session));
    assert!(next.fencing_token() > guard.fencing_token());
}

#[test]
fn a_holder_is_told_of_the_expiry_while_it_does_not_wait() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let mut seed = Reentrant::new(&client, &bench.path);
    seed.lock().unwrap();
    let session = session_id(&client);
    bench.expire(&client);
    wait_for_another_session(&client, session);
    let mut beside = Reentrant::new(&other, &bench.path);
    beside.lock().unwrap();
    assert!(seed.has_lock() && beside.has_lock(), "its client knows, it does not");

    bench.next();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    let lost = guard.lost();
    bench.expire(&client);
    assert_eq!(lost.wait_timeout(TIMEOUT), Some(LostReason::Session));
    assert!(guard.is_lost());
    assert!(guard.release().wait().unwrap_err().is_lost());
}

#[test]
fn a_holder_whose_claim_is_deleted_is_told() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let mut seed = HeartbeatLock::new(&client, &bench.path);
    assert!(seed.try_lock().unwrap());
    bench.delete(&format!("{}/{}", bench.path, bench.children()[0]));
    seed.beat().unwrap();
    assert!(seed.is_held(), "its heart beats for nothing");
    assert!(HeartbeatLock::new(&other, &bench.path).try_lock().unwrap());

    bench.next();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    bench.delete(&guard.claim_path());
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Deleted));
    assert_eq!(client.state(), SessionState::Connected);
    let next = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    // What it would have written in ZooKeeper is refused.
    let write = [guard.check(), zklock::zookeeper::Op::set(&bench.path, "stale")];
    assert!(client.multi(&write).wait().unwrap_err().is_session_over());
    next.release().wait().unwrap();
}
