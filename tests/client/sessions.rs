//! The session: what is told of it, how it ends, how another begins.

use std::time::Duration;

use futures_lite::StreamExt as _;
use futures_lite::future::block_on;
use test_support::{
    Bench, LONGEST_SESSION, SESSION_TIMEOUT, TIMEOUT, alone, connect, eventually, expire, options,
    session_id, shared, states_until,
};
use zklock::zookeeper::{CreateMode, SessionKey, SessionState};
use zklock::{Code, Timeout};
use zklock_testing::Server;

#[test]
fn an_expired_session_is_lost_and_another_one_begins() {
    let (client, path) = alone();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let node = format!("{path}/ephemeral");
    for _ in 0..5 {
        let before = session_id(&client);
        client.create(&node, b"", CreateMode::Ephemeral).wait().unwrap();
        expire(shared(), &client);
        // It may be let in once more before it hears of its end.
        states_until(&mut states, SessionState::Lost);
        let told = states_until(&mut states, SessionState::Connected);
        assert!(!told.contains(&SessionState::Lost), "{told:?}");
        assert_ne!(session_id(&client), before);
        assert_eq!(client.state(), SessionState::Connected);
        assert_eq!(client.exists(&node).wait().unwrap(), None);
    }
}

#[test]
fn who_looks_late_still_hears_of_each_loss() {
    let (client, _) = alone();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let mut watching = client.states();
    expire(shared(), &client);
    states_until(&mut watching, SessionState::Lost);
    states_until(&mut watching, SessionState::Connected);
    assert_eq!(states.wait_timeout(Duration::ZERO), Ok(Some(SessionState::Lost)));
    assert_eq!(states.wait_timeout(Duration::ZERO), Ok(Some(SessionState::Connected)));
    assert_eq!(states.wait_timeout(Duration::ZERO), Err(Timeout));
}

#[test]
fn a_client_that_shall_not_reopen_is_closed_by_the_expiry() {
    for _ in 0..5 {
        let client = options().reopen(false).connect(&shared().hosts()).wait().unwrap();
        let mut states = client.states();
        expire(shared(), &client);
        let told = states_until(&mut states, SessionState::Closed);
        let losses = told.iter().filter(|state| **state == SessionState::Lost).count();
        assert_eq!(losses, 1, "{told:?}");
        assert_eq!(states.wait(), None);
        assert_eq!(client.get("/").wait().unwrap_err().code(), Code::SESSION_EXPIRED);
        assert_eq!(client.session(), None);
        client.close().wait().unwrap();
    }
}

#[test]
fn a_restarted_server_keeps_the_session() {
    let bench = Bench::untouched();
    // Much longer than the server is away, on a busy machine too.
    let client =
        options().session_timeout(LONGEST_SESSION).connect(&bench.server.hosts()).wait().unwrap();
    client.create("/ephemeral", b"", CreateMode::Ephemeral).wait().unwrap();
    let session = client.session();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    bench.server.stop().unwrap();
    assert_eq!(states_until(&mut states, SessionState::Suspended), [SessionState::Suspended]);
    assert!(client.get("/").wait().is_err());
    bench.server.start_again().unwrap();
    assert_eq!(states_until(&mut states, SessionState::Connected), [SessionState::Connected]);
    assert_eq!(client.session(), session);
    let stat = client.exists("/ephemeral").wait().unwrap().unwrap();
    assert_eq!(stat.ephemeral_owner, session.unwrap().id());
}

#[test]
fn a_session_is_taken_up_by_its_key() {
    let bench = Bench::untouched();
    let first = bench.client();
    first.create("/ephemeral", b"", CreateMode::Ephemeral).wait().unwrap();
    let session = first.session().unwrap();
    // Without a connection the session can't be closed with its client.
    bench.proxy.cut();
    drop(first);
    let hosts = bench.server.hosts();
    let second = options().session(session).connect(&hosts).wait().unwrap();
    assert_eq!(second.session(), Some(session));
    assert!(second.exists("/ephemeral").wait().unwrap().is_some());
    let key = SessionKey::new(session.id(), session.password());
    second.close().wait().unwrap();
    // Now it is over, and nobody else's session is taken for it.
    let error = options().session(key).connect(&hosts).wait().unwrap_err();
    assert_eq!(error.code(), Code::SESSION_EXPIRED);
    let wrong = SessionKey::new(session.id(), [1; 16]);
    let error = options().session(wrong).connect(&hosts).wait().unwrap_err();
    assert_eq!(error.code(), Code::SESSION_EXPIRED);
}

#[test]
fn a_session_that_was_taken_up_and_expires_is_followed_by_a_new_one() {
    let bench = Bench::untouched();
    let first = bench.client();
    let session = first.session().unwrap();
    bench.proxy.cut();
    drop(first);
    let second = options().session(session).connect(&bench.server.hosts()).wait().unwrap();
    let mut states = second.states();
    expire(&bench.server, &second);
    states_until(&mut states, SessionState::Lost);
    states_until(&mut states, SessionState::Connected);
    assert_ne!(session_id(&second), session.id());
}

#[test]
fn the_session_timeout_is_what_the_server_grants() {
    let (least, most) = (Duration::from_secs(4), Duration::from_secs(40));
    let server =
        Server::builder().min_session_timeout(least).max_session_timeout(most).start().unwrap();
    let timeout = |wanted| {
        let client = options().session_timeout(wanted).connect(&server.hosts()).wait();
        client.unwrap().session_timeout().unwrap()
    };
    assert_eq!(timeout(SESSION_TIMEOUT), SESSION_TIMEOUT);
    assert_eq!(timeout(Duration::from_secs(3_600)), most);
    assert_eq!(timeout(Duration::from_secs(2)), least);
    for wanted in [Duration::ZERO, Duration::from_micros(1), Duration::MAX] {
        let error = options().session_timeout(wanted).connect("localhost").wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
    }
}

#[test]
fn the_states_are_a_stream_that_ends_with_the_client() {
    let (client, _) = alone();
    let states = client.states();
    let closer = client.clone();
    let told: Vec<_> = block_on(async {
        let mut states = states;
        let first = states.next().await.unwrap();
        closer.close().await.unwrap();
        let rest: Vec<_> = states.collect().await;
        [vec![first], rest].concat()
    });
    assert_eq!(told, [SessionState::Connected, SessionState::Closed]);
}

#[test]
fn states_do_not_keep_the_client_open() {
    let (client, _) = alone();
    let session = session_id(&client);
    let mut states = client.states();
    drop(client);
    states_until(&mut states, SessionState::Closed);
    eventually("the session is over", || !shared().sessions().unwrap().contains(&session));
}

#[test]
fn clones_share_the_session_until_the_last_one_goes() {
    let (client, path) = alone();
    let clone = client.clone();
    assert_eq!(client.session(), clone.session());
    let node = format!("{path}/ephemeral");
    client.create(&node, b"", CreateMode::Ephemeral).wait().unwrap();
    drop(client);
    assert!(clone.exists(&node).wait().unwrap().is_some());
    drop(clone);
    let other = connect(shared());
    eventually("the session is over", || other.exists(&node).wait().unwrap().is_none());
}

#[test]
fn two_clients_that_want_one_session_do_not_hang() {
    let bench = Bench::untouched();
    let first = bench.direct();
    let key = first.session().unwrap();
    let second = options().session(key).connect(&bench.server.hosts()).wait().unwrap();
    // They push each other off; each gets its turn.
    for client in [&first, &second] {
        eventually("a turn", || client.get("/").within(TIMEOUT).wait().is_ok());
    }
    second.close().wait().unwrap();
}
