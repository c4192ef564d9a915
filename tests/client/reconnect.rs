//! Servers that are not there, or not any more.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use test_support::{Bench, TIMEOUT, eventually, options, shared, states_until};
use zklock::zookeeper::{Acl, CreateMode, Op, SessionState};
use zklock::{Client, Code};

/// An address on which nothing listens, for as long as the guard lives: the port is bound, and
/// without a listener every connection to it is refused.
fn dead() -> (Box<dyn std::any::Any>, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = zklock_testing::Proxy::start(listener.local_addr().unwrap()).unwrap();
    proxy.refuse();
    let hosts = proxy.hosts();
    (Box::new(proxy), hosts)
}

#[test]
fn one_of_two_addresses_may_be_dead() {
    let bench = Bench::untouched();
    let (_dead, dead) = dead();
    for hosts in
        [format!("{dead},{}", bench.proxy.hosts()), format!("{},{dead}", bench.proxy.hosts())]
    {
        let client = options().connect(&hosts).wait().unwrap();
        let session = client.session();
        let mut states = client.states();
        for _ in 0..3 {
            bench.proxy.refuse();
            states_until(&mut states, SessionState::Suspended);
            bench.proxy.heal();
            states_until(&mut states, SessionState::Connected);
        }
        assert_eq!(client.session(), session);
        client.get("/").wait().unwrap();
    }
}

#[test]
fn three_of_four_addresses_may_be_dead() {
    let bench = Bench::untouched();
    let dead = [dead(), dead(), dead()];
    let hosts: Vec<&str> = dead.iter().map(|(_, hosts)| hosts.as_str()).collect();
    let hosts = format!("{},{}", hosts.join(","), bench.proxy.hosts());
    let client = options().connect(&hosts).wait().unwrap();
    let mut states = client.states();
    bench.proxy.refuse();
    states_until(&mut states, SessionState::Suspended);
    bench.proxy.heal();
    states_until(&mut states, SessionState::Connected);
}

fn every_call_ends(client: &Client) {
    let code = |result: Result<(), zklock::Error>| {
        let error = result.unwrap_err();
        assert!(!error.to_string().is_empty());
        error.code()
    };
    let codes = [
        code(client.create("/a", b"", CreateMode::Persistent).wait().map(drop)),
        code(client.delete("/a", None).wait()),
        code(client.exists("/a").wait().map(drop)),
        code(client.exists_and_watch("/a").wait().map(drop)),
        code(client.get("/a").wait().map(drop)),
        code(client.get_and_watch("/a").wait().map(drop)),
        code(client.set("/a", b"", None).wait().map(drop)),
        code(client.children("/a").wait().map(drop)),
        code(client.children_and_watch("/a").wait().map(drop)),
        code(client.get_acl("/a").wait().map(drop)),
        code(client.set_acl("/a", &Acl::open(), None).wait()),
        code(client.sync("/a").wait()),
        code(client.multi(&[Op::check("/a")]).wait().map(drop)),
        code(client.make_path("/a/b").wait()),
        code(client.add_auth("digest", b"a:b").wait()),
    ];
    for code in codes {
        let was_not_done = [Code::SESSION_EXPIRED, Code::NOT_CONNECTED].contains(&code);
        assert!(code.is_outcome_unknown() || was_not_done, "{code:?}");
    }
}

#[test]
fn when_the_server_goes_away_for_ever_every_call_ends() {
    let bench = Bench::untouched();
    let client = options()
        .operation_timeout(Duration::from_millis(100))
        .session_timeout(Duration::from_secs(2))
        .connect(&bench.server.hosts())
        .wait()
        .unwrap();
    let mut states = client.states();
    bench.server.kill();
    every_call_ends(&client);
    states_until(&mut states, SessionState::Lost);
    every_call_ends(&client);
    assert!(client.close().within(TIMEOUT).wait().unwrap_err().is_outcome_unknown());
}

#[test]
fn when_the_link_goes_silent_for_ever_every_call_ends() {
    let bench = Bench::untouched();
    let client = options()
        .operation_timeout(Duration::from_millis(100))
        .session_timeout(Duration::from_secs(2))
        .connect(&bench.proxy.hosts())
        .wait()
        .unwrap();
    let mut states = client.states();
    bench.proxy.cut();
    every_call_ends(&client);
    states_until(&mut states, SessionState::Lost);
    every_call_ends(&client);
    assert!(client.close().within(TIMEOUT).wait().unwrap_err().is_outcome_unknown());
}

#[test]
fn a_connect_that_finds_no_server_ends_by_its_timeout() {
    let (_dead, dead) = dead();
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    for hosts in [dead.as_str(), "no-such-host.invalid:2181", silent.as_str()] {
        let timeout = Duration::from_millis(700);
        let began = Instant::now();
        let error = options().connect_timeout(timeout).connect(hosts).wait().unwrap_err();
        assert_eq!(error.code(), Code::OPERATION_TIMEOUT, "{hosts}");
        assert!(error.to_string().contains(hosts), "{error}");
        assert!(began.elapsed() >= timeout, "{hosts}");
        let error =
            futures_lite::future::block_on(options().connect_timeout(timeout).connect(hosts));
        assert_eq!(error.unwrap_err().code(), Code::OPERATION_TIMEOUT, "{hosts}");
        let pending = options().connect(hosts);
        assert!(pending.within(Duration::from_millis(10)).wait().unwrap_err().is_timeout());
    }
}

#[test]
fn a_server_that_comes_up_late_is_found() {
    let bench = Bench::untouched();
    bench.server.stop().unwrap();
    let connecting = options().connect(&bench.server.hosts());
    let starting = std::thread::spawn(move || {
        bench.server.start_again().unwrap();
        bench
    });
    let client = connecting.wait().unwrap();
    client.get("/").wait().unwrap();
    drop(starting.join().unwrap());
}

#[test]
fn a_connect_that_is_dropped_leaves_no_session() {
    let bench = Bench::untouched();
    for n in 0..20 {
        // One that was just being made when the client went is left to its timeout.
        let timeout = Duration::from_secs(2);
        let pending = options().session_timeout(timeout).connect(&bench.server.hosts());
        if n % 2 == 0 {
            drop(pending);
        } else {
            let _ = pending.within(Duration::from_millis(n)).wait();
        }
    }
    eventually("no session is left", || bench.server.sessions().unwrap().is_empty());
}

#[test]
fn a_name_is_resolved_as_well_as_an_address() {
    let port = shared().addr().port();
    let client = options().connect(&format!("localhost:{port}")).wait().unwrap();
    client.get("/").wait().unwrap();
}
