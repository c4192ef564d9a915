//! The switches that act on all of a proxy's connections.

use std::io::ErrorKind::ConnectionReset;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::{Bench, SESSION, TIMEOUT};
use zklock_testing::Proxy;
use zklock_testing::eventually;
use zklock_testing::wire::RawClient;

#[test]
fn a_cut_is_silent_and_what_was_sent_into_it_never_arrives() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    client.create("/a", b"").unwrap();
    let mut other = bench.direct();
    bench.proxy.cut();
    client.set_reply_timeout(Duration::from_millis(100));
    assert!(client.create("/lost", b"").unwrap_err().is_timeout());
    // A newcomer gets a connection and no answer.
    let proxy = bench.proxy.addr();
    let newcomer = std::thread::spawn(move || RawClient::connect(proxy, SESSION));
    eventually("it is accepted", || bench.proxy.connections() == 2);
    assert!(!newcomer.is_finished());
    bench.proxy.heal();
    assert_eq!(client.wait_closed(TIMEOUT).unwrap(), ConnectionReset);
    assert!(newcomer.join().unwrap().unwrap_err().is_connection_loss());
    assert!(other.exists("/lost").unwrap().is_none());
    let mut client = bench.through_proxy();
    assert!(client.exists("/lost").unwrap().is_none());
    assert!(client.exists("/a").unwrap().is_some());
}

#[test]
fn a_cut_session_expires_at_the_server_while_its_client_knows_nothing() {
    let bench = Bench::start();
    let timeout = Duration::from_millis(300);
    let mut client = RawClient::connect(bench.proxy.addr(), timeout).unwrap();
    let (id, password) = (client.session_id(), client.password());
    bench.proxy.cut();
    eventually("the session ends", || !bench.server.sessions().unwrap().contains(&id));
    assert!(client.wait_closed(Duration::ZERO).unwrap_err().is_timeout());
    bench.proxy.heal();
    assert!(RawClient::attach(bench.proxy.addr(), timeout, id, &password).is_err());
}

#[test]
fn a_refusing_proxy_looks_like_a_server_that_is_down() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    for _ in 0..3 {
        bench.proxy.refuse();
        assert_eq!(client.wait_closed(TIMEOUT).unwrap(), ConnectionReset);
        let refused: std::io::Error =
            RawClient::connect(bench.proxy.addr(), SESSION).unwrap_err().into();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        bench.proxy.heal();
        client = bench.through_proxy();
    }
    bench.proxy.reset_all();
    assert_eq!(client.wait_closed(TIMEOUT).unwrap(), ConnectionReset);
    bench.through_proxy().create("/a", b"").unwrap();
}

#[test]
fn a_killed_server_is_noticed_through_the_proxy_and_found_again_after_it() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    bench.server.kill();
    client.wait_closed(TIMEOUT).unwrap();
    assert!(RawClient::connect(bench.proxy.addr(), SESSION).is_err());
    bench.server.start_again().unwrap();
    bench.through_proxy().create("/a", b"").unwrap();
}

#[test]
fn a_switch_that_another_thread_throws_back_at_once_returns_all_the_same() {
    let bench = Bench::start();
    let proxy = Arc::new(bench.proxy);
    let (done, finished) = channel();
    for switch in [Proxy::refuse, Proxy::heal, Proxy::cut] {
        let (proxy, done) = (Arc::clone(&proxy), done.clone());
        std::thread::spawn(move || {
            (0..2000).for_each(|_| switch(&proxy));
            let _ = done.send(());
        });
    }
    for _ in 0..3 {
        finished.recv_timeout(TIMEOUT).expect("no switch hangs");
    }
}
