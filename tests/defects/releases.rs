//! Releases that take the lock from another.

use std::thread;

use test_support::{Bench, TIMEOUT, session_id, wait_for_another_session};
use zklock::{Client, Code, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::Op;

use crate::seeds::c_lock_test::Poll;
use crate::seeds::java_children::Children;
use crate::seeds::java_node::NodeBlockless;

#[test]
fn a_stale_release_does_not_delete_its_successors_claim() {
    let mut bench = Bench::shared();
    let (client, other, third) = (bench.client(), bench.direct(), bench.direct());
    let stale = NodeBlockless { zk: &client };
    let successor = NodeBlockless { zk: &other };
    assert!(stale.lock(&bench.path, "a").unwrap());
    let gate = bench.proxy.hold(Rule::request(Op::Delete).once());
    thread::scope(|scope| {
        let releasing = scope.spawn(|| stale.release(&bench.path, "a"));
        gate.wait_reached(TIMEOUT).unwrap();
        // It has read its own version 0. The successor's is 0 as well.
        bench.delete(&bench.path);
        assert!(successor.lock(&bench.path, "b").unwrap());
        gate.release();
        releasing.join().unwrap().unwrap();
    });
    assert!(NodeBlockless { zk: &third }.lock(&bench.path, "c").unwrap(), "beside the successor");

    bench.next();
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    let gate = bench.proxy.hold(Rule::request(Op::Delete).path(&*guard.claim_path()).once());
    let path = guard.claim_path().to_string();
    let releasing = thread::spawn(move || guard.release().wait());
    gate.wait_reached(TIMEOUT).unwrap();
    bench.delete(&path);
    let successor = bench.lock(&other).acquire().within(TIMEOUT).wait().unwrap();
    gate.release();
    assert_eq!(releasing.join().unwrap().unwrap_err().code(), Code::NO_NODE);
    assert!(bench.exists(&successor.claim_path()));
    assert!(bench.lock(&third).try_acquire().wait().unwrap().is_none());
    successor.release().wait().unwrap();
}

/// What takes a lock from its holder: the client, and its claim.
type Loss = fn(&Bench, &Client, &str);

/// The seed unlocks what it has lost, and lets a third in beside its successor; ours is told so.
fn an_unlock_after_a_loss_does_not_delete_another_holders_claim(lose: Loss, code: Code) {
    let mut bench = Bench::shared();
    let (client, other, third) = (bench.direct(), bench.direct(), bench.direct());
    let seed = |zk| Poll { zk, node: bench.path.clone() };
    assert!(seed(&client).lock(1).unwrap());
    let lost = session_id(&client);
    lose(&bench, &client, &bench.path);
    assert!(seed(&other).lock(1).unwrap());
    wait_until_over(&client, lost, code);
    seed(&client).unlock().unwrap();
    assert!(seed(&third).lock(1).unwrap(), "beside the other");

    for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
        bench.path.push('2');
        let lock = |zk| bench.lock(zk).strategy(strategy);
        let guard = lock(&client).acquire().within(TIMEOUT).wait().unwrap();
        let lost = session_id(&client);
        lose(&bench, &client, &guard.claim_path());
        let holds = lock(&other).acquire().within(TIMEOUT).wait().unwrap();
        wait_until_over(&client, lost, code);
        let error = guard.release().wait().unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(bench.owner(&holds.claim_path()), Some(session_id(&other)));
        assert!(lock(&third).try_acquire().wait().unwrap().is_none());
    }
}

/// Where the session was lost with the lock, the client has learned so.
fn wait_until_over(client: &Client, session: i64, code: Code) {
    if code == Code::SESSION_EXPIRED {
        wait_for_another_session(client, session);
    }
}

#[test]
fn an_unlock_after_the_expiry_does_not_delete_another_holders_claim() {
    an_unlock_after_a_loss_does_not_delete_another_holders_claim(
        |bench, client, _| bench.expire(client),
        Code::SESSION_EXPIRED,
    );
}

#[test]
fn an_unlock_after_an_operators_deletion_does_not_delete_another_holders_claim() {
    an_unlock_after_a_loss_does_not_delete_another_holders_claim(
        |bench, _, claim| bench.delete(claim),
        Code::NO_NODE,
    );
}

#[test]
fn a_release_frees_the_lock_it_names() {
    let mut bench = Bench::with_directory();
    let (client, other) = (bench.direct(), bench.direct());
    let mut seed = Children::new(&client);
    assert!(seed.lock_blockless(&bench.path).unwrap());
    seed.release(&format!("{}-of-others", bench.path), "somebody").unwrap();
    assert!(Children::new(&other).lock_blockless(&bench.path).unwrap(), "beside the first");

    bench.next();
    let of_others = client.lock(&format!("{}-of-others", bench.path));
    let guard = bench.lock(&client).acquire().within(TIMEOUT).wait().unwrap();
    of_others.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    assert!(bench.lock(&other).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
}
