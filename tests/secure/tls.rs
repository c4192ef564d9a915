//! TLS: what works, what is refused and why, and what goes on when servers come and go.

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use test_support::secure::{Authority, HERE, Scene, briefly};
use test_support::{
    LONGEST_SESSION, TIMEOUT, acquire_in_background, eventually, expire, options, session_id,
    wait_for_another_session,
};
use zklock::zookeeper::{Acl, CreateMode};
use zklock::{Client, ClientOptions, Code, GuardState, Tls};
use zklock_testing::Server;

fn refused(options: ClientOptions, hosts: &str) -> String {
    let error = options.connect(hosts).wait().unwrap_err();
    assert_eq!(error.code(), Code::OPERATION_TIMEOUT, "{error}");
    error.to_string()
}

fn secure(server: &Server) -> String {
    server.secure_hosts().unwrap()
}

#[test]
fn a_lock_is_held_over_tls_and_lost_and_held_again() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let client = options().tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
    let guard = client.lock("/locks/a").acquire().wait().unwrap();
    // Its certificate may be all that it is known by, so its release is not announced.
    assert_eq!(client.get_acl(&guard.claim_path()).wait().unwrap().entries, Acl::open());
    // Another one waits, without TLS.
    let other = options().connect(&server.hosts()).wait().unwrap();
    assert!(other.lock("/locks/a").try_acquire().wait().unwrap().is_none());
    let session = session_id(&client);
    expire(&server, &client);
    eventually("the guard is lost", || guard.state() == GuardState::Lost);
    // The session that follows is by TLS as well.
    wait_for_another_session(&client, session);
    let token = guard.fencing_token();
    drop(guard);
    let guard = client.lock("/locks/a").acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.fencing_token() > token);
    guard.release().wait().unwrap();
}

/// The C client would wait for a handshake by `select`, which has no place for a descriptor of 1024 or more.
#[test]
fn a_program_with_thousands_of_open_files_connects_over_tls() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let open = limit.maximum.map_or(19_000, |most| most.min(20_000) - 1000);
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let files: Vec<File> = (0..open).map(|_| File::open("/dev/null").unwrap()).collect();
    assert!(files.last().unwrap().as_raw_fd() > 1024, "too few may be open: {limit:?}");
    for _ in 0..20 {
        let client = options().tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
        client.lock("/locks/a").acquire().wait().unwrap().release().wait().unwrap();
    }
}

#[test]
fn a_session_goes_on_by_tls_at_a_server_that_was_killed_and_is_back() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let options = options().session_timeout(Duration::from_secs(60));
    let client = options.tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
    let session = session_id(&client);
    client.create("/here", b"x", CreateMode::Persistent).wait().unwrap();
    server.kill();
    server.start_again().unwrap();
    eventually("a read over the next connection", || client.get("/here").wait().is_ok());
    assert_eq!(session_id(&client), session);
}

#[test]
fn a_server_that_accepts_and_stays_silent_does_not_keep_a_client_from_the_others() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = (silent.local_addr().unwrap(), silent);
    let hosts = format!("{},{}", silent.0, secure(&server));
    // Whichever of the two is tried first.
    for _ in 0..4 {
        let client = options().tls(scene.tls()).connect(&hosts).wait().unwrap();
        client.exists("/").wait().unwrap();
        client.close().wait().unwrap();
    }
}

#[test]
fn a_client_of_a_frozen_server_goes_to_another_and_ends_its_handshakes() {
    let scene = Scene::new();
    let servers = scene.servers(HERE).start_ensemble(3).unwrap();
    let hosts = servers.secure_hosts().unwrap();
    let options = options().session_timeout(Duration::from_secs(4)).tls(scene.tls());
    let client = options.connect(&hosts).wait().unwrap();
    let leader = servers.wait_for_quorum(TIMEOUT).unwrap();
    let frozen = (leader + 1) % 3;
    servers.member(frozen).freeze().unwrap();
    eventually("a read at another server", || client.exists("/").wait().is_ok());
    // Also one that begins now.
    let other = options.connect(&hosts).wait().unwrap();
    other.create("/made", b"", CreateMode::Persistent).wait().unwrap();
    drop(other);
    servers.member(frozen).thaw().unwrap();
}

#[test]
fn many_replies_at_once_and_large_ones_arrive_over_tls() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let client = options().tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
    let large = vec![7; 900_000];
    client.create("/large", &large, CreateMode::Persistent).wait().unwrap();
    assert_eq!(client.get("/large").wait().unwrap().data, large);
    let reads: Vec<_> = (0..40).map(|_| client.get("/large")).collect();
    let small: Vec<_> = (0..500).map(|_| client.exists("/")).collect();
    for read in reads {
        assert_eq!(read.wait().unwrap().data.len(), large.len());
    }
    for exists in small {
        assert!(exists.wait().unwrap().is_some());
    }
}

#[test]
fn the_key_of_a_certificate_may_have_a_password() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let client = scene.authority.certificate("locked", "DNS:locked", Some("se,cret"));
    let tls = || Tls::new(scene.authority.ca(), &client.cert, &client.key);
    let file = scene.authority.path().join("password");
    std::fs::write(&file, "se,cret\n").unwrap();
    for tls in [tls().key_password("se,cret"), tls().key_password_file(&file)] {
        options().tls(tls).connect(&secure(&server)).wait().unwrap();
    }
    for tls in [tls(), tls().key_password("wrong-one")] {
        let error = briefly().tls(tls).connect(&secure(&server)).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        assert!(error.to_string().contains("locked.key"), "{error}");
        assert!(!error.to_string().contains("wrong-one"), "{error}");
    }
}

#[test]
fn files_that_can_not_be_used_are_named_at_once() {
    let scene = Scene::new();
    let (ca, client) = (scene.authority.ca(), scene.client());
    let other = scene.authority.certificate("other", "DNS:other", None);
    let missing = scene.authority.path().join("missing.pem");
    for (tls, named) in [
        (Tls::new(&missing, &client.cert, &client.key), "missing.pem"),
        (Tls::new(&ca, &missing, &client.key), "missing.pem"),
        (Tls::new(&ca, &client.cert, &missing), "missing.pem"),
        (Tls::new(&client.key, &client.cert, &client.key), "client.key: no certificate"),
        (Tls::new(&ca, &client.key, &client.key), "client.key: no certificate"),
        (Tls::new(&ca, &client.cert, &client.cert), "client.pem: no key"),
        (Tls::new(&ca, &client.cert, &other.key), "not the key of the certificate"),
    ] {
        let error = options().tls(tls).connect("127.0.0.1:1").wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        assert!(error.to_string().contains(named), "{named}: {error}");
    }
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let (scene, other) = (Scene::new(), Authority::new());
    let server = scene.servers(HERE).start().unwrap();
    let client = scene.client();
    let tls = Tls::new(other.ca(), &client.cert, &client.key);
    let error = refused(briefly().tls(tls.clone()), &secure(&server));
    assert!(error.contains("ca.pem vouches for"), "{error}");
    // That no name is asked for changes nothing.
    let error = refused(briefly().tls(tls.verify_host_name(false)), &secure(&server));
    assert!(error.contains("ca.pem vouches for"), "{error}");
}

#[test]
fn a_client_of_another_authority_is_refused_by_the_server() {
    let (scene, other) = (Scene::new(), Authority::new());
    let server = scene.servers(HERE).start().unwrap();
    let stranger = other.certificate("stranger", "DNS:stranger", None);
    let tls = Tls::new(scene.authority.ca(), &stranger.cert, &stranger.key);
    let error = refused(briefly().tls(tls), &secure(&server));
    assert!(error.contains("refuses our certificate"), "{error}");
}

#[test]
fn a_client_without_a_certificate_works_where_servers_ask_for_none() {
    let scene = Scene::new();
    let server = scene.servers(HERE).property("ssl.clientAuth", "none").start().unwrap();
    let tls = Tls::without_certificate(scene.authority.ca());
    let client = options().tls(tls).connect(&secure(&server)).wait().unwrap();
    let lock = client.lock("/locks/a");
    let claims = || client.children("/locks/a").wait().unwrap().names;
    let mut guard = lock.acquire().wait().unwrap();
    for _ in 0..2 {
        let waiting = acquire_in_background(&lock);
        eventually("another claims", || claims().len() == 2);
        guard.release().wait().unwrap();
        guard = waiting.join().unwrap().unwrap();
    }
    // The servers know it by nothing else, so a release that others wait for can be announced.
    assert_ne!(client.get_acl(&guard.claim_path()).wait().unwrap().entries, Acl::open());
    guard.release().wait().unwrap();
}

#[test]
fn a_client_without_a_certificate_is_refused_where_servers_ask_for_one() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let tls = Tls::without_certificate(scene.authority.ca());
    let error = refused(briefly().tls(tls), &secure(&server));
    assert!(error.contains("asks for a certificate"), "{error}");
}

#[test]
fn a_server_whose_certificate_is_revoked_is_refused_by_a_list_beside_the_authorities() {
    let scene = Scene::new();
    let [good, revoked] =
        ["good", "revoked"].map(|name| scene.authority.certificate(name, HERE, None));
    let authorities = std::fs::read_to_string(scene.authority.ca()).unwrap();
    let list = scene.authority.revocations(Some(&revoked));
    let file = scene.directory.path().join("authorities-and-list.pem");
    std::fs::write(&file, authorities + &list).unwrap();
    let tls = Tls::new(&file, &scene.client().cert, &scene.client().key);
    let server = scene.servers_with(&good).start().unwrap();
    options().tls(tls.clone()).connect(&secure(&server)).wait().unwrap();
    let server = scene.servers_with(&revoked).start().unwrap();
    let error = refused(briefly().tls(tls), &secure(&server));
    assert!(error.contains("is revoked"), "{error}");
    // Without the list it is as good as any.
    options().tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
}

#[test]
fn certificates_and_authorities_are_replaced_while_a_lock_is_held() {
    let scene = Scene::new();
    let certificate = scene.authority.certificate("server", HERE, None);
    let server = scene.servers_with(&certificate).start().unwrap();
    let options = options().session_timeout(LONGEST_SESSION);
    let client = options.tls(scene.tls()).connect(&secure(&server)).wait().unwrap();
    let guard = client.lock("/locks/a").acquire().wait().unwrap();

    // Everybody's files are of another authority now: nothing of the first would be accepted.
    let next = Authority::new();
    let next_server = next.certificate("server", HERE, None);
    let next_client = next.certificate("client", "DNS:client.example", None);
    let old_store = scene.authority.key_store(&certificate);
    for (file, by) in [
        (&scene.authority.ca(), &next.ca()),
        (&old_store, &next.key_store(&next_server)),
        (&scene.client().cert, &next_client.cert),
        (&scene.client().key, &next_client.key),
    ] {
        std::fs::copy(by, file).unwrap();
    }
    let session = session_id(&client);
    server.restart().unwrap();
    eventually("a read over the next connection", || client.get("/locks/a").wait().is_ok());
    assert_eq!(session_id(&client), session);
    eventually("the lock is held as before", || guard.state() == GuardState::Held);
    guard.release().wait().unwrap();
}

#[test]
fn a_server_of_another_name_is_refused_unless_names_are_not_verified() {
    let scene = Scene::new();
    let server = scene.servers("DNS:elsewhere.example").start().unwrap();
    let by_name = secure(&server).replace("127.0.0.1", "localhost");
    for hosts in [secure(&server), by_name] {
        let error = refused(briefly().tls(scene.tls()), &hosts);
        assert!(error.contains("another host name"), "{error}");
        let tls = scene.tls().verify_host_name(false);
        options().tls(tls).connect(&hosts).wait().unwrap();
    }
}

#[test]
fn a_name_in_the_certificate_is_enough_where_the_host_is_named_so() {
    let scene = Scene::new();
    let server = scene.servers("DNS:localhost").start().unwrap();
    let by_name = secure(&server).replace("127.0.0.1", "localhost");
    options().tls(scene.tls()).connect(&by_name).wait().unwrap();
    let error = refused(briefly().tls(scene.tls()), &secure(&server));
    assert!(error.contains("another host name"), "{error}");
}

#[test]
fn a_client_without_tls_is_refused_by_a_port_with_it_and_the_other_way_round() {
    let scene = Scene::new();
    let server = scene.servers(HERE).start().unwrap();
    let error = refused(briefly(), &secure(&server));
    assert!(error.contains("expects TLS, and is asked without"), "{error}");
    let error = refused(briefly().tls(scene.tls()), &server.hosts());
    assert!(error.contains("is it the secureClientPort?"), "{error}");
}

#[test]
fn nothing_that_is_printed_has_a_password() {
    let scene = Scene::new();
    let tls = scene.tls().key_password("top-secret");
    let sasl = zklock::zookeeper::Sasl::digest_md5("bob").password("top-secret");
    let text = format!("{:?}", Client::options().tls(tls).sasl(sasl));
    assert!(text.contains("bob") && text.contains("hidden"), "{text}");
    assert!(!text.contains("top-secret"), "{text}");
}
