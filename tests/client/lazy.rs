//! Clients that are there before their servers are.

use std::time::Duration;

use test_support::{Bench, TIMEOUT, acquire_in_background, options, states_until};
use zklock::Code;
use zklock::zookeeper::SessionState;

const SOON: Duration = Duration::from_millis(200);

#[test]
fn a_client_that_is_there_before_its_servers_serves_when_they_are() {
    let bench = Bench::untouched();
    bench.proxy.refuse();
    let client = options().connect_lazily(&bench.proxy.hosts()).unwrap();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connecting));
    assert!(client.connected().within(SOON).wait().unwrap_err().is_timeout());
    let lock = bench.lock(&client);
    assert!(lock.acquire().within(SOON).wait().unwrap_err().is_timeout());
    assert_eq!((client.session(), client.state()), (None, SessionState::Connecting));
    let acquiring = acquire_in_background(&lock);
    bench.proxy.heal();
    client.connected().within(TIMEOUT).wait().unwrap();
    states_until(&mut states, SessionState::Connected);
    let guard = acquiring.join().unwrap().unwrap();
    assert!(client.exists(&guard.claim_path()).wait().unwrap().is_some());
    guard.release().wait().unwrap();
    bench.expect_free();
}

#[test]
fn what_can_be_seen_at_once_is_refused_at_once_and_the_rest_closes_the_client() {
    let bench = Bench::untouched();
    let error = options().connect_lazily("host:port").unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
    // Only the servers tell that they grant no more.
    let client =
        options().session_timeout(Duration::from_secs(4)).tick_time(Duration::from_secs(3));
    let client = client.connect_lazily(&bench.server.hosts()).unwrap();
    states_until(&mut client.states(), SessionState::Closed);
    assert!(client.connected().wait().is_err());
}

#[test]
fn one_that_never_connects_can_be_closed() {
    let client = options().connect_lazily("no-such-host.invalid").unwrap();
    let acquiring = acquire_in_background(&client.lock("/lazy"));
    client.close().within(TIMEOUT).wait().unwrap();
    assert!(acquiring.join().unwrap().is_err());
    assert_eq!(client.state(), SessionState::Closed);
}
