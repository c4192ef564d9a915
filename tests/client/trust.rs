//! `Lost` by the local clock comes before the server gives the session up.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{
    Bench, Process, TIMEOUT, child_about, eventually, options, say, states_until, unless_it_stalls,
};
use zklock::Timeout;
use zklock::zookeeper::{CreateMode, SessionState};

const RUNS: usize = 10;
/// Longer than any pause of a busy machine, and than the session timeout of the frozen process.
const FROZEN: Duration = Duration::from_secs(8);

/// Several at once, each with a link of its own.
fn in_parallel(bench: &Bench, run: impl Fn(&Bench, usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..RUNS {
            let run = &run;
            scope.spawn(move || run(bench, number));
        }
    });
}

#[test]
fn who_is_cut_off_hears_of_the_loss_while_its_ephemeral_znode_still_exists() {
    let bench = Bench::untouched();
    in_parallel(&bench, |bench, number| {
        let proxy = zklock_testing::Proxy::start(bench.server.addr()).unwrap();
        let timeout = Duration::from_secs(8);
        let client = options().session_timeout(timeout).connect(&proxy.hosts()).wait().unwrap();
        let observer = bench.direct();
        let node = format!("/ephemeral-{number}");
        client.create(&node, b"", CreateMode::Ephemeral).wait().unwrap();
        let mut states = client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        // At different moments of the client's own rhythm.
        thread::sleep(Duration::from_millis(70) * number as u32);
        proxy.cut();
        states_until(&mut states, SessionState::Lost);
        let seen = observer.exists(&node).wait().unwrap();
        assert!(seen.is_some(), "run {number}: the server was faster");
        assert_eq!(client.state(), SessionState::Lost);
        // It is lost for good, and in truth soon after.
        eventually("the server gives the session up", || {
            observer.exists(&node).wait().unwrap().is_none()
        });
        proxy.heal();
        states_until(&mut states, SessionState::Connected);
    });
}

#[test]
fn a_link_that_is_cut_is_suspended_before_it_is_lost() {
    let bench = Bench::untouched();
    let client = options()
        .session_timeout(Duration::from_secs(6))
        .connect(&bench.proxy.hosts())
        .wait()
        .unwrap();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    bench.proxy.refuse();
    let told = states_until(&mut states, SessionState::Lost);
    assert_eq!(told, [SessionState::Suspended, SessionState::Lost]);
    bench.proxy.heal();
    states_until(&mut states, SessionState::Connected);
}

#[test]
fn a_server_that_says_nothing_is_not_taken_for_a_session() {
    let bench = Bench::untouched();
    let client = options()
        .session_timeout(Duration::from_secs(2))
        .connect(&bench.server.hosts())
        .wait()
        .unwrap();
    let mut states = client.states();
    bench.server.freeze().unwrap();
    states_until(&mut states, SessionState::Lost);
    bench.server.thaw().unwrap();
    states_until(&mut states, SessionState::Connected);
    client.get("/").within(TIMEOUT).wait().unwrap();
}

#[test]
fn a_quiet_client_keeps_its_session_and_its_trust() {
    unless_it_stalls(Duration::from_secs(1), || {
        let bench = Bench::untouched();
        let timeout = Duration::from_secs(6);
        let client =
            options().session_timeout(timeout).connect(&bench.server.hosts()).wait().unwrap();
        let session = client.session();
        let mut states = client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        assert_eq!(states.wait_timeout(2 * timeout), Err(Timeout), "no state is reported");
        assert_eq!(client.session(), session);
        assert_eq!(client.state(), SessionState::Connected);
    });
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_session_is_looked_at_after_the_thaw() {
    let Some(hosts) = child_about() else { return };
    let client = options().session_timeout(FROZEN / 2).connect(&hosts).wait().unwrap();
    client.create("/frozen", b"", CreateMode::Ephemeral).wait().unwrap();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let began = Instant::now();
    let mut last = began;
    say(client.session().unwrap().id());
    while began.elapsed() < TIMEOUT {
        let now = Instant::now();
        if now - last > FROZEN / 2 {
            // The first look after the thaw.
            say((client.state(), states.wait_timeout(Duration::ZERO)));
            return;
        }
        last = now;
    }
}

#[test]
fn a_frozen_process_sees_the_loss_at_its_first_look_after_the_thaw() {
    let bench = Bench::untouched();
    let test = "trust::in_a_child_process_a_session_is_looked_at_after_the_thaw";
    for _ in 0..2 {
        let mut child = Process::start_test(test, &bench.server.hosts());
        let session: i64 = child.hear().unwrap().parse().unwrap();
        child.running.freeze();
        let frozen = Instant::now();
        eventually("the server gives the session up", || {
            frozen.elapsed() > FROZEN && !bench.server.sessions().unwrap().contains(&session)
        });
        child.running.thaw();
        // The stream tells the loss in any case; by itself the state may already be that of the
        // next session.
        let seen = child.hear().unwrap();
        assert!(seen.contains("Ok(Some(Lost))"), "{seen}");
        assert!(!seen.starts_with("(Connected, Err"), "{seen}");
        assert!(child.end().success());
    }
}
