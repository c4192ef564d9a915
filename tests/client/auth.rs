//! Identities: who may do what, and who is known on which session.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use zklock::zookeeper::{self, Acl, CreateMode, SessionState};
use zklock::{Client, Code, LockError, LostReason};

use test_support::{
    Bench, Process, TIMEOUT, alone, child_about, connect, eventually, expire, options, session_id,
    shared, states_until, wait_for_another_session,
};
use zklock_testing::wire::Op;
use zklock_testing::{Rule, Server, expire_session};

use crate::spans::Kept;

#[test]
fn a_protected_znode_is_readable_only_to_who_has_authenticated() {
    let (client, path) = alone();
    client.add_auth("digest", b"user:secret").wait().unwrap();
    let node = format!("{path}/protected");
    let mode = CreateMode::Persistent;
    client.create_with_acl(&node, b"x", mode, &Acl::creator()).wait().unwrap();
    let acl = client.get_acl(&node).wait().unwrap().entries;
    let is_user = |entry: &Acl| entry.scheme == "digest" && entry.id.starts_with("user:");
    assert!(acl.iter().any(is_user), "{acl:?}");
    let other = connect(shared());
    assert_eq!(other.get(&node).wait().unwrap_err().code(), Code::NO_AUTH);
    other.add_auth("digest", b"user:wrong").wait().unwrap();
    assert_eq!(other.get(&node).wait().unwrap_err().code(), Code::NO_AUTH);
    other.add_auth("digest", b"user:secret").wait().unwrap();
    assert_eq!(other.get(&node).wait().unwrap().data, b"x");
    let third = options().auth("digest", "user:secret").connect(&shared().hosts()).wait().unwrap();
    assert_eq!(third.get(&node).wait().unwrap().data, b"x");
}

#[test]
fn an_identity_goes_ahead_of_what_is_submitted_after_it() {
    let (client, path) = alone();
    client.add_auth("digest", b"user:secret").wait().unwrap();
    client.set_acl(&path, &Acl::creator(), None).wait().unwrap();
    let other = connect(shared());
    let added = other.add_auth("digest", b"user:secret");
    let read = other.get(&path);
    read.wait().unwrap();
    added.wait().unwrap();
}

#[test]
fn identities_are_known_on_the_session_that_follows_an_expired_one() {
    let (stranger, path) = alone();
    let from_the_start =
        options().auth("digest", "user:secret").connect(&shared().hosts()).wait().unwrap();
    let later = connect(shared());
    later.add_auth("digest", b"second:identity").wait().unwrap();
    for (client, name) in [(from_the_start, "start"), (later, "later")] {
        let node = format!("{path}/{name}");
        let mode = CreateMode::Persistent;
        client.create_with_acl(&node, b"", mode, &Acl::creator()).wait().unwrap();
        assert_eq!(stranger.get(&node).wait().unwrap_err().code(), Code::NO_AUTH);
        for _ in 0..5 {
            let before = session_id(&client);
            expire(shared(), &client);
            // Requests that are submitted before the new session is up must find the identity known.
            eventually("a read on the next session", || match client.get(&node).wait() {
                Ok(_) => client.session().is_some_and(|session| session.id() != before),
                Err(error) if error.code() == Code::NO_AUTH => panic!("{name}: {error}"),
                Err(_) => false,
            });
        }
    }
}

#[test]
fn an_identity_that_is_being_added_when_the_session_expires_is_added_to_the_next() {
    let bench = Bench::untouched();
    let client = bench.client();
    let node = "/protected";
    let gate = bench.proxy.hold(Rule::reply(Op::Auth));
    let added = client.add_auth("digest", b"user:secret");
    gate.wait_reached(TIMEOUT).unwrap();
    expire(&bench.server, &client);
    gate.release();
    added.wait().unwrap();
    eventually("a znode on the next session", || {
        let mode = CreateMode::Persistent;
        client.create_with_acl(node, b"", mode, &Acl::creator()).wait().is_ok()
    });
    assert_eq!(bench.direct().get(node).wait().unwrap_err().code(), Code::NO_AUTH);
}

#[test]
fn an_identity_that_the_server_refuses_closes_the_client() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let mut states = client.states();
    let error = client.add_auth("nonsense", b"x").wait().unwrap_err();
    assert_eq!(error.code(), Code::AUTH_FAILED);
    let told = states_until(&mut states, SessionState::Closed);
    assert!(told.contains(&SessionState::Lost), "{told:?}");
    assert_eq!(client.get("/").wait().unwrap_err().code(), Code::AUTH_FAILED);
    let error = options().auth("nonsense", "x").connect(&bench.server.hosts()).wait().unwrap_err();
    assert_eq!(error.code(), Code::AUTH_FAILED);
}

/// Frames of the protocol, each behind its length.
fn next_frame(from: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame)?;
    let length = u32::from_be_bytes(frame[..].try_into().unwrap()) as usize;
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

/// A link to a server that passes everything on but the reply to one create, as if that took its time.
fn that_keeps_a_reply_back(server: SocketAddr) -> SocketAddr {
    const CREATE2: [u8; 4] = 15u32.to_be_bytes();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut server = TcpStream::connect(server).unwrap();
            let (mut to_client, mut from_server) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            let kept: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
            let keep = Arc::clone(&kept);
            thread::spawn(move || {
                while let Ok(frame) = next_frame(&mut client) {
                    if frame.get(8..12) == Some(&CREATE2) {
                        *keep.lock() = Some(frame[4..8].to_vec());
                    }
                    if server.write_all(&frame).is_err() {
                        break;
                    }
                }
                let _ = server.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                while let Ok(frame) = next_frame(&mut from_server) {
                    let is_kept = kept.lock().as_deref().is_some_and(|id| id == &frame[4..8]);
                    if !is_kept && to_client.write_all(&frame).is_err() {
                        break;
                    }
                }
                let _ = to_client.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

#[test]
fn what_is_in_flight_while_an_identity_is_refused_may_be_done() {
    let bench = Bench::shared();
    let address = that_keeps_a_reply_back(bench.server.addr());
    let client = options().connect(&address.to_string()).wait().unwrap();
    let created = client.create(&bench.path, b"", CreateMode::Persistent);
    eventually("it is done", || bench.exists(&bench.path));
    assert_eq!(client.add_auth("nonsense", b"x").wait().unwrap_err().code(), Code::AUTH_FAILED);
    let error = created.wait().unwrap_err();
    assert!(error.is_outcome_unknown(), "{error}");
}

#[test]
fn a_scheme_that_can_not_be_is_refused_at_once() {
    let (client, _) = alone();
    for scheme in ["", "nul\0"] {
        let error = client.add_auth(scheme, b"x").wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        let refused = options().auth(scheme, "x").connect(&shared().hosts()).wait();
        assert_eq!(refused.unwrap_err().code(), Code::BAD_ARGUMENTS);
    }
}

#[test]
fn an_identity_added_without_a_connection_is_known_on_the_next_one() {
    let bench = Bench::untouched();
    let client = bench.client();
    let owner = bench.direct();
    owner.add_auth("digest", b"user:secret").wait().unwrap();
    let mode = CreateMode::Persistent;
    owner.create_with_acl("/mine", b"", mode, &Acl::creator()).wait().unwrap();
    let mut states = client.states();
    bench.proxy.refuse();
    states_until(&mut states, SessionState::Suspended);
    let added = client.add_auth("digest", b"user:secret");
    bench.proxy.heal();
    added.wait().unwrap();
    client.get("/mine").wait().unwrap();
}

/// That server takes no identities of the scheme `digest` from its next start on.
fn without_digest(server: &Server) {
    server.stop().unwrap();
    let config = server.directory().join("zoo.cfg");
    let mut config = std::fs::OpenOptions::new().append(true).open(config).unwrap();
    writeln!(config, "DigestAuthenticationProvider.enabled=false").unwrap();
    server.start_again().unwrap();
}

fn takes_turns(clients: &[Client; 2]) {
    let guard = clients[0].lock("/locks/a").acquire().within(TIMEOUT).wait().unwrap();
    let waiting = clients[1].lock("/locks/a").acquire();
    guard.release().wait().unwrap();
    waiting.within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn where_servers_refuse_the_scheme_digest_a_client_works_without_an_identity_of_its_own() {
    let bench = Bench::untouched();
    without_digest(&bench.server);
    let clients =
        [bench.client(), options().reopen(false).connect(&bench.proxy.hosts()).wait().unwrap()];
    for _ in 0..2 {
        takes_turns(&clients);
    }
    let asked = bench.proxy.count(&Rule::request(Op::Auth));
    assert!(asked >= 2);
    expire(&bench.server, &clients[0]);
    eventually("a session again", || clients[0].get("/").wait().is_ok());
    assert_eq!(bench.proxy.count(&Rule::request(Op::Auth)), asked, "it remembers that");
    // Those of the program are not left out.
    let refused = options().auth("digest", "user:secret").connect(&bench.server.hosts()).wait();
    assert_eq!(refused.unwrap_err().code(), Code::AUTH_FAILED);
}

#[test]
fn in_a_child_process_servers_refuse_the_scheme_digest() {
    let Some(hosts) = child_about() else { return };
    let kept = Kept::begin();
    let client = options().connect(&hosts).wait().unwrap();
    eventually("a session", || client.get("/").wait().is_ok());
    let key = client.session().unwrap();
    expire_session(&hosts, key.id(), &key.password()).unwrap();
    wait_for_another_session(&client, key.id());
    client.close().wait().unwrap();
    let says_so = |line: &str| line.contains("the servers refuse the scheme digest");
    eventually("it is logged", || kept.lines().iter().any(|line| says_so(line)));
    assert_eq!(kept.lines().iter().filter(|line| says_so(line)).count(), 1);
}

#[test]
fn that_servers_refuse_the_scheme_digest_is_logged_once() {
    let bench = Bench::untouched();
    without_digest(&bench.server);
    let test = "auth::in_a_child_process_servers_refuse_the_scheme_digest";
    assert!(Process::start_test(test, &bench.server.hosts()).end().success());
}

#[test]
fn when_servers_come_to_refuse_the_scheme_digest_a_client_loses_its_session_and_goes_on() {
    let bench = Bench::untouched();
    let clients = [bench.client(), bench.client()];
    takes_turns(&clients);
    let guard = clients[0].lock("/locks/a").acquire().wait().unwrap();
    without_digest(&bench.server);
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
    eventually("both are back", || clients.iter().all(|it| it.get("/").wait().is_ok()));
    takes_turns(&clients);
    takes_turns(&clients);
}

#[test]
fn acquires_go_on_when_servers_come_to_refuse_the_scheme_digest() {
    let bench = Bench::untouched();
    let clients: Vec<_> = (0..8).map(|_| bench.client()).collect();
    let (holds, is_back) = (&AtomicUsize::new(0), &AtomicBool::new(false));
    let lost = |error: LockError| if error.is_lost() { Ok(()) } else { Err(error) };
    thread::scope(|scope| {
        for client in &clients {
            let lock = client.lock("/locks/a");
            scope.spawn(move || {
                while !is_back.load(Ordering::Relaxed) {
                    let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
                    holds.fetch_add(1, Ordering::Relaxed);
                    guard.release().wait().or_else(lost).unwrap();
                }
            });
        }
        eventually("they take turns", || holds.load(Ordering::Relaxed) > 50);
        without_digest(&bench.server);
        let before = holds.load(Ordering::Relaxed);
        eventually("they take turns again", || holds.load(Ordering::Relaxed) > before + 50);
        is_back.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_acl_for_a_creator_that_nobody_knows_again_is_refused() {
    let bench = Bench::untouched();
    let client = bench.client();
    let by_address =
        options().auth("ip", "127.0.0.1").connect(&bench.proxy.hosts()).wait().unwrap();
    let plain = options().announced_releases(false).connect(&bench.proxy.hosts()).wait().unwrap();
    client.create("/open", b"", CreateMode::Persistent).wait().unwrap();
    for client in [&client, &by_address, &plain] {
        let create = client.create_with_acl("/a", b"", CreateMode::Persistent, &Acl::creator());
        let set = client.set_acl("/open", &Acl::creator(), None);
        let create = create.wait().map(drop);
        for refused in [create, set.wait()] {
            assert_eq!(refused.unwrap_err().code(), Code::INVALID_ACL);
        }
        let (acl, mode) = (Acl::creator(), CreateMode::Persistent);
        let create = zookeeper::Op::Create { path: "/a".into(), data: Vec::new(), acl, mode };
        let ops = [zookeeper::Op::set("/open", "x"), create];
        assert_eq!(client.multi(&ops).wait().unwrap_err().code(), Code::INVALID_ACL);
        let refused = client.lock("/locks/a").acl(Acl::creator()).acquire().within(TIMEOUT).wait();
        assert_eq!(refused.unwrap_err().code(), Code::INVALID_ACL);
    }
    client.add_auth("digest", b"user:secret").wait().unwrap();
    let lock = client.lock("/locks/a").acl(Acl::creator());
    lock.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}
