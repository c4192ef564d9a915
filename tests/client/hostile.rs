//! Arguments that would do the C client harm never reach it.

use std::time::Duration;

use test_support::{TIMEOUT, alone, connect, options, session_id, shared};
use zklock::zookeeper::{Acl, CreateMode, Op, Permissions, SessionState};
use zklock::{Client, Code, Timeout};

#[test]
fn hostile_host_strings_are_refused_at_once_and_start_nothing() {
    let long_name = "a".repeat(1_000_000);
    let many = vec!["a"; 1_000].join(",");
    for hosts in [
        "",
        " ",
        ",",
        "/",
        "/foo",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:99999",
        "127.0.0.1:x",
        "127.0.0.1:2181:",
        "127.0.0.1:2181 x",
        "::1:2181",
        "[::1",
        "[::1]x",
        "a,,b",
        ",a",
        "a,",
        "a:2181//",
        "a:2181/x/",
        "a:2181/../x",
        "a:2181/\0",
        "a\0:2181",
        "a b:2181",
        "a:-1",
        "a:+1",
        "a:18446744073709551616",
        &long_name,
        &many,
    ] {
        let error = Client::connect(hosts).within(TIMEOUT).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("connect") && !text.contains('\n') && text.len() < 4_000,
            "{text}"
        );
    }
}

/// Refused with that code and a message of one line that says why.
fn refused<T: std::fmt::Debug>(result: Result<T, zklock::Error>, path: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{path:?}: {error}");
    let text = error.to_string();
    assert!(text.contains("bad arguments: "), "{text}");
    assert!(!text.contains(['\n', '\0']) && text.len() < 4_000, "{text:?}");
}

#[test]
fn hostile_paths_are_refused_and_the_connection_stays() {
    let (client, _) = alone();
    let session = session_id(&client);
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let long = format!("/{}", "x".repeat(2_000_000));
    for path in [
        "",
        "x",
        "x/y",
        "//",
        "/x/",
        "/x//y",
        "/.",
        "/..",
        "/x/../y",
        "/x/.",
        "/nul\0",
        "\0",
        "/nul\0/x",
        "/\u{1}",
        "/\u{7f}",
        "/\u{e000}",
        "/\u{ffff}",
        "/line\nbreak",
        &long,
    ] {
        refused(client.create(path, b"", CreateMode::Persistent).wait(), path);
        refused(client.delete(path, None).wait(), path);
        refused(client.exists(path).wait(), path);
        refused(client.exists_and_watch(path).wait(), path);
        refused(client.get(path).wait(), path);
        refused(client.get_and_watch(path).wait(), path);
        refused(client.set(path, b"", None).wait(), path);
        refused(client.children(path).wait(), path);
        refused(client.children_and_watch(path).wait(), path);
        refused(client.get_acl(path).wait(), path);
        refused(client.set_acl(path, &Acl::open(), None).wait(), path);
        refused(client.sync(path).wait(), path);
        refused(client.make_path(path).wait(), path);
        refused(client.multi(&[Op::delete(path), Op::check("/")]).wait(), path);
        // For a sequential znode the last name may be empty.
        if path != "/x/" {
            refused(client.create(path, b"", CreateMode::EphemeralSequential).wait(), path);
        }
    }
    client.get("/").wait().unwrap();
    assert_eq!(session_id(&client), session);
    assert_eq!(states.wait_timeout(Duration::ZERO), Err(Timeout), "no state came and went");
}

#[test]
fn data_that_no_server_takes_is_refused_and_the_connection_stays() {
    let (client, path) = alone();
    let session = session_id(&client);
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let data = vec![0; 1024 * 1024 + 1];
    let node = format!("{path}/node");
    refused(client.create(&node, &data, CreateMode::Persistent).wait(), &node);
    refused(client.set(&path, &data, None).wait(), &path);
    refused(client.multi(&[Op::set(&path, data)]).wait(), &path);
    // The largest that passes here must pass there too.
    let largest = vec![0; 1024 * 1024 - 1024 - path.len()];
    client.set(&path, &largest, None).wait().unwrap();
    client.multi(&[Op::set(&path, largest)]).wait().unwrap();
    let acl = vec![Acl::new(Permissions::ALL, "digest", "x".repeat(2 * 1024 * 1024))];
    refused(client.create_with_acl(&node, b"", CreateMode::Persistent, &acl).wait(), &node);
    refused(client.set_acl(&path, &acl, None).wait(), &path);
    let op = Op::Create { path: node.clone(), data: vec![], acl, mode: CreateMode::Persistent };
    refused(client.multi(&[op]).wait(), &node);
    let checks = vec![Op::check(&path); 1024 * 1024 / path.len()];
    refused(client.multi(&checks[..checks.len() - 1]).wait(), &path);
    refused(client.add_auth("digest", &vec![b'x'; 2 * 1024 * 1024]).wait(), "");
    client.get(&path).wait().unwrap();
    assert_eq!(session_id(&client), session);
    assert_eq!(states.wait_timeout(Duration::ZERO), Err(Timeout), "no state came and went");
}

#[test]
fn a_nul_in_an_acl_is_refused() {
    let (client, path) = alone();
    for acl in
        [Acl::new(Permissions::ALL, "wor\0ld", "anyone"), Acl::new(Permissions::ALL, "ip", "\0")]
    {
        let error = client.set_acl(&path, &[acl], None).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
    }
}

#[test]
fn a_limit_of_ones_own_is_kept() {
    let (_client, path) = alone();
    let small = options().max_request(100).connect(&shared().hosts()).wait().unwrap();
    refused(small.set(&path, &[0; 100], None).wait(), &path);
    small.set(&path, &[0; 50], None).wait().unwrap();
    assert_eq!(connect(shared()).get(&path).wait().unwrap().data.len(), 50);
}
