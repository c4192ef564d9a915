//! More watched paths than a reconnection can set again in one request.

use std::time::{Duration, Instant};

use zklock::zookeeper::{CreateMode, SessionState};
use zklock::{Client, Code, GuardState, Strategy};
use zklock_testing::wire::Ops;
use zklock_testing::{Proxy, Rule, Server};

use crate::bench::{TIMEOUT, client, eventually, number, options, report, with_crowd};

/// Watches so many children of a directory until that is refused.
fn watch_children(client: &Client, directory: &str, children: usize) -> (usize, Option<Code>) {
    client.make_path(directory).wait().unwrap();
    let name = "n".repeat(200);
    for n in 0..children {
        let path = format!("{directory}/{name}-{n}");
        // The watch is forgotten here, but the C client keeps it.
        match client.exists_and_watch(&path).wait() {
            Ok(_) => {}
            Err(error) => return (n, Some(error.code())),
        }
    }
    (children, None)
}

#[test]
fn a_client_that_watches_all_that_it_may_reconnects_and_locks() {
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let client = options().connect(&proxy.hosts()).wait().unwrap();
    let session = client.session();
    let early = client.lock("/locks/early").acquire().wait().unwrap();
    let (watched, refused) = watch_children(&client, "/watched", 10_000);
    assert_eq!(refused, Some(Code::THROTTLED_OP), "after {watched}");
    assert!(watched > 2_000, "{watched}");
    // Without room for a watch, locks are acquired, waited for and held all the same.
    for strategy in [Strategy::Queue, Strategy::Watch] {
        let path = format!("/locks/{strategy:?}");
        let outsider = crate::bench::client(&server);
        let first = outsider.lock(&path).strategy(strategy).acquire().wait().unwrap();
        proxy.clear_seen();
        let waiting = with_crowd(|crowd| {
            let waiting = crowd.spawn(client.lock(&path).strategy(strategy).acquire());
            // It has claimed, or seen that it is taken.
            proxy.wait_for(&Rule::reply(Ops::creates()), 1, TIMEOUT).unwrap();
            assert!(!waiting.is_finished());
            first.release().wait().unwrap();
            futures_lite::future::block_on(waiting).unwrap()
        });
        assert_eq!(waiting.state(), GuardState::Held);
        waiting.release().wait().unwrap();
    }
    proxy.reset_all();
    let late = client.lock("/locks/late").acquire().within(TIMEOUT).wait().unwrap();
    assert_eq!(client.session(), session);
    assert_eq!((early.state(), late.state()), (GuardState::Held, GuardState::Held));
    // What ends makes room again.
    let outsider = crate::bench::client(&server);
    let gone = format!("/watched/{}-0", "n".repeat(200));
    outsider.create(&gone, b"", CreateMode::Ephemeral).wait().unwrap();
    eventually("there is room again", || client.exists_and_watch(&gone).wait().is_ok());
    report(&format!("{watched} paths of 211 bytes watched on one client, the next is refused"));
}

/// A server that takes smaller requests than the client was told: all watches at once are too large for
/// it, and each new connection ends with that request.
#[test]
fn a_session_whose_connections_bring_no_answer_is_given_up_and_its_locks_are_freed() {
    let server = Server::builder().jvm_arg("-Djute.maxbuffer=65536").start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let timeout = Duration::from_secs(4);
    let client = options().session_timeout(timeout).connect(&proxy.hosts()).wait().unwrap();
    let session = client.session().unwrap();
    let guard = client.lock("/locks/freed").acquire().wait().unwrap();
    let (watched, refused) = watch_children(&client, "/watched", number(600, 600));
    assert_eq!((watched, refused), (600, None));
    let outsider = crate::bench::client(&server);
    let began = Instant::now();
    proxy.reset_all();
    let lock = outsider.lock("/locks/freed");
    drop(lock.acquire().within(TIMEOUT).wait().unwrap());
    assert_eq!(guard.state(), GuardState::Lost);
    let freed = began.elapsed();
    eventually("it goes on with another session", || {
        client.state() == SessionState::Connected
            && client.session().is_some_and(|key| key.id() != session.id())
    });
    client.lock("/locks/freed").acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    report(&format!(
        "a session that can't be proven any more is freed after {freed:.1?}, at T = 4 s"
    ));
}

/// Waiters with long names: most of them have no watch, and all are served.
#[test]
fn waiters_without_room_for_a_watch_are_served() {
    let server = Server::start().unwrap();
    let (one, outsider) = (options().max_request(40_000), client(&server));
    let one = one.connect(&server.hosts()).wait().unwrap();
    let path = format!("/locks/{}", "l".repeat(180));
    let first = outsider.lock(&path).acquire().wait().unwrap();
    let began = Instant::now();
    let waiters = number(400, 2_000);
    with_crowd(|crowd| {
        let waiting: Vec<_> = (0..waiters)
            .map(|_| {
                let lock = one.lock(&path);
                crowd.spawn(async move { lock.acquire().await?.release().await })
            })
            .collect();
        eventually("all are in the queue", || server.stats().unwrap().ephemerals > waiters as u64);
        let watches = server.stats().unwrap().watches;
        assert!(watches < 250, "{watches} watches");
        first.release().wait().unwrap();
        waiting.into_iter().for_each(|it| futures_lite::future::block_on(it).unwrap());
    });
    report(&format!(
        "{waiters} waiters, with room for a tenth of the watches | {:.1} s",
        began.elapsed().as_secs_f64()
    ));
}
