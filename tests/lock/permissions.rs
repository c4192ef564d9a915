//! What access control forbids: said with the permission that is missing, and never left to block
//! everybody.

use std::thread;
use std::time::Duration;

use test_support::{TIMEOUT, eventually};
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock::{Client, Code, GuardState, LockError, Strategy};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::bench::Bench;

/// A directory in which everybody may queue, and nobody may delete.
fn without_delete(bench: &Bench, name: &str) -> String {
    let path = format!("{}-{name}", bench.path);
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    let client = bench.direct();
    client.create_with_acl(&path, b"", CreateMode::Persistent, &acl).wait().unwrap();
    path
}

fn claims(client: &Client, path: &str) -> usize {
    client.children(path).wait().unwrap().names.len()
}

#[test]
fn a_release_without_the_permission_says_so_and_ends_the_session_once_it_holds_nothing_else() {
    let bench = Bench::shared();
    let path = without_delete(&bench, "forbidden");
    let (client, witness) = (bench.direct(), bench.direct());
    let other = client.lock(&format!("{path}-other")).acquire().wait().unwrap();
    let guard = client.lock(&path).acquire().wait().unwrap();
    let session = client.session().unwrap().id();
    let error = guard.release().wait().unwrap_err();
    assert!(matches!(error, LockError::NotPermitted { .. }), "{error:?}");
    assert_eq!(error.code(), Code::NO_AUTH);
    let said = error.to_string();
    assert!(said.contains(&format!("DELETE permission on {path}:")), "{said}");
    // The other lock is not lost for it.
    let lost = other.lost().wait_timeout(Duration::from_millis(500));
    assert_eq!((lost, other.state()), (None, GuardState::Held));
    assert_eq!(claims(&witness, &path), 1);
    assert_eq!(client.session().unwrap().id(), session);
    other.release().wait().unwrap();
    eventually("the claim is gone", || claims(&witness, &path) == 0);
    let next = client.lock(&path).acquire().within(TIMEOUT).wait().unwrap();
    assert_ne!(client.session().unwrap().id(), session);
    drop(next);
    eventually("that of a guard that was dropped, too", || claims(&witness, &path) == 0);
}

#[test]
fn a_session_that_is_to_be_replaced_lives_until_a_release_is_confirmed() {
    let bench = Bench::shared();
    let path = without_delete(&bench, "replaced");
    let client = bench.client();
    for way in [Rule::request, Rule::reply] {
        let other = client.lock(&bench.path).acquire().wait().unwrap();
        client.lock(&path).acquire().wait().unwrap().release().wait().unwrap_err();
        let session = client.session().unwrap().id();
        let delete = bench.proxy.hold(way(Ops::any()).path_prefix(&bench.path).once());
        let releasing = other.release();
        delete.wait_reached(TIMEOUT).unwrap();
        // Longer than between two looks at whether the session is to be replaced.
        thread::sleep(Duration::from_millis(300));
        delete.release();
        releasing.within(TIMEOUT).wait().unwrap();
        eventually("it is replaced", || {
            client.session().is_some_and(|present| present.id() != session)
        });
    }
}

#[test]
fn a_session_that_is_replaced_is_ended_also_if_its_farewell_is_lost() {
    let bench = Bench::shared();
    let path = without_delete(&bench, "farewell");
    let (client, witness) = (bench.client(), bench.direct());
    let lost = bench.proxy.on(Rule::request(Op::CloseSession).once(), Action::Drop);
    let guard = client.lock(&path).acquire().wait().unwrap();
    guard.release().wait().unwrap_err();
    bench.proxy.wait_for(&Rule::request(Op::CloseSession), 2, TIMEOUT).unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    eventually("the claim is gone", || claims(&witness, &path) == 0);
}

#[test]
fn an_acquire_that_was_given_up_without_the_permission_blocks_nobody_for_long() {
    let bench = Bench::shared();
    let path = without_delete(&bench, "given-up");
    let (holder, waiter, witness) = (bench.direct(), bench.direct(), bench.direct());
    let held = holder.lock(&path).acquire().wait().unwrap();
    let soon = Duration::from_millis(100);
    let error = waiter.lock(&path).acquire().within(soon).wait().unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
    eventually("only the holder's claim is there", || claims(&witness, &path) == 1);
    assert_eq!(held.state(), GuardState::Held);
    drop(held);
    witness.lock(&path).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap_err();
}

#[test]
fn an_acl_that_lets_nobody_read_is_refused() {
    let bench = Bench::shared();
    let nobody = [Acl::new(Permissions::ALL.difference(Permissions::READ), "world", "anyone")];
    let lock = bench.client().lock(&bench.path).acl(nobody);
    let error = lock.acquire().within(TIMEOUT).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS);
    assert!(error.to_string().contains("lets nobody read"), "{error}");
    assert!(!bench.exists(&bench.path), "nothing was made");
}

#[test]
fn an_acquire_and_a_look_say_which_permission_is_missing_on_what() {
    let bench = Bench::shared();
    let client = bench.direct();
    let may = |name: &str, permissions| {
        let path = format!("{}-{name}", bench.path);
        let acl = [Acl::new(permissions, "world", "anyone")];
        client.create_with_acl(&path, b"", CreateMode::Persistent, &acl).wait().unwrap();
        path
    };
    let (unreadable, closed) =
        (may("unreadable", Permissions::CREATE), may("closed", Permissions::READ));
    let below = format!("{closed}/lock");
    let poll = client.lock(&below).strategy(Strategy::Poll);
    for (error, missing, on) in [
        (client.lock(&unreadable).acquire().wait().unwrap_err(), "READ", &unreadable),
        (client.lock(&unreadable).contenders().wait().unwrap_err(), "READ", &unreadable),
        (client.lock(&closed).acquire().wait().unwrap_err(), "CREATE", &closed),
        (client.lock(&below).acquire().wait().unwrap_err(), "CREATE", &closed),
        (poll.try_acquire().wait().unwrap_err(), "CREATE", &closed),
    ] {
        assert!(matches!(error, LockError::NotPermitted { .. }), "{error:?}");
        assert_eq!(error.code(), Code::NO_AUTH);
        let said = error.to_string();
        assert!(said.ends_with(&format!("no {missing} permission on {on}")), "{said}");
        assert!(!error.is_timeout() && !error.is_outcome_unknown() && !error.is_lost());
    }
}

#[test]
fn a_release_that_may_not_look_at_its_znode_says_so() {
    let bench = Bench::shared();
    let client = bench.direct();
    let guard = client.lock(&bench.path).strategy(Strategy::Poll).acquire().wait().unwrap();
    let no_reader = [Acl::new(Permissions::ALL.difference(Permissions::READ), "world", "anyone")];
    client.set_acl(&bench.path, &no_reader, None).wait().unwrap();
    let said = guard.release().wait().unwrap_err().to_string();
    assert!(said.contains(&format!("no READ permission on {}:", bench.path)), "{said}");
}

#[test]
fn a_held_claim_that_may_not_be_read_is_not_asked_for_again_and_again() {
    let bench = Bench::shared();
    bench.prepare(Strategy::Queue);
    let client = bench.client();
    let others = [Acl::new(Permissions::ALL, "ip", "192.0.2.1")];
    let guard = client.lock(&bench.path).acl(others).acquire().within(TIMEOUT).wait().unwrap();
    let looks = |path: &str| bench.proxy.count(&Rule::request(Op::GetData).path_prefix(path));
    let path = guard.claim_path();
    eventually("it is looked at", || looks(&path) > 0);
    // Each of these takes as long as a claim goes unwatched.
    for number in 0..5 {
        let other = client.lock(&format!("{}-{number}", bench.path)).acquire().wait().unwrap();
        eventually("the other is watched", || looks(&other.claim_path()) > 0);
    }
    assert!(looks(&path) <= 2, "{} requests", looks(&path));
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
}
