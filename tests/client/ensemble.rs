//! Three servers that agree.

use test_support::{TIMEOUT, eventually, options, session_id};
use zklock::{CreateMode, SessionState};
use zklock_testing::Ensemble;

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
