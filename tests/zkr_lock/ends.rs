//! Destroyed, never destroyed, destroyed too early.

use zklock::zookeeper::CreateMode;

use crate::driver::Driver;
use crate::scene::{PATH, Scene};

#[test]
fn a_mutex_that_is_destroyed_while_it_owns_gives_the_lock_back() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("destroy a", "0");
    scene.await_owner('b', true);
    scene.await_claims(1);
    scene.program.expect("isowner a", "0");
    scene.program.expect("lock a", "0");
    assert_ne!(scene.program.ask("error a"), "0", "it was destroyed");
    assert_ne!(scene.program.ask("unlock a"), "0");
    assert_ne!(scene.program.ask("destroy a"), "0");
    scene.expect_told('a', "0c");
}

#[test]
fn a_mutex_that_is_destroyed_while_it_waits_leaves_the_queue() {
    let mut scene = Scene::on_one_handle("abc");
    scene.line_up("abc");
    scene.program.expect("destroy b", "0");
    scene.await_claims(2);
    scene.program.expect("isowner c", "0");
    scene.program.expect("unlock a", "0");
    scene.await_owner('c', true);
    scene.expect_told('b', "");
}

#[test]
fn a_mutex_can_be_initialised_again_after_it_was_destroyed() {
    let mut scene = Scene::on_one_handle("a");
    for _ in 0..3 {
        scene.line_up("a");
        scene.program.expect("unlock a", "0");
        scene.program.expect("destroy a", "0");
        scene.init("a", 'a');
    }
}

#[test]
fn a_program_that_never_destroys_ends_well() {
    let mut scene = Scene::with(Driver::start_under_valgrind(false));
    scene.open('a');
    scene.open('b');
    scene.init("ab", 'a');
    scene.init("c", 'b');
    scene.line_up("abc");
    // With one that owns, two that wait, and the handles open.
    scene.program.end();
}

#[test]
fn a_program_that_cleans_up_loses_no_memory() {
    let mut scene = Scene::with(Driver::start_under_valgrind(true));
    scene.open('a');
    for _ in 0..3 {
        scene.init("abc", 'a');
        scene.line_up("abc");
        scene.program.expect("unlock b", "0");
        scene.program.expect("unlock a", "0");
        scene.await_owner('c', true);
        for mutex in ["a", "b", "c"] {
            scene.program.expect(&format!("destroy {mutex}"), "0");
            scene.program.expect(&format!("release_memory {mutex}"), "ok");
        }
    }
    scene.program.expect("close a", "0");
    scene.program.end();
}

#[test]
fn a_completion_may_free_its_mutex_inside_the_lock_that_fails() {
    let mut scene = Scene::with(Driver::start_under_valgrind(true));
    scene.open('a');
    scene.zk.make_path("/locks").wait().unwrap();
    scene.zk.create(PATH, b"", CreateMode::Ephemeral).wait().unwrap();
    // Refused by the server, and before it is asked.
    for acl in ["open", "empty"] {
        scene.program.expect(&format!("init a a {PATH} {acl}"), "0");
        scene.program.expect("when a 1 free", "ok");
        scene.program.expect("lock a", "0");
        scene.await_told('a', 1, 1);
        assert!(scene.program.ask("told a").starts_with('1'));
    }
    scene.program.expect("close a", "0");
    scene.program.end();
}
