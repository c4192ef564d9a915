//! An ensemble has a leader, and survives the loss of it.

use std::time::{Duration, Instant};

use zklock_testing::eventually;
use zklock_testing::wire::{CreateMode, RawClient};
use zklock_testing::{Ensemble, Error, Server, expire_session};

const SESSION: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(20);

/// A commit through any member that takes one.
fn create_somewhere(ensemble: &Ensemble, path: &str) -> RawClient {
    let deadline = Instant::now() + TIMEOUT;
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
    let first = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    eventually("it leads", || ensemble.leader() == Some(first));
    drop(create_somewhere(&ensemble, "/before"));

    ensemble.member(first).kill();
    let second = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    assert_ne!(first, second);
    let mut client = create_somewhere(&ensemble, "/after");
    assert!(client.exists("/before").unwrap().is_some());

    ensemble.member(first).start_again().unwrap();
    let mode = || ensemble.member(first).mode();
    eventually("it follows", || mode().as_deref() == Some("follower"));
}

#[test]
fn a_session_expires_through_another_member_than_its_client_uses() {
    let ensemble = Ensemble::start(3).unwrap();
    let _busy = ensemble.keep_busy().unwrap();
    let mut client = create_somewhere(&ensemble, "/a");
    let (id, password) = (client.session_id(), client.password());
    let hosts: Vec<String> = ensemble.members().iter().rev().map(|member| member.hosts()).collect();
    expire_session(&hosts.join(","), id, &password).unwrap();
    client.wait_closed(TIMEOUT).unwrap();
    let back = RawClient::attach(ensemble.member(0).addr(), SESSION, id, &password);
    assert!(matches!(back, Err(Error::SessionExpired { .. })), "{back:?}");
}

/// A leader and its followers.
fn roles(ensemble: &Ensemble) -> (usize, Vec<usize>) {
    let leader = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    (leader, (0..ensemble.members().len()).filter(|index| *index != leader).collect())
}

#[test]
fn an_isolated_follower_answers_its_clients_and_knows_nothing_of_the_others() {
    let limit = Duration::from_secs(3);
    let ensemble =
        Server::builder().partitionable(true).sync_limit(limit).start_ensemble(3).unwrap();
    let (leader, followers) = roles(&ensemble);
    let isolated = followers[0];
    let _busy = ensemble.keep_busy_through(&[leader, followers[1]]).unwrap();
    let mut inside = RawClient::connect(ensemble.member(isolated).addr(), SESSION).unwrap();
    let mut outside = RawClient::connect(ensemble.member(leader).addr(), SESSION).unwrap();
    outside.create("/before", b"").unwrap();
    eventually("it knows", || inside.exists("/before").unwrap().is_some());

    ensemble.isolate(isolated).unwrap();
    outside.create("/after", b"").unwrap();
    assert!(inside.exists("/after").unwrap().is_none());
    inside.wait_closed(TIMEOUT).unwrap();
    eventually("it serves nobody", || ensemble.member(isolated).mode().is_none());
    eventually("the leader leads", || ensemble.leader() == Some(leader));

    ensemble.rejoin(isolated).unwrap();
    ensemble.member(isolated).wait_ready(TIMEOUT).unwrap();
    let mut inside = RawClient::connect(ensemble.member(isolated).addr(), SESSION).unwrap();
    assert!(inside.exists("/after").unwrap().is_some());
}

#[test]
fn an_isolated_leader_is_replaced_and_follows_when_it_is_back() {
    // Whichever number a member has, it is cut off from elections as well as from its followers.
    let ensemble = Server::builder()
        .partitionable(true)
        .sync_limit(Duration::from_secs(2))
        .start_ensemble(3)
        .unwrap();
    for _ in 0..2 {
        let (first, others) = roles(&ensemble);
        ensemble.isolate(first).unwrap();
        let is = |index: usize, mode: &str| ensemble.member(index).mode().as_deref() == Some(mode);
        eventually("another one leads", || others.iter().any(|index| is(*index, "leader")));
        eventually("it serves nobody", || ensemble.member(first).mode().is_none());
        ensemble.rejoin(first).unwrap();
        eventually("it follows", || is(first, "follower"));
    }
}

#[test]
fn an_ensemble_without_a_quorum_has_no_leader() {
    let ensemble = Ensemble::start(3).unwrap();
    let leader = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    for (index, member) in ensemble.members().iter().enumerate() {
        if index != leader {
            member.kill();
        }
    }
    let deadline = Instant::now() + TIMEOUT;
    while ensemble.leader().is_some() {
        assert!(Instant::now() < deadline, "it still leads");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ensemble.wait_for_quorum(Duration::ZERO).unwrap_err().is_timeout());
}

/// The id of the member that opened the session.
fn member_of(client: &RawClient) -> u8 {
    client.session_id().to_be_bytes()[0]
}

#[test]
fn a_server_with_an_id_leads_itself_and_its_sessions_begin_with_that_id() {
    for id in [7, 255] {
        let server = Server::builder().first_id(id).start().unwrap();
        eventually("it leads", || server.mode().as_deref() == Some("leader"));
        let mut client = RawClient::connect(server.addr(), SESSION).unwrap();
        assert_eq!(member_of(&client), id);
        client.create_with("/mine", b"", CreateMode::Ephemeral).unwrap();
        let owner = client.exists("/mine").unwrap().unwrap().ephemeral_owner;
        assert_eq!(owner, client.session_id());
        assert_eq!(server.ephemerals().unwrap()[&owner], ["/mine"]);
        server.restart().unwrap();
        assert!(RawClient::connect(server.addr(), SESSION).unwrap().exists("/mine").is_ok());
    }
}

#[test]
fn the_members_of_an_ensemble_count_on_from_the_first_id() {
    let ensemble = Server::builder().first_id(253).partitionable(true).start_ensemble(3).unwrap();
    let (leader, followers) = roles(&ensemble);
    let _busy = ensemble.keep_busy_through(&[leader, followers[1]]).unwrap();
    for (index, member) in ensemble.members().iter().enumerate() {
        let client = RawClient::connect(member.addr(), SESSION).unwrap();
        assert_eq!(usize::from(member_of(&client)), 253 + index);
    }
    // The proxies between the members know them by any id.
    ensemble.isolate(followers[0]).unwrap();
    eventually("it serves nobody", || ensemble.member(followers[0]).mode().is_none());
    ensemble.rejoin(followers[0]).unwrap();
    ensemble.member(followers[0]).wait_ready(TIMEOUT).unwrap();
}
