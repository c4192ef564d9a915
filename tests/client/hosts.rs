//! Hosts that are no good, among which one is; and the words for those that are not.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use test_support::{
    Bench, Link, Process, TIMEOUT, child_about, options, say, shared, states_until,
};
use zklock::zookeeper::{CreateMode, SessionState};
use zklock::{Code, GuardState};
use zklock_testing::wire::Op;
use zklock_testing::{Action, Proxy, Rule, Server};

use crate::preload::{NAMES_FILE, preloaded};

/// A host that accepts connections and says nothing on them, until it is dropped.
struct Silent {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Silent {
    fn start() -> Silent {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                kept.push(stream.unwrap());
            }
        });
        Silent { address, over }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

/// So many silent hosts, and a good one in their midst.
fn among(silent: &[Silent], good: &str) -> String {
    let mut hosts: Vec<String> = silent.iter().map(|host| host.address.to_string()).collect();
    hosts.insert(silent.len() / 2, good.to_owned());
    hosts.join(",")
}

/// So long that two silent hosts, tried one after the other, are more than anybody waits for here.
const LONGEST_SESSION: Duration = Duration::from_secs(60);

#[test]
fn one_good_host_among_fifty_is_found_in_time() {
    let bench = Bench::untouched();
    let silent: Vec<Silent> = (0..49).map(|_| Silent::start()).collect();
    let hosts = among(&silent, &bench.proxy.hosts());
    let client = options().session_timeout(LONGEST_SESSION).connect(&hosts).wait().unwrap();
    client.create("/node", b"", CreateMode::Ephemeral).wait().unwrap();
}

#[test]
fn the_good_host_is_found_again_before_the_session_ends() {
    let bench = Bench::untouched();
    let silent: Vec<Silent> = (0..9).map(|_| Silent::start()).collect();
    let hosts = among(&silent, &bench.proxy.hosts());
    let timeout = Duration::from_secs(12);
    let client = options().session_timeout(timeout).connect(&hosts).wait().unwrap();
    let session = client.session();
    for _ in 0..3 {
        let mut states = client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        bench.proxy.refuse();
        states_until(&mut states, SessionState::Suspended);
        bench.proxy.heal();
        states_until(&mut states, SessionState::Connected);
        // The session of before, though a silent host had it for two thirds of its time.
        assert_eq!(client.session(), session);
    }
}

#[test]
fn a_session_that_is_taken_up_is_so_behind_silent_hosts_too() {
    let bench = Bench::untouched();
    let first = bench.client();
    let session = first.session().unwrap();
    // Its session stays: no farewell gets through.
    bench.proxy.cut();
    drop(first);
    let silent: Vec<Silent> = (0..5).map(|_| Silent::start()).collect();
    let hosts = among(&silent, &bench.server.hosts());
    let second =
        options().session_timeout(LONGEST_SESSION).session(session).connect(&hosts).wait().unwrap();
    assert_eq!(second.session(), Some(session));
}

#[test]
fn each_host_is_named_with_what_is_wrong_with_it() {
    let silent = Silent::start();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let timeout = Duration::from_secs(3);
    let words_after = |timeout: Duration, hosts: &str| {
        let error = options().connect_timeout(timeout).connect(hosts).wait().unwrap_err();
        assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
        error.to_string()
    };
    let words = |hosts: &str| words_after(timeout, hosts);
    let refused = format!("cannot connect to {closed}: connection refused");
    let quiet = format!("{} accepts but does not answer", silent.address);
    assert!(words(&closed.to_string()).contains(&refused));
    assert!(words(&silent.address.to_string()).contains(&quiet));
    // How long that takes is the machine's affair: until then no more can be said.
    let unresolved = |timeout| {
        let words = words_after(timeout, "no-such-host.invalid:2181");
        words.contains("cannot resolve host no-such-host.invalid")
    };
    assert!([timeout, 5 * timeout, 20 * timeout].into_iter().any(unresolved));
    let both = words(&format!("{closed},{}/app", silent.address));
    assert!(both.contains(&refused) && both.contains(&quiet), "{both}");
}

#[test]
fn hosts_and_an_address_are_the_same_to_a_client_and_to_a_store() {
    let hosts = test_support::shared::zookeeper().hosts();
    let address = format!("zookeeper://{hosts}");
    for text in [&hosts, &address] {
        options().connect(text).wait().unwrap().close().wait().unwrap();
        let store = zklock::connect(text).wait().unwrap();
        assert!(store.client().is_some(), "{text}");
        store.close().wait().unwrap();
    }
}

#[test]
fn what_can_never_be_a_host_or_a_timeout_is_refused_at_once() {
    let code_and_words = |timeout: Duration, hosts: &str| {
        let error = options().session_timeout(timeout).connect(hosts).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
        error.to_string()
    };
    assert!(
        code_and_words(LONGEST_SESSION, "http://127.0.0.1:2181")
            .contains("is a URL: write host:port")
    );
    for millis in [1, 100, i32::MAX as u64] {
        let words = code_and_words(Duration::from_millis(millis), "127.0.0.1:2181");
        assert!(words.contains("it takes 500 ms to"), "{words}");
    }
}

#[test]
fn a_server_with_all_the_clients_it_takes_is_named() {
    let server = Server::builder().property("maxClientCnxns", "1").start().unwrap();
    let first = options().connect(&server.hosts()).wait().unwrap();
    let impatient = options().connect_timeout(Duration::from_secs(3));
    let error = impatient.connect(&server.hosts()).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
    assert!(error.to_string().contains("maxClientCnxns"), "{error}");
    first.close().wait().unwrap();
    options().connect(&server.hosts()).wait().unwrap();
}

#[test]
fn a_host_that_is_slow_to_shake_hands_is_waited_for_beside_one_that_is_down() {
    let bench = Bench::untouched();
    let down = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    bench.proxy.on(Rule::reply(Op::Connect), Action::Delay(Duration::from_millis(2_500)));
    let hosts = format!("{},{down}", bench.proxy.hosts());
    let client = options().connect_timeout(TIMEOUT).connect(&hosts).wait().unwrap();
    client.create("/node", b"", CreateMode::Ephemeral).wait().unwrap();
}

#[test]
fn a_session_survives_servers_that_answer_without_a_quorum() {
    // Without one they serve readers, and say so: not that a session can be had.
    let builder = Server::builder().jvm_arg("-Dreadonlymode.enabled=true");
    let ensemble = builder.start_ensemble(3).unwrap();
    let timeout = Duration::from_secs(4);
    let client = options().session_timeout(timeout).connect(&ensemble.hosts()).wait().unwrap();
    let session = client.session();
    for member in &ensemble.members()[1..] {
        member.stop().unwrap();
    }
    let mut states = client.states();
    states_until(&mut states, SessionState::Lost);
    // So long that a client which takes their answers for service would have given up.
    std::thread::sleep(3 * timeout);
    for member in &ensemble.members()[1..] {
        member.start_again().unwrap();
    }
    states_until(&mut states, SessionState::Connected);
    assert_eq!(client.session(), session);
}

#[test]
fn in_a_child_process_a_server_moves() {
    let Some(hosts) = child_about() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let (session, mut states) = (client.session(), client.states());
    let guard = client.lock("/moved").acquire().wait().unwrap();
    say("held");
    states_until(&mut states, SessionState::Suspended);
    states_until(&mut states, SessionState::Connected);
    assert_eq!((client.session(), guard.state()), (session, GuardState::Held));
    guard.release().wait().unwrap();
    options().connect(&hosts).wait().unwrap();
    say("done");
}

#[test]
fn a_server_whose_name_has_a_new_address_is_found_there() {
    let (library, directory) = preloaded("names.c");
    let names = directory.path().join("names");
    let variables = [("LD_PRELOAD", library), (NAMES_FILE, names.clone())];
    let server = shared();
    let proxy = Proxy::start(server.hosts()).unwrap();
    let port = proxy.addr().port();
    let test = "hosts::in_a_child_process_a_server_moves";
    let mut child = Process::start_test_with(test, &format!("moved:{port}"), &variables);
    child.expect("\"held\"");
    let _link = Link::between(SocketAddr::from(([127, 0, 0, 2], port)), server.addr());
    std::fs::write(names, "127.0.0.2").unwrap();
    drop(proxy);
    child.expect("\"done\"");
    assert!(child.end().success());
}
