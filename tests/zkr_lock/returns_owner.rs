//! Programs that were written for ZooKeeper before 3.4.14: compiled with `ZKR_LOCK_RETURNS_OWNER`,
//! `zkr_lock_lock` says whether the mutex owns.

use crate::driver::Driver;
use crate::scene::{PATH, Scene};

#[test]
fn a_lock_says_whether_it_owns_and_keeps_its_place() {
    let mut scene = Scene::with(Driver::start_returning_owner());
    scene.open('a');
    scene.init("ab", 'a');
    scene.program.expect("lock a", "1");
    scene.program.expect("lock a", "1");
    scene.program.expect("lock b", "0");
    let claims = scene.claims();
    assert_eq!(claims, [scene.id('a'), scene.id('b')]);
    for _ in 0..3 {
        scene.program.expect("lock b", "0");
    }
    assert_eq!(scene.claims(), claims, "it keeps its place");
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("lock b", "1");
    scene.program.expect("lock a", "0");
    scene.program.expect("unlock b", "0");
    scene.await_owner('a', true);
    scene.program.expect("lock a", "1");
}

#[test]
fn a_lock_that_fails_does_not_own() {
    let mut scene = Scene::with(Driver::start_returning_owner());
    scene.open('a');
    scene.program.expect(&format!("init a a {PATH} empty"), "0");
    scene.program.expect("lock a", "0");
    scene.program.expect("zero b", "ok");
    scene.program.expect("lock b", "0");
}
