//! What is given back while no server answers.

use std::time::Duration;

use zklock_testing::Proxy;

use crate::driver::Driver;
use crate::scene::{PATH, Scene};

/// The session must survive that a call has waited in vain.
const LONG: Duration = Duration::from_secs(60);

/// Cuts the link, unlocks in vain, and unlocks again once there is a link.
fn is_given_back_after_an_outage(owns: bool) {
    let mut scene = Scene::new();
    let proxy = Proxy::start(scene.server.addr()).unwrap();
    scene.open_for('a', &scene.hosts_by(&proxy), LONG);
    scene.init("a", 'a');
    let others = if owns { 0 } else { 1 };
    (0..others).for_each(|_| drop(scene.old_claim()));
    scene.program.expect("lock a", "0");
    scene.await_owner('a', owns);
    scene.await_claims(others + 1);
    let told = scene.program.ask("told a");
    proxy.cut();
    scene.program.expect("unlock a", "-7");
    scene.expect_told('a', &told);
    assert_eq!(scene.claims().len(), others + 1, "it said that nobody has confirmed it");
    proxy.heal();
    scene.program.expect("unlock a", "0");
    assert_eq!(scene.claims().len(), others, "{PATH}");
    scene.expect_told('a', format!("{told} 1c").trim());
    scene.program.expect("unlock a", "-1");
}

#[test]
fn the_lock_of_an_owner_is_given_back_after_an_outage() {
    is_given_back_after_an_outage(true);
}

#[test]
fn the_place_of_a_waiter_is_given_back_after_an_outage() {
    is_given_back_after_an_outage(false);
}

#[test]
fn a_server_that_comes_back_has_no_claim_of_a_waiter_that_unlocked() {
    let mut scene = Scene::on_own_server(Driver::start());
    scene.open('a');
    scene.init("a", 'a');
    scene.old_claim();
    scene.program.expect("lock a", "0");
    scene.await_claims(2);
    scene.server.stop().unwrap();
    scene.program.expect("unlock a", "-7");
    scene.server.start_again().unwrap();
    scene.await_claims(1);
    scene.program.expect("unlock a", "0");
}
