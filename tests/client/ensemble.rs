//! Three servers that agree.

use std::collections::BTreeMap;

use test_support::{TIMEOUT, eventually, options, session_id};
use zklock::zookeeper::{CreateMode, Reconfiguration, SessionState, Znode};
use zklock::{Client, Code};
use zklock_testing::{Ensemble, Server};

#[test]
fn the_session_goes_on_when_the_leader_is_killed() {
    let ensemble = Ensemble::start(3).unwrap();
    let _busy = ensemble.keep_busy().unwrap();
    let leader = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    // One client at the leader itself, one wherever chance puts it.
    let at_leader = format!("{},{}", ensemble.member(leader).hosts(), ensemble.hosts());
    let clients =
        [ensemble.hosts(), at_leader].map(|hosts| options().connect(&hosts).wait().unwrap());
    let sessions = clients.each_ref().map(session_id);
    for (n, client) in clients.iter().enumerate() {
        client.create(&format!("/ephemeral-{n}"), b"", CreateMode::Ephemeral).wait().unwrap();
    }
    ensemble.member(leader).kill();
    for (n, client) in clients.iter().enumerate() {
        eventually("a write under the next leader", || client.set("/", b"x", None).wait().is_ok());
        assert_eq!(session_id(client), sessions[n]);
        eventually("a proof", || client.state() == SessionState::Connected);
        let node = format!("/ephemeral-{n}");
        client.sync(&node).wait().unwrap();
        let stat = client.exists(&node).wait().unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner, sessions[n]);
    }
}

/// The members by their ids, each with its line, and the version.
fn members(configuration: &Znode) -> (BTreeMap<u64, String>, i64) {
    let text = String::from_utf8(configuration.data.clone()).unwrap();
    let member = |line: &str| {
        let (id, _) = line.strip_prefix("server.")?.split_once('=')?;
        Some((id.parse().unwrap(), line.to_owned()))
    };
    let version = text.lines().find_map(|line| line.strip_prefix("version=")).unwrap();
    (text.lines().filter_map(member).collect(), i64::from_str_radix(version, 16).unwrap())
}

fn ids(configuration: &Znode) -> Vec<u64> {
    members(configuration).0.into_keys().collect()
}

#[test]
fn members_leave_and_join_and_who_watches_the_configuration_sees_it() {
    // Otherwise it is the superuser's alone.
    let builder = Server::builder().property("reconfigEnabled", "true").property("skipACL", "yes");
    let ensemble = builder.start_ensemble(3).unwrap();
    let _busy = ensemble.keep_busy().unwrap();
    let leader = ensemble.wait_for_quorum(TIMEOUT).unwrap();
    // At one that stays, the leader, while one of the others goes.
    let client = options().connect(&ensemble.member(leader).hosts()).wait().unwrap();
    let gone = (0..3).find(|member| *member != leader).unwrap() as u64 + 1;
    let others: Vec<u64> = (1..=3).filter(|id| *id != gone).collect();
    let mut changes = client.watch_data(Client::CONFIG);
    let mut next = || {
        let change = changes.wait_timeout(TIMEOUT).expect("it is reported in time");
        change.expect("it goes on").unwrap().expect("there is one")
    };
    let (all, version) = members(&next());
    assert_eq!(all.len(), 3);
    let leave = Reconfiguration::leave([gone]);
    let error = client.reconfigure(&leave, Some(version + 1)).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_VERSION);
    assert_eq!(error.to_string(), "reconfigure /zookeeper/config: version conflict");
    let left = client.reconfigure(&leave, Some(version)).wait().unwrap();
    assert_eq!(next(), left);
    assert_eq!(ids(&left), others);
    assert!(members(&left).1 > version);
    // Who joins says where it serves clients.
    let line = |id: &u64| {
        let port = ensemble.member(*id as usize - 1).addr().port();
        format!("{};127.0.0.1:{port}", all[id])
    };
    let joined = client.reconfigure(&Reconfiguration::join([line(&gone)]), None).wait().unwrap();
    assert_eq!(next(), joined);
    assert_eq!(ids(&joined), [1, 2, 3]);
    let replace = Reconfiguration::replace(others.iter().map(line));
    let replaced = client.reconfigure(&replace, None).wait().unwrap();
    assert_eq!(ids(&replaced), others);
    assert_eq!(client.get(Client::CONFIG).wait().unwrap(), replaced);
}

#[test]
fn what_is_no_list_of_members_is_refused_before_anything_is_sent() {
    let client = test_support::connect(test_support::shared());
    let code = |change| client.reconfigure(&change, None).wait().unwrap_err().code();
    assert_eq!(code(Reconfiguration::join(["a,b"])), Code::BAD_ARGUMENTS);
    assert_eq!(code(Reconfiguration::leave([])), Code::BAD_ARGUMENTS);
    let long = "x".repeat(2 * 1024 * 1024);
    assert_eq!(code(Reconfiguration::replace([long])), Code::BAD_ARGUMENTS);
    // Of a server that was not told to allow it.
    assert_eq!(code(Reconfiguration::leave([7])), Code::RECONFIG_DISABLED);
}
