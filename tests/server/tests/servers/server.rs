//! A server does what it is told, and nothing of it is left when it goes.

use std::time::{Duration, Instant};

use zklock_testing::eventually;
use zklock_testing::wire::{CreateMode, RawClient};
use zklock_testing::{Error, Server, expire_session};

const SESSION: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(10);

fn connect(server: &Server) -> RawClient {
    RawClient::connect(server.addr(), SESSION).unwrap()
}

#[test]
fn a_started_server_serves() {
    let server = Server::start().unwrap();
    let mut client = connect(&server);
    assert_eq!(client.create("/a", b"data").unwrap(), "/a");
    assert_eq!(client.get_data("/a").unwrap().0, b"data");
    eventually("it is alone", || server.mode().as_deref() == Some("standalone"));
    client.close_session().unwrap();
}

#[test]
fn two_servers_run_side_by_side() {
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| Server::start().unwrap());
        (Server::start().unwrap(), other.join().unwrap())
    });
    assert_ne!(one.addr(), other.addr());
    connect(&one).create("/only-here", b"").unwrap();
    assert_eq!(connect(&other).exists("/only-here").unwrap(), None);
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = std::thread::spawn(|| Server::start().unwrap()).join().unwrap();
    connect(&server).create("/a", b"").unwrap();
}

#[test]
fn data_survives_a_kill_and_a_stop() {
    let server = Server::start().unwrap();
    let addr = server.addr();
    connect(&server).create("/a", b"kept").unwrap();
    server.kill();
    assert_eq!(server.pid(), None);
    assert!(RawClient::connect(addr, SESSION).is_err());
    server.start_again().unwrap();
    assert_eq!(server.addr(), addr);
    assert_eq!(connect(&server).get_data("/a").unwrap().0, b"kept");
    server.restart().unwrap();
    assert_eq!(connect(&server).get_data("/a").unwrap().0, b"kept");
}

#[test]
fn a_frozen_server_is_silent_until_it_is_thawed() {
    let server = Server::start().unwrap();
    let mut client = connect(&server);
    client.create("/a", b"").unwrap();
    server.freeze().unwrap();
    client.set_reply_timeout(Duration::from_millis(300));
    assert!(client.exists("/a").unwrap_err().is_timeout());
    server.thaw().unwrap();
    client.set_reply_timeout(TIMEOUT);
    assert!(client.exists("/a").unwrap().is_some());
    server.freeze().unwrap();
    server.stop().unwrap();
    assert!(matches!(server.thaw(), Err(Error::Stopped)));
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_files() {
    let server = Server::start().unwrap();
    let (process, directory) = (process_of(&server), server.directory().to_path_buf());
    assert!(process.exists() && directory.exists());
    drop(server);
    assert!(!process.exists() && !directory.exists());
}

fn process_of(server: &Server) -> std::path::PathBuf {
    format!("/proc/{}", server.pid().unwrap()).into()
}

#[test]
fn an_expired_client_is_told_and_its_ephemeral_nodes_are_gone() {
    let server = Server::start().unwrap();
    let mut client = connect(&server);
    client.create_with("/mine", b"", CreateMode::Ephemeral).unwrap();
    let (id, password) = (client.session_id(), client.password());
    assert_eq!(server.ephemerals().unwrap()[&id], ["/mine"]);
    assert!(server.sessions().unwrap().contains(&id));

    expire_session(&server.hosts(), id, &password).unwrap();
    assert_eq!(connect(&server).exists("/mine").unwrap(), None);
    client.wait_closed(TIMEOUT).unwrap();
    let back = RawClient::attach(server.addr(), SESSION, id, &password);
    assert!(matches!(back, Err(Error::SessionExpired { session_id }) if session_id == id));
    // Nobody is there to expire any more.
    let again = expire_session(&server.hosts(), id, &password);
    assert!(matches!(again, Err(Error::SessionExpired { .. })));
}

#[test]
fn a_client_that_always_comes_back_at_once_expires_all_the_same() {
    let server = Server::start().unwrap();
    let client = connect(&server);
    let (id, password, addr) = (client.session_id(), client.password(), server.addr());
    let stubborn = std::thread::spawn(move || {
        let mut client = client;
        let deadline = Instant::now() + 2 * TIMEOUT;
        while Instant::now() < deadline {
            // The server can forget a connection that is made while the session ends: it stays open, and as any
            // client its own finds out by a ping.
            while client.wait_closed(Duration::from_millis(50)).is_err() {
                client.set_reply_timeout(Duration::from_secs(1));
                if client.ping().is_err() {
                    break;
                }
            }
            match RawClient::attach(addr, SESSION, id, &password) {
                Ok(again) => client = again,
                Err(Error::SessionExpired { .. }) => return,
                Err(_) => {}
            }
        }
        panic!("it comes back again and again");
    });
    expire_session(&server.hosts(), id, &password).unwrap();
    stubborn.join().unwrap();
}

#[test]
fn a_session_shorter_than_a_second_expires_by_itself() {
    const SHORT: Duration = Duration::from_millis(300);
    let server = Server::start().unwrap();
    let mut long = RawClient::connect(server.addr(), 10 * SESSION).unwrap();
    long.create_with("/long", b"", CreateMode::Ephemeral).unwrap();
    // A busy machine may be slower than that session.
    let silent = (0..100).find_map(|_| {
        let mut silent = RawClient::connect(server.addr(), SHORT).ok()?;
        silent.create_with("/short", b"", CreateMode::Ephemeral).ok()?;
        Some(silent)
    });
    let silent = silent.unwrap();
    assert_eq!(silent.session_timeout(), SHORT);
    let mut other = connect(&server);
    eventually("it expires", || other.exists("/short").unwrap().is_none());
    assert!(other.exists("/long").unwrap().is_some(), "the other is as silent");
    drop((silent, long));
}

#[test]
fn containers_and_nodes_with_a_time_to_live_are_reaped_on_schedule() {
    let server =
        Server::builder().container_check_interval(Duration::from_millis(100)).start().unwrap();
    let mut client = connect(&server);
    client.create_with("/container", b"", CreateMode::Container).unwrap();
    client.create("/container/child", b"").unwrap();
    client.delete("/container/child").unwrap();
    let ttl = CreateMode::Ttl(Duration::from_millis(50));
    client.create_with("/passing", b"", ttl).unwrap();
    eventually("the nodes go", || {
        client.exists("/container").unwrap().is_none()
            && client.exists("/passing").unwrap().is_none()
    });
}

#[test]
fn a_server_counts_packets_and_watches() {
    let server = Server::start().unwrap();
    let mut client = connect(&server);
    let before = server.stats().unwrap();
    client.create("/a", b"").unwrap();
    client.children_and_watch("/a").unwrap();
    client.get_data_and_watch("/a").unwrap();
    let after = server.stats().unwrap();
    assert_eq!(after.packets_received - before.packets_received, 3 + 1);
    assert_eq!(after.znodes - before.znodes, 1);
    assert_eq!(after.watches, 2);
    assert_eq!(server.watch_summary().unwrap().watches, 1);
    assert_eq!(server.watches().unwrap()["/a"], [client.session_id()]);
    let connections = server.connections().unwrap();
    let own = connections.iter().find(|one| one.session_id == client.session_id());
    assert_eq!(own.unwrap().timeout, client.session_timeout());
    assert!(server.four_letter("ruok").unwrap().contains("imok"));
    assert!(server.four_letter("nonsense").is_err());
}

#[test]
fn a_failed_start_shows_the_end_of_the_log() {
    let started = Server::builder().property("tickTime", "not a number").start();
    let message = started.unwrap_err().to_string();
    assert!(message.contains("the process ended"), "{message}");
    assert!(message.contains("not a number"), "{message}");
}

#[test]
fn a_taken_port_is_named_as_the_reason() {
    let server = Server::start().unwrap();
    server.stop().unwrap();
    let _somebody = std::net::TcpListener::bind(server.addr()).unwrap();
    let message = server.start_again().unwrap_err().to_string();
    assert!(message.contains("Address already in use"), "{message}");
}

#[test]
fn a_server_keeps_no_socket_of_its_program_open() {
    use rustix::net::{AddressFamily, SocketType, connect, socket};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // As the C client makes them: a child would inherit it.
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    connect(&client, &listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let _server = Server::start().unwrap();
    drop(client);
    peer.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(std::io::Read::read(&mut peer, &mut [0]).unwrap(), 0);
}

#[test]
fn what_tests_hold_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Server>();
    shared::<zklock_testing::Ensemble>();
    shared::<zklock_testing::Proxy>();
    shared::<zklock_testing::Gate>();
    shared::<zklock_testing::InstalledRule>();
    shared::<zklock_testing::Builder>();
    shared::<zklock_testing::KeepBusy>();
    shared::<zklock_testing::Rule>();
    shared::<RawClient>();
    shared::<Error>();
}
