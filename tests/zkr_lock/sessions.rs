//! Servers that restart, replies that are lost, sessions that end, nodes that somebody deletes.

use std::time::Duration;

use crate::driver::Driver;
use crate::scene::{Scene, TIMEOUT};
use test_support::eventually;
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Proxy, Rule};

/// The timeout of sessions that see a server restart.
const SHORT: Duration = Duration::from_secs(8);

#[test]
fn a_waiter_owns_although_the_server_was_restarted() {
    let mut scene = Scene::on_own_server(Driver::start());
    let hosts = scene.hosts();
    for (handle, mutex) in [('a', "a"), ('b', "b")] {
        scene.open_for(handle, &hosts, SHORT);
        scene.init(mutex, handle);
    }
    scene.line_up("ab");
    let ids = [scene.id('a'), scene.id('b')];
    scene.server.restart().unwrap();
    eventually("the looker-on is back", || scene.zk.sync("/").wait().is_ok());
    assert_eq!(scene.claims(), ids, "both keep their places");
    scene.program.expect("unlock a", "0");
    scene.await_told('b', 0, 1);
    scene.program.expect("isowner b", "1");
    assert_eq!(scene.claims(), [ids[1].as_str()]);
}

#[test]
fn what_is_unlocked_while_the_server_is_down_goes_when_it_is_back() {
    let mut scene = Scene::on_own_server(Driver::start());
    let hosts = scene.hosts();
    scene.open_for('a', &hosts, SHORT);
    scene.init("a", 'a');
    scene.line_up("a");
    scene.server.stop().unwrap();
    scene.program.begin("unlock a");
    scene.server.start_again().unwrap();
    assert_eq!(scene.program.answer("unlock a"), "0");
    scene.await_claims(0);
}

#[test]
fn a_session_that_expires_while_holding_is_told_once() {
    let mut scene = Scene::on_one_handle("a");
    scene.line_up("a");
    scene.expire('a');
    scene.await_told('a', 1, 1);
    scene.program.expect("isowner a", "0");
    scene.expect_told('a', "0c 1o");
    assert!(scene.program.ask("fields a").starts_with("0 "));
    // It is told no second time.
    scene.program.ask("unlock a");
    scene.program.expect("destroy a", "0");
    scene.expect_told('a', "0c 1o");
    // The next handle is another session.
    scene.open('b');
    scene.init("b", 'b');
    scene.line_up("b");
}

#[test]
fn a_session_that_expires_while_waiting_never_owns() {
    let mut scene = Scene::new();
    scene.open('a');
    scene.open('b');
    scene.init("a", 'a');
    scene.init("b", 'b');
    scene.line_up("ab");
    scene.expire('b');
    scene.await_claims(1);
    scene.program.expect("unlock a", "0");
    // The mutex can be given up, without a wait for a server that knows it no more.
    scene.program.ask("unlock b");
    scene.program.expect("isowner b", "0");
    assert!(!scene.program.ask("told b").contains('0'));
    scene.program.expect("lock b", "0");
    // It may hear of the expiry only now.
    eventually("its handle is known to be of no use any more", || {
        scene.program.ask("error b") != "0"
    });
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn a_session_that_can_not_be_proved_alive_is_lost_before_it_ends() {
    let mut scene = Scene::new();
    let proxy = Proxy::start(scene.server.addr()).unwrap();
    scene.open_for('a', &scene.hosts_by(&proxy), SHORT);
    scene.init("a", 'a');
    scene.line_up("a");
    proxy.cut();
    scene.await_told('a', 1, 1);
    scene.program.expect("isowner a", "0");
    scene.expect_told('a', "0c 1o");
}

#[test]
fn a_node_that_somebody_deletes_is_a_lock_lost() {
    let mut scene = Scene::on_one_handle("a");
    scene.line_up("a");
    let id = scene.id('a');
    scene.delete(&id);
    scene.await_told('a', 1, 1);
    scene.program.expect("isowner a", "0");
    scene.expect_told('a', "0c 1o");
    scene.program.ask("unlock a");
    scene.expect_told('a', "0c 1o");
    scene.line_up("a");
}

#[test]
fn a_waiter_whose_node_somebody_deletes_waits_on() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    let id = scene.id('b');
    scene.delete(&id);
    scene.program.expect("unlock a", "0");
    scene.await_told('b', 0, 1);
    scene.program.expect("isowner b", "1");
    assert_eq!(scene.claims(), [scene.id('b')]);
    scene.program.expect("unlock b", "0");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn lost_replies_leave_one_place_and_then_none() {
    let losses: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];
    for ops in [Ops::creates(), Ops::lists(), Op::Delete.into()] {
        for loss in losses {
            for request in [true, false] {
                let mut scene = Scene::new();
                let proxy = Proxy::start(scene.server.addr()).unwrap();
                scene.open_at('a', &scene.hosts_by(&proxy));
                scene.init("a", 'a');
                scene.program.expect("lock a", "0");
                scene.program.expect("unlock a", "0");
                let rule =
                    if request { Rule::request(ops.clone()) } else { Rule::reply(ops.clone()) };
                let lost = proxy.on(rule.once(), loss());
                scene.program.expect("lock a", "0");
                scene.await_owner('a', true);
                assert_eq!(scene.claims(), [scene.id('a')]);
                scene.program.expect("unlock a", "0");
                assert_eq!(scene.claims(), [""; 0]);
                lost.wait_hits(1, TIMEOUT).unwrap();
                assert_eq!(scene.program.ask("told a").matches('0').count(), 2);
            }
        }
    }
}

#[test]
fn a_session_that_expires_leaves_the_program_clean() {
    let mut scene = Scene::with(Driver::start_under_valgrind(false));
    scene.open('a');
    scene.init("ab", 'a');
    scene.line_up("ab");
    scene.expire('a');
    scene.await_told('a', 1, 1);
    scene.program.expect("isowner a", "0");
    scene.program.expect("isowner b", "0");
    scene.program.expect("destroy a", "0");
    scene.program.expect("close a", "0");
    scene.program.expect("destroy b", "0");
    scene.program.end();
}
