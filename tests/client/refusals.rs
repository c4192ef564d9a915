//! Servers that refuse what others do: each refusal has its name, and words about what can be done.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use test_support::{TIMEOUT, options, shared};
use zklock::{Code, CreateMode, LockError};
use zklock_testing::Server;

/// Passes a server's connections on, and answers as ZooKeeper 3.4 does what came after it: creates
/// with a stat, and containers.
fn old_server(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(upstream).unwrap();
            let answers = Arc::new(Mutex::new(client.try_clone().unwrap()));
            let (mut replies, to_client) = (server.try_clone().unwrap(), Arc::clone(&answers));
            std::thread::spawn(move || {
                while let Ok(reply) = frame(&mut replies) {
                    if to_client.lock().unwrap().write_all(&reply).is_err() {
                        return;
                    }
                }
            });
            std::thread::spawn(move || requests(client, server, &answers));
        }
    });
    address
}

/// A frame, its length included.
fn frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut frame = length.to_vec();
    frame.resize(4 + u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

fn requests(mut client: TcpStream, mut server: TcpStream, answers: &Mutex<TcpStream>) {
    const CREATE2: [u8; 4] = [0, 0, 0, 15];
    const CREATE_CONTAINER: [u8; 4] = [0, 0, 0, 19];
    let mut is_first = true;
    while let Ok(request) = frame(&mut client) {
        let is_new = [CREATE2, CREATE_CONTAINER].iter().any(|op| request[8..12] == *op);
        let passed = if is_new && !is_first {
            let mut reply = vec![0, 0, 0, 16];
            reply.extend_from_slice(&request[4..8]);
            reply.extend_from_slice(&[0; 8]);
            reply.extend_from_slice(&Code::UNIMPLEMENTED.as_raw().to_be_bytes());
            answers.lock().unwrap().write_all(&reply)
        } else {
            server.write_all(&request)
        };
        is_first = false;
        if passed.is_err() {
            return;
        }
    }
}

#[test]
fn a_server_that_is_too_old_is_named_so() {
    let hosts = old_server(shared().addr()).to_string();
    let client = options().connect(&hosts).wait().unwrap();
    let created = client.create("/old", b"", CreateMode::Persistent).wait().unwrap_err();
    let acquired = client.lock("/locks/old").acquire().within(TIMEOUT).wait().unwrap_err();
    let LockError::Store { source, .. } = &acquired else { panic!("{acquired}") };
    assert!(acquired.to_string().contains(&source.to_string()), "{acquired}");
    for error in [&created, source] {
        assert_eq!(error.code(), Code::UNIMPLEMENTED);
        assert!(error.to_string().contains("older than ZooKeeper 3.5"), "{error}");
    }
}

#[test]
fn a_server_that_demands_an_identity_is_named_so() {
    let server = Server::builder()
        .property("enforce.auth.enabled", "true")
        .property("enforce.auth.schemes", "digest")
        .start()
        .unwrap();
    let error = options().connect(&server.hosts()).wait().unwrap_err();
    assert_eq!(error.code(), Code::SESSION_CLOSED_REQUIRE_SASL_AUTH, "{error}");
    assert!(error.to_string().contains("enforce.auth.schemes"), "{error}");
    let client = options().auth("digest", "orders:secret").connect(&server.hosts()).wait().unwrap();
    client.lock("/locks/a").acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_quota_that_is_exceeded_is_named_so() {
    let server = Server::builder().property("enforceQuota", "true").start().unwrap();
    let client = options().connect(&server.hosts()).wait().unwrap();
    client.make_path("/few").wait().unwrap();
    client.make_path("/zookeeper/quota/few").wait().unwrap();
    let limit = b"count=-1,bytes=-1;countHardLimit=2;byteHardLimit=-1";
    client
        .create("/zookeeper/quota/few/zookeeper_limits", limit, CreateMode::Persistent)
        .wait()
        .unwrap();
    client
        .create("/zookeeper/quota/few/zookeeper_stats", b"count=1,bytes=0", CreateMode::Persistent)
        .wait()
        .unwrap();
    let created = loop {
        match client.create("/few/node-", b"", CreateMode::PersistentSequential).wait() {
            Ok(created) => assert!(created.stat.czxid < 1_000, "no quota"),
            Err(error) => break error,
        }
    };
    let acquired = client.lock("/few/lock").acquire().within(TIMEOUT).wait().unwrap_err();
    assert_eq!(acquired.code(), Code::QUOTA_EXCEEDED);
    assert!(acquired.to_string().starts_with("lock /few/lock: create /few/"), "{acquired}");
    let LockError::Store { source, .. } = &acquired else { panic!("{acquired}") };
    for error in [&created, source] {
        assert_eq!(error.code(), Code::QUOTA_EXCEEDED, "{error}");
        assert!(error.to_string().contains("setquota"), "{error}");
    }
}
