//! Calls from inside the callbacks of the handle: they may not wait there, or nothing would move.

use crate::scene::Scene;

#[test]
fn a_lock_inside_a_callback_returns_at_once_and_is_told_later() {
    let mut scene = Scene::on_one_handle("a");
    scene.program.expect("inside a lock a", "0");
    scene.await_told('a', 0, 1);
    scene.program.expect("isowner a", "1");
    scene.expect_told('a', "0o");
}

#[test]
fn an_unlock_inside_a_callback_works() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("inside a unlock a", "0");
    scene.expect_told('a', "0c 1c");
    scene.program.expect("inside a isowner a", "0");
    scene.await_owner('b', true);
    scene.program.expect("inside a isowner b", "1");
    scene.program.expect("inside a unlock b", "0");
    scene.await_claims(0);
}

#[test]
fn everything_can_be_done_inside_callbacks() {
    let mut scene = Scene::new();
    scene.open('a');
    for round in 1..=5 {
        scene.program.expect("inside a init a a /locks/recipe", "0");
        scene.program.expect("inside a init b a /locks/recipe", "0");
        scene.program.expect("inside a lock a", "0");
        scene.await_owner('a', true);
        scene.program.expect("inside a lock b", "0");
        scene.await_claims(2);
        scene.program.expect("inside a isowner b", "0");
        if round % 2 == 0 {
            // The waiter gives up.
            scene.program.expect("inside a unlock b", "0");
            scene.await_claims(1);
        }
        scene.program.expect("inside a unlock a", "0");
        scene.await_owner('b', round % 2 != 0);
        scene.program.expect("inside a destroy a", "0");
        scene.program.expect("inside a destroy b", "0");
        scene.await_claims(0);
    }
}

#[test]
fn a_lock_and_an_unlock_in_one_callback_leave_nothing() {
    let mut scene = Scene::on_one_handle("ab");
    for _ in 0..10 {
        scene.program.expect("inside a both a", "0 0");
    }
    scene.program.expect("lock b", "0");
    scene.await_owner('b', true);
    scene.await_claims(1);
    scene.program.expect("isowner a", "0");
}
