//! Servers that refuse what others do: each refusal has its name, and words about what can be done.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use test_support::{TIMEOUT, options, shared};
use zklock::zookeeper::CreateMode;
use zklock::{Code, LockError};
use zklock_testing::Server;

/// The numbers of the requests that an old server does not know.
type Unknown = Mutex<HashSet<[u8; 4]>>;

/// Passes a server's connections on, and answers as ZooKeeper 3.4 does what came after it: creates
/// with a stat, and containers. Each reply comes in its turn, as a server's do.
fn old_server(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(upstream).unwrap();
            let unknown = Arc::new(Unknown::default());
            let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let asked = Arc::clone(&unknown);
            std::thread::spawn(move || replies(from, to, &unknown));
            std::thread::spawn(move || requests(client, server, &asked));
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

/// In place of what the server must not see it gets a question with the same number.
fn requests(mut client: TcpStream, mut server: TcpStream, unknown: &Unknown) {
    const CREATE2: [u8; 4] = [0, 0, 0, 15];
    const CREATE_CONTAINER: [u8; 4] = [0, 0, 0, 19];
    /// `exists` of `/`, without a watch, behind its number.
    const QUESTION: [u8; 10] = [0, 0, 0, 3, 0, 0, 0, 1, b'/', 0];
    let mut is_first = true;
    while let Ok(mut request) = frame(&mut client) {
        if !is_first && [CREATE2, CREATE_CONTAINER].iter().any(|op| request[8..12] == *op) {
            let number: [u8; 4] = request[4..8].try_into().unwrap();
            unknown.lock().unwrap().insert(number);
            request = [&[0, 0, 0, 14], &number[..], &QUESTION[..]].concat();
        }
        is_first = false;
        if server.write_all(&request).is_err() {
            return;
        }
    }
}

fn replies(mut server: TcpStream, mut client: TcpStream, unknown: &Unknown) {
    let mut is_first = true;
    while let Ok(mut reply) = frame(&mut server) {
        if !is_first && unknown.lock().unwrap().remove(&reply[4..8]) {
            reply.truncate(16);
            reply.extend_from_slice(&Code::UNIMPLEMENTED.as_raw().to_be_bytes());
            reply[..4].copy_from_slice(&[0, 0, 0, 16]);
        }
        is_first = false;
        if client.write_all(&reply).is_err() {
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
    // An identity of the session alone is one of that scheme, too.
    let without = options().announced_releases(false);
    let error = without.connect(&server.hosts()).wait().unwrap_err();
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

#[cfg(feature = "raw")]
#[test]
fn tls_and_sasl_that_the_c_client_has_not_are_refused_with_what_would_help() {
    use zklock::Tls;
    use zklock::zookeeper::Sasl;
    use zklock::zookeeper_sys::secure::{Secured, sasl, tls};
    let with_tls = options().tls(Tls::new("ca.pem", "client.pem", "client.key"));
    let with_sasl = options().sasl(Sasl::digest_md5("bob").password("secret"));
    let refused = [(with_tls, tls()), (with_sasl, sasl())];
    for (options, _) in refused.into_iter().filter(|(_, has)| *has == Secured::Not) {
        let error = options.connect("127.0.0.1:1").wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        assert!(error.to_string().contains("ZOOKEEPER_SRC_DIR"), "{error}");
    }
}
