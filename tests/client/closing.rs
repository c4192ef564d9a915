//! A close that reports success has ended the session, and with it every claim. Otherwise the outcome is unknown.

use std::thread;
use std::time::Duration;

use test_support::{Bench, TIMEOUT, connect, eventually, options, scaled, session_id};
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock::{Client, Code, Guard};
use zklock_testing::wire::Op;
use zklock_testing::{Action, Rule, Server};

use crate::lifecycle::voluntary_waits;

/// Holds so many locks.
fn hold(client: &Client, locks: usize) -> Vec<Guard> {
    let acquires: Vec<_> =
        (0..locks).map(|n| client.lock(&format!("/held/{n}")).acquire()).collect();
    acquires.into_iter().map(|acquire| acquire.within(TIMEOUT).wait().unwrap()).collect()
}

/// The server counts no session, and keeps no claim.
fn expect_nothing_left(server: &Server) {
    let (sessions, claims) = (server.sessions().unwrap(), server.ephemerals().unwrap());
    assert!(sessions.is_empty() && claims.is_empty(), "{sessions:x?} {claims:?}");
}

#[test]
fn a_close_right_after_releases_ends_them_and_the_session() {
    let server = Server::start().unwrap();
    for (locks, rounds) in [(1, scaled(10, 50)), (20, scaled(10, 50)), (500, scaled(2, 10))] {
        for _ in 0..rounds {
            let client = connect(&server);
            let guards = hold(&client, locks);
            drop(guards);
            client.close().wait().unwrap();
            expect_nothing_left(&server);
        }
    }
}

#[test]
fn guards_are_lost_before_the_session_is_asked_to_end() {
    let bench = Bench::untouched();
    let client = bench.client();
    let guards = hold(&client, 2);
    let farewell = bench.proxy.hold(Rule::request(Op::CloseSession));
    let closing = client.close();
    farewell.wait_reached(TIMEOUT).unwrap();
    assert!(guards.iter().all(Guard::is_lost));
    farewell.release();
    closing.wait().unwrap();
}

#[test]
fn a_close_ends_what_is_held_while_events_and_replies_arrive() {
    let server = Server::start().unwrap();
    let writer = connect(&server);
    writer.create("/watched", b"", CreateMode::Persistent).wait().unwrap();
    let session = session_id(&writer);
    for _ in 0..scaled(20, 100) {
        let client = connect(&server);
        let guards = hold(&client, 20);
        let _watches: Vec<_> = (0..50).map(|_| client.get_and_watch("/watched")).collect();
        let reads: Vec<_> = (0..50).map(|_| client.get("/watched")).collect();
        let written = writer.set("/watched", b"", None);
        client.close().wait().unwrap();
        drop((guards, reads, written));
        assert_eq!(server.sessions().unwrap(), [session]);
        assert!(server.ephemerals().unwrap().is_empty());
    }
}

/// The servers refuse a session as soon as its end is proposed. A session that begins later is committed after that.
#[test]
fn a_close_is_confirmed_by_a_session_that_begins_after_it() {
    let bench = Bench::untouched();
    bench.client().close().wait().unwrap();
    expect_nothing_left(&bench.server);
    // That of the session, and that of the other one; or the session's again, if the first had not been read yet.
    assert_eq!(bench.proxy.count(&Rule::request(Op::CloseSession)), 2);
}

#[test]
fn a_close_that_never_reaches_the_server_is_repeated() {
    let bench = Bench::untouched();
    let client = bench.client();
    let guards = hold(&client, 3);
    let lost = bench.proxy.on(Rule::request(Op::CloseSession).once(), Action::Drop);
    client.close().wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    expect_nothing_left(&bench.server);
    drop(guards);
}

#[test]
fn a_close_without_a_connection_ends_the_session_by_a_new_one() {
    let bench = Bench::untouched();
    let client = bench.client();
    let guards = hold(&client, 3);
    bench.proxy.refuse();
    eventually("the connection is lost", || bench.proxy.connections() == 0);
    let closed = client.close();
    bench.proxy.heal();
    closed.wait().unwrap();
    expect_nothing_left(&bench.server);
    drop(guards);
}

#[test]
fn a_close_that_no_server_confirms_is_of_unknown_outcome() {
    let bench = Bench::untouched();
    let limit = Duration::from_millis(500);
    let client = options().operation_timeout(limit).connect(&bench.proxy.hosts()).wait().unwrap();
    let guards = hold(&client, 1);
    bench.proxy.cut();
    let error = client.close().wait().unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("close") && text.contains("no server has confirmed"), "{text}");
    assert!(guards[0].is_lost(), "whatever the servers know");
    // Again: the same, at once.
    let again = client.close().wait().unwrap_err();
    assert_eq!(again.code(), Code::CONNECTION_LOSS);
}

#[test]
fn a_drop_does_not_wait_and_ends_the_session_in_the_background() {
    let bench = Bench::untouched();
    let client = bench.client();
    let guards = hold(&client, 20);
    let farewell = bench.proxy.hold(Rule::request(Op::CloseSession));
    drop(guards);
    // The releases keep the client until they are confirmed.
    eventually("the client is released", || bench.server.ephemerals().unwrap().is_empty());
    let waits = thread::spawn(move || {
        let before = voluntary_waits();
        drop(client);
        voluntary_waits() - before
    });
    assert_eq!(waits.join().unwrap(), 0);
    farewell.wait_reached(TIMEOUT).unwrap();
    farewell.release();
    eventually("the session has ended", || bench.server.sessions().unwrap().is_empty());
}

#[test]
fn a_dropped_client_tries_ever_more_rarely_and_no_longer_than_its_session_lives() {
    let bench = Bench::untouched();
    let options = options().session_timeout(Duration::from_secs(4));
    let longer_than_this_test = 10 * TIMEOUT;
    let client = options
        .operation_timeout(longer_than_this_test)
        .connect(&bench.proxy.hosts())
        .wait()
        .unwrap();
    let handshake = Rule::request(Op::Connect);
    let refused = bench.proxy.on(handshake, Action::Reset);
    let before = refused.hits();
    drop(client);
    let mut seen = before;
    eventually("nobody tries any more", || {
        // Longer than any pause between two tries.
        thread::sleep(Duration::from_millis(1_500));
        let so_far = std::mem::replace(&mut seen, refused.hits());
        so_far == seen && seen > before
    });
    assert!(seen - before < 40, "{} tries", seen - before);
}

#[test]
fn a_close_does_not_confirm_an_earlier_session_of_which_nothing_is_known() {
    let bench = Bench::with_directory();
    let options = options().operation_timeout(Duration::from_secs(2));
    let client = options.connect(&bench.proxy.hosts()).wait().unwrap();
    // What it may not delete goes with its session, which it ends by itself.
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    bench.direct().set_acl(&bench.path, &acl, None).wait().unwrap();
    let member = client.group(&bench.path).join("a").wait().unwrap();
    let end = bench.proxy.on(Rule::request(Op::CloseSession), Action::Stall);
    assert_eq!(member.leave().wait().unwrap_err().code(), Code::NO_AUTH);
    eventually("its end is on the way", || end.hits() > 0);
    bench.proxy.cut();
    assert_eq!(client.close().wait().unwrap_err().code(), Code::CONNECTION_LOSS);
}
