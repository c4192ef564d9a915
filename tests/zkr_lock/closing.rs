//! The handle is the program's, and so is the moment at which it is closed. All of it under
//! valgrind: nothing may touch a handle, or a struct, that is gone.

use crate::driver::Driver;
use crate::scene::{PATH, Scene};

fn scene() -> Scene {
    let mut scene = Scene::with(Driver::start_under_valgrind(false));
    scene.open('a');
    scene.init("ab", 'a');
    scene
}

/// The program goes on with another handle, and ends.
fn goes_on(mut scene: Scene) {
    scene.await_claims(0);
    scene.open('c');
    scene.init("c", 'c');
    scene.line_up("c");
    scene.program.expect("unlock c", "0");
    scene.program.expect("destroy c", "0");
    scene.program.expect("close c", "0");
    scene.program.end();
}

#[test]
fn a_handle_may_be_closed_while_a_mutex_owns() {
    let mut scene = scene();
    scene.line_up("a");
    scene.program.expect("close a", "0");
    scene.program.expect("isowner a", "0");
    goes_on(scene);
}

#[test]
fn a_handle_may_be_closed_while_mutexes_wait() {
    let mut scene = scene();
    scene.line_up("ab");
    scene.program.expect("close a", "0");
    scene.program.expect("isowner a", "0");
    scene.program.expect("isowner b", "0");
    goes_on(scene);
}

#[test]
fn the_memory_of_mutexes_may_go_with_their_handle() {
    let mut scene = scene();
    scene.line_up("ab");
    scene.program.expect("close a", "0");
    scene.program.expect("release_memory a", "ok");
    scene.program.expect("release_memory b", "ok");
    goes_on(scene);
}

#[test]
fn a_handle_may_be_closed_right_after_a_lock_inside_a_callback() {
    let mut scene = scene();
    // The lock is still on its way.
    scene.program.expect("inside a lock a", "0");
    scene.program.expect("close a", "0");
    scene.program.expect("isowner a", "0");
    goes_on(scene);
}

#[test]
fn a_handle_may_be_closed_before_its_first_lock_and_right_after_it() {
    let mut scene = scene();
    scene.program.expect("close a", "0");
    for round in 0..3 {
        scene.open('b');
        scene.init("b", 'b');
        scene.program.expect("lock b", "0");
        if round == 1 {
            scene.program.expect("unlock b", "0");
        }
        scene.program.expect("close b", "0");
        if round == 2 {
            scene.program.expect("destroy b", "0");
        }
        scene.await_claims(0);
    }
    goes_on(scene);
}

#[test]
fn a_mutex_may_be_unlocked_and_destroyed_after_its_handle_was_closed() {
    let mut scene = scene();
    scene.line_up("ab");
    scene.program.expect("close a", "0");
    for mutex in ["a", "b"] {
        // There is nothing left to delete, and nobody to ask: whatever it says, it does not hang.
        scene.program.ask(&format!("unlock {mutex}"));
        scene.program.expect(&format!("isowner {mutex}"), "0");
        scene.program.expect(&format!("getpath {mutex}"), PATH);
        scene.program.expect(&format!("destroy {mutex}"), "0");
    }
    goes_on(scene);
}

#[test]
fn a_mutex_may_be_locked_in_vain_after_its_handle_was_closed() {
    let mut scene = scene();
    scene.line_up("ab");
    scene.program.expect("close a", "0");
    scene.program.expect("error a", "-9");
    for mutex in ['a', 'b', 'a'] {
        scene.expect_refused(mutex, "-9");
    }
    goes_on(scene);
}

#[test]
fn a_handle_may_be_closed_by_its_watcher_when_its_session_has_expired() {
    let mut scene = scene();
    scene.program.expect("close_when_expired a", "ok");
    scene.line_up("ab");
    scene.expire('a');
    scene.program.expect("closed a", "ok");
    scene.program.expect("isowner a", "0");
    scene.program.expect("isowner b", "0");
    goes_on(scene);
}

#[test]
fn handles_come_and_go() {
    let mut scene = scene();
    scene.program.expect("close a", "0");
    for _ in 0..20 {
        scene.open('a');
        scene.init("ab", 'a');
        scene.program.expect("lock a", "0");
        scene.program.expect("isowner a", "1");
        scene.program.expect("lock b", "0");
        scene.program.expect("close a", "0");
    }
    goes_on(scene);
}
