//! What the completion is told, on which thread, and what it may do.

use crate::scene::{PATH, Scene};

#[test]
fn a_mutex_that_owns_at_once_is_told_inside_the_call() {
    let mut scene = Scene::on_one_handle("a");
    scene.program.expect("lock a", "0");
    scene.expect_told('a', "0c");
    scene.program.expect("unlock a", "0");
    scene.expect_told('a', "0c 1c");
}

#[test]
fn a_mutex_that_owns_later_is_told_on_a_thread_that_is_not_the_handles() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.expect_told('b', "");
    scene.program.expect("unlock a", "0");
    scene.await_told('b', 0, 1);
    scene.expect_told('b', "0o");
}

#[test]
fn a_completion_may_unlock() {
    let mut scene = Scene::on_one_handle("ab");
    scene.program.expect("when b 0 unlock", "ok");
    // At once, inside the call to lock.
    scene.program.expect("lock b", "0");
    scene.expect_told('b', "0c 1c");
    scene.program.expect("isowner b", "0");
    assert_eq!(scene.claims(), [""; 0]);
    // Later, on zklock's thread.
    scene.line_up("ab");
    scene.program.expect("unlock a", "0");
    scene.await_told('b', 1, 2);
    assert!(scene.program.ask("told b").starts_with("0c 1c 0o 1"));
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn a_completion_may_lock_again() {
    let mut scene = Scene::on_one_handle("ab");
    scene.program.expect("when a 1 lock", "ok");
    scene.program.expect("lock a", "0");
    scene.program.expect("unlock a", "0");
    scene.expect_told('a', "0c 1c 0c");
    scene.program.expect("isowner a", "1");
    assert_eq!(scene.claims().len(), 1);
    // With somebody waiting, it goes to the end of the line.
    scene.program.expect("lock b", "0");
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("isowner a", "0");
    assert_eq!(scene.claims().len(), 2);
    scene.program.expect("when a 1 nothing", "ok");
    scene.program.expect("unlock b", "0");
    scene.await_owner('a', true);
    scene.program.expect("unlock a", "0");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn a_completion_may_lock_what_it_has() {
    let mut scene = Scene::on_one_handle("a");
    scene.program.expect("when a 0 lock", "ok");
    scene.program.expect("lock a", "0");
    scene.expect_told('a', "0c");
    assert_eq!(scene.claims().len(), 1);
}

#[test]
fn the_completion_can_be_replaced() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("callbacks a", "1 1");
    scene.program.expect("callbacks b", "1 1");
    scene.program.expect("unlock a", "0");
    scene.expect_told('a', "0c another:1");
    scene.await_owner('b', true);
    scene.program.expect("unlock b", "0");
    scene.expect_told('b', "another:0 another:1");
}

#[test]
fn a_mutex_needs_no_completion() {
    let mut scene = Scene::new();
    scene.open('a');
    for mutex in ["a", "b"] {
        scene.program.expect(&format!("plain {mutex} a {PATH}"), "0");
    }
    scene.line_up("ab");
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("unlock b", "0");
    scene.program.expect("destroy b", "0");
}

#[test]
fn completions_that_overlap_leave_nobody_waiting() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    for rc in 0..2 {
        scene.program.expect(&format!("when b {rc} overlap"), "ok");
    }
    scene.program.expect("unlock a", "0");
    // Owned before the completion begins: `inside` would then run that, too.
    scene.program.expect("begun b 0 1", "ok");
    // Here it does not wait for the completion that runs: that might wait for this very thread.
    scene.program.expect("inside a unlock b", "0");
    scene.await_told('b', 0, 1);
    for rc in 0..2 {
        scene.program.expect(&format!("when b {rc} nothing"), "ok");
    }
    scene.program.expect("lock b", "0");
    scene.program.expect("unlock b", "0");
    scene.await_told('b', 1, 2);
}
