//! Completions that are due, or wait behind one that blocks, when the program closes the handle, destroys
//! the mutex, unlocks it or has another completion: each runs, or does not, as things are by then.

use crate::scene::Scene;

/// The path of the lock whose completion waits.
const SECOND: &str = "/locks/second";

/// The program has closed handle `a`. Whatever zklock still had to call is called when its thread there
/// is gone: it goes once another handle is used, which has a thread of its own.
fn await_the_last_completion(scene: &mut Scene) {
    scene.open('z');
    scene.init("z", 'z');
    scene.line_up("z");
    scene.program.expect("unlock z", "0");
    scene.program.expect("callback_threads 1", "ok");
}

#[test]
fn nobody_is_told_of_a_handle_that_the_program_closed() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("close a", "0");
    await_the_last_completion(&mut scene);
    // Neither the owner that it owns no more, nor the one that waited.
    scene.expect_told('a', "0c");
    scene.expect_told('b', "");
}

/// `c` owns its lock, and its completion waits behind the one of `b`, which blocks.
fn with_a_completion_that_waits() -> Scene {
    let mut scene = Scene::on_one_handle("ab");
    let old = scene.old_claim_at(SECOND);
    scene.program.expect(&format!("init c a {SECOND}"), "0");
    scene.line_up("ab");
    scene.program.expect("lock c", "0");
    scene.program.expect("when b 0 wait", "ok");
    scene.program.expect("unlock a", "0");
    scene.program.expect("begun b 0 1", "ok");
    scene.zk.delete(&format!("{SECOND}/{old}"), None).wait().unwrap();
    scene.await_owner('c', true);
    scene.expect_told('c', "");
    scene
}

/// Lets everything that waits run, on a handle that stays.
fn let_all_run(scene: &mut Scene) {
    scene.program.expect("go b", "ok");
    scene.await_told('b', 0, 1);
    // Behind it in the same line.
    scene.program.expect(&format!("init d a {SECOND}-too"), "0");
    let old = scene.old_claim_at(&format!("{SECOND}-too"));
    scene.program.expect("lock d", "0");
    scene.zk.delete(&format!("{SECOND}-too/{old}"), None).wait().unwrap();
    scene.await_told('d', 0, 1);
}

#[test]
fn a_completion_that_waits_is_run_in_its_turn() {
    let mut scene = with_a_completion_that_waits();
    let_all_run(&mut scene);
    scene.expect_told('c', "0o");
}

#[test]
fn a_completion_that_waits_is_not_run_once_its_handle_is_closed() {
    let mut scene = with_a_completion_that_waits();
    scene.program.expect("close a", "0");
    scene.program.expect("go b", "ok");
    scene.await_told('b', 0, 1);
    await_the_last_completion(&mut scene);
    scene.expect_told('b', "0o");
    scene.expect_told('c', "");
}

#[test]
fn an_expiry_is_told_also_when_its_completion_waits_while_the_handle_is_closed() {
    let mut scene = with_a_completion_that_waits();
    scene.expire('a');
    scene.await_owner('b', false);
    scene.await_owner('c', false);
    scene.program.expect("close a", "0");
    scene.program.expect("go b", "ok");
    scene.await_told('b', 1, 1);
    scene.await_told('c', 1, 1);
    await_the_last_completion(&mut scene);
    scene.expect_told('b', "0o 1o");
    scene.expect_told('c', "1o");
}

#[test]
fn a_completion_that_waits_is_not_run_once_its_mutex_is_destroyed() {
    let mut scene = with_a_completion_that_waits();
    scene.program.expect("destroy c", "0");
    let_all_run(&mut scene);
    scene.expect_told('c', "");
}

#[test]
fn a_completion_that_waits_is_not_run_again_once_an_unlock_has_told_it() {
    let mut scene = with_a_completion_that_waits();
    scene.program.expect("unlock c", "0");
    let_all_run(&mut scene);
    scene.expect_told('c', "0c 1c");
}

#[test]
fn a_completion_that_waits_is_the_one_that_the_program_has_by_then() {
    let mut scene = with_a_completion_that_waits();
    scene.program.expect("callbacks c", "1 1");
    let_all_run(&mut scene);
    scene.expect_told('c', "another:0");
}

#[test]
fn of_a_lock_that_is_lost_before_its_completion_ran_only_the_loss_is_told() {
    let mut scene = with_a_completion_that_waits();
    let id = scene.id('c');
    scene.zk.delete(&format!("{SECOND}/{id}"), None).wait().unwrap();
    scene.await_owner('c', false);
    let_all_run(&mut scene);
    scene.expect_told('c', "1o");
    scene.program.expect("error c", "-101");
}

#[test]
fn an_unlock_waits_for_the_completion_that_runs() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("when b 0 dawdle", "ok");
    scene.program.expect("unlock a", "0");
    scene.program.expect("begun b 0 1", "ok");
    scene.program.expect("unlock b", "0");
    scene.expect_told('b', "0o 1c");
}
