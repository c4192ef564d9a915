//! Identities: who may do what, and who is known on which session.

use zklock::Code;
use zklock::zookeeper::{Acl, CreateMode, SessionState};

use test_support::{
    Bench, TIMEOUT, alone, connect, eventually, expire, options, session_id, shared, states_until,
};
use zklock_testing::Rule;
use zklock_testing::wire::Op;

#[test]
fn a_protected_znode_is_readable_only_to_who_has_authenticated() {
    let (client, path) = alone();
    client.add_auth("digest", b"user:secret").wait().unwrap();
    let node = format!("{path}/protected");
    let mode = CreateMode::Persistent;
    client.create_with_acl(&node, b"x", mode, &Acl::creator()).wait().unwrap();
    let acl = client.get_acl(&node).wait().unwrap().entries;
    assert_eq!(acl[0].scheme, "digest");
    assert!(acl[0].id.starts_with("user:"), "{acl:?}");
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
