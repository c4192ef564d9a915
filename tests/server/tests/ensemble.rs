//! An ensemble has a leader, and survives the loss of it.

use std::time::{Duration, Instant};

use zklock_testing::wire::RawClient;
use zklock_testing::{Ensemble, Error, expire_session};

const SESSION: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(20);

/// A commit through any member that takes one.
fn create_somewhere(ensemble: &Ensemble, path: &str) -> RawClient {
    let deadline = Instant::now() + PATIENCE;
    for addr in ensemble.addrs().into_iter().cycle() {
        let created = RawClient::connect(addr, SESSION).and_then(|mut client| {
            client.set_reply_timeout(Duration::from_secs(2));
            client.create(path, b"").map(|_| client)
        });
        match created {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "create {path}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("members come round again")
}

#[test]
fn an_ensemble_survives_the_kill_of_its_leader() {
    let ensemble = Ensemble::start(3).unwrap();
    assert_eq!(ensemble.hosts().split(',').count(), 3);
    let _busy = ensemble.keep_busy().unwrap();
    let first = ensemble.wait_for_quorum(PATIENCE).unwrap();
    assert_eq!(ensemble.leader(), Some(first));
    drop(create_somewhere(&ensemble, "/before"));

    ensemble.member(first).kill();
    let second = ensemble.wait_for_quorum(PATIENCE).unwrap();
    assert_ne!(first, second);
    let mut client = create_somewhere(&ensemble, "/after");
    assert!(client.exists("/before").unwrap().is_some());

    ensemble.member(first).start_again().unwrap();
    assert_eq!(ensemble.member(first).mode().as_deref(), Some("follower"));
}

#[test]
fn a_session_expires_through_another_member_than_its_client_uses() {
    let ensemble = Ensemble::start(3).unwrap();
    let _busy = ensemble.keep_busy().unwrap();
    let mut client = create_somewhere(&ensemble, "/a");
    let (id, password) = (client.session_id(), client.password());
    let hosts: Vec<String> = ensemble.members().iter().rev().map(|member| member.hosts()).collect();
    expire_session(&hosts.join(","), id, &password).unwrap();
    client.wait_closed(PATIENCE).unwrap();
    let back = RawClient::attach(ensemble.member(0).addr(), SESSION, id, &password);
    assert!(matches!(back, Err(Error::SessionExpired { .. })), "{back:?}");
}

#[test]
fn an_ensemble_without_a_quorum_has_no_leader() {
    let ensemble = Ensemble::start(3).unwrap();
    let leader = ensemble.wait_for_quorum(PATIENCE).unwrap();
    for (index, member) in ensemble.members().iter().enumerate() {
        if index != leader {
            member.kill();
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while ensemble.leader().is_some() {
        assert!(Instant::now() < deadline, "it still leads");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ensemble.wait_for_quorum(Duration::ZERO).unwrap_err().is_timeout());
}
