//! A short walk through every function of the raw floor, for a run under valgrind too: there it
//! takes some fifty times as long, so all times are generous.

use std::sync::Mutex;
use std::time::Duration;

use zklock::zookeeper::{Acl, CreateMode, Op, Reconfiguration, SessionState, WatchEventKind};
use zklock::{Client, ClientOptions, Code};
use zklock_testing::eventually;
use zklock_testing::wire::Ops;
use zklock_testing::{Proxy, Rule, Server};

const TIMEOUT: Duration = Duration::from_secs(120);

/// One walk at a time: valgrind runs one thread at a time anyway.
static ALONE: Mutex<()> = Mutex::new(());

fn options() -> ClientOptions {
    Client::options()
        .session_timeout(Duration::from_secs(60))
        .connect_timeout(TIMEOUT)
        .operation_timeout(TIMEOUT)
}

#[test]
fn every_request_goes_its_way() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let zk = options().auth("digest", "user:secret").connect(&server.hosts()).wait().unwrap();
    zk.add_auth("digest", b"second:secret").wait().unwrap();
    let hour = Duration::from_secs(3_600);
    let modes = [
        CreateMode::Persistent,
        CreateMode::PersistentSequential,
        CreateMode::Ephemeral,
        CreateMode::EphemeralSequential,
        CreateMode::Container,
        CreateMode::PersistentWithTtl(hour),
        CreateMode::PersistentSequentialWithTtl(hour),
    ];
    for (n, mode) in modes.into_iter().enumerate() {
        zk.create(&format!("/node-{n}"), b"data", mode).wait().unwrap();
    }
    let node = "/node-0";
    assert!(zk.create(node, b"", CreateMode::Persistent).wait().unwrap_err().is_node_exists());
    assert_eq!(zk.get(node).wait().unwrap().data, b"data");
    zk.set(node, &vec![1; 100_000], Some(0)).wait().unwrap();
    assert_eq!(zk.get(node).wait().unwrap().data.len(), 100_000);
    assert!(zk.set(node, b"", Some(0)).wait().is_err());
    assert!(zk.exists(node).wait().unwrap().is_some());
    assert!(zk.exists("/none").wait().unwrap().is_none());
    assert!(zk.get("/none").wait().is_err());
    assert!(zk.children("/none").wait().is_err());
    assert_eq!(zk.children("/").wait().unwrap().names.len(), 8);
    zk.set_acl(node, &Acl::creator(), None).wait().unwrap();
    // Both, and that of the session itself.
    assert_eq!(zk.get_acl(node).wait().unwrap().entries.len(), 3);
    assert!(zk.get_acl("/none").wait().is_err());
    assert_eq!(zk.set_acl(node, &[], None).wait().unwrap_err().code(), Code::INVALID_ACL);
    zk.sync("/").wait().unwrap();
    for change in [Reconfiguration::leave([7]), Reconfiguration::replace(["server.7=a:1:2;3"])] {
        let error = zk.reconfigure(&change, Some(1)).wait().unwrap_err();
        assert_eq!(error.code(), Code::RECONFIG_DISABLED);
    }
    #[cfg(feature = "raw")]
    assert_eq!(zk.with_zhandle(|zh| zh.is_null()), Some(false));
    zk.delete(node, None).wait().unwrap();
    assert!(zk.delete(node, None).wait().is_err());
    assert!(zk.session().is_some() && zk.session_timeout().is_some());
    zk.close().wait().unwrap();
}

#[test]
fn transactions_succeed_and_fail() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let zk = options().connect(&server.hosts()).wait().unwrap();
    let ops = [
        Op::create("/a", "data", CreateMode::Persistent),
        Op::create("/a/s-", "", CreateMode::EphemeralSequential),
        Op::set("/a", "more"),
        Op::check("/a"),
        Op::create("/b", "", CreateMode::Persistent),
        Op::delete("/b"),
    ];
    assert_eq!(zk.multi(&ops).wait().unwrap().len(), 6);
    for at in 0..4 {
        let mut ops = vec![Op::set("/a", "x"), Op::check("/a"), Op::set("/a", "y")];
        ops.insert(at, Op::delete("/none"));
        assert_eq!(zk.multi(&ops).wait().unwrap_err().code(), Code::NO_NODE);
    }
    assert!(zk.multi(&[Op::check("/a"), Op::delete("bad")]).wait().is_err());
}

#[test]
fn watches_fire_are_dropped_and_end_with_the_session() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    // A client that comes back while its session is being ended can wait for two thirds of this.
    let timeout = Duration::from_secs(20);
    let zk = options().session_timeout(timeout).connect(&server.hosts()).wait().unwrap();
    zk.create("/a", b"", CreateMode::Persistent).wait().unwrap();
    let data = zk.get_and_watch("/a").wait().unwrap().watch;
    let children = zk.children_and_watch("/a").wait().unwrap().watch;
    let exists = zk.exists_and_watch("/a/b").wait().unwrap().watch;
    drop(zk.get_and_watch("/a").wait().unwrap());
    zk.set("/a", b"x", None).wait().unwrap();
    zk.create("/a/b", b"", CreateMode::Persistent).wait().unwrap();
    assert_eq!(data.wait().unwrap().kind, WatchEventKind::DataChanged);
    assert_eq!(children.wait().unwrap().kind, WatchEventKind::ChildrenChanged);
    assert_eq!(exists.wait().unwrap().kind, WatchEventKind::Created);
    let watch = zk.get_and_watch("/a").wait().unwrap().watch;
    let session = zk.session().unwrap();
    zklock_testing::expire_session(&server.hosts(), session.id(), &session.password()).unwrap();
    assert_eq!(watch.wait().unwrap_err().code(), Code::SESSION_EXPIRED);
    eventually("the next session", || zk.state() == SessionState::Connected);
    assert_ne!(zk.session().unwrap().id(), session.id());
}

#[test]
fn transactions_on_a_session_that_is_over_are_refused() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let none = [Op::delete("/none"), Op::delete("/neither"), Op::check("/nor")];
    // A client that comes back while its session is being ended can wait for two thirds of this.
    let timeout = Duration::from_secs(3);
    for _ in 0..5 {
        let zk = options().session_timeout(timeout).connect(&server.hosts()).wait().unwrap();
        let session = zk.session().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                // Before anybody else knows that the session is over, the C client does.
                while zk.session() == Some(session) {
                    assert!(zk.multi(&none).wait().is_err());
                }
            });
            let expired =
                zklock_testing::expire_session(&server.hosts(), session.id(), &session.password());
            expired.unwrap();
            asking.join().unwrap();
        });
        eventually("the next session", || {
            zk.multi(&none).wait().unwrap_err().code() == Code::NO_NODE
        });
    }
}

#[test]
fn requests_on_their_way_are_answered_by_a_lost_connection_and_by_the_close() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    for close in [false, true] {
        let zk = options().connect(&proxy.hosts()).wait().unwrap();
        let gate = proxy.hold(Rule::reply(Ops::any()));
        let gets: Vec<_> = (0..50).map(|_| zk.get("/")).collect();
        let multis: Vec<_> = (0..50)
            .map(|_| zk.multi(&[Op::check("/"), Op::create("/n", "", CreateMode::Ephemeral)]))
            .collect();
        let watches: Vec<_> = (0..50).map(|_| zk.exists_and_watch("/x")).collect();
        let added = zk.add_auth("digest", b"user:secret");
        gate.wait_reached(TIMEOUT).unwrap();
        if close {
            zk.close().wait().unwrap();
        } else {
            proxy.reset_all();
        }
        assert!(gets.into_iter().all(|get| get.wait().is_err()));
        assert!(multis.into_iter().all(|multi| multi.wait().is_err()));
        assert!(watches.into_iter().all(|watch| watch.wait().is_err()));
        let _ = added.wait();
        drop(gate);
        if !close {
            eventually("the next connection", || zk.get("/").wait().is_ok());
        }
    }
}

#[test]
fn a_deadline_passes_before_the_answer_comes() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let timeout = Duration::from_secs(3);
    let zk = options().operation_timeout(timeout).connect(&proxy.hosts()).wait().unwrap();
    let gate = proxy.hold(Rule::reply(Ops::any()));
    let ops = [Op::create("/a", "data", CreateMode::Persistent), Op::set("/a", "more")];
    let multi = zk.multi(&ops);
    assert!(zk.get("/").wait().unwrap_err().is_timeout());
    assert!(multi.wait().unwrap_err().is_timeout());
    // The C client writes the results now, into memory that nobody waits for any more.
    gate.release();
    eventually("the late answers", || zk.get("/a").wait().is_ok());
}

#[test]
fn a_session_is_taken_up_and_hosts_that_are_not_there_are_given_up() {
    let _alone = ALONE.lock();
    let server = Server::start().unwrap();
    let proxy = Proxy::start(server.addr()).unwrap();
    let first = options().connect(&proxy.hosts()).wait().unwrap();
    let session = first.session().unwrap();
    proxy.cut();
    drop(first);
    let second = options().session(session).connect(&server.hosts()).wait().unwrap();
    assert_eq!(second.session(), Some(session));
    second.close().wait().unwrap();
    let again = options().session(session).connect(&server.hosts()).wait();
    assert_eq!(again.unwrap_err().code(), Code::SESSION_EXPIRED);
    proxy.refuse();
    // The C client logs each attempt, by a callback of ours.
    let impatient = options().connect_timeout(Duration::from_secs(3));
    for hosts in [format!("{},{}", proxy.hosts(), proxy.hosts()), "none.invalid:1".to_owned()] {
        assert!(impatient.connect(&hosts).wait().unwrap_err().is_timeout());
    }
    let refused = options().auth("nonsense", "x").connect(&server.hosts()).wait();
    assert_eq!(refused.unwrap_err().code(), Code::AUTH_FAILED);
}
