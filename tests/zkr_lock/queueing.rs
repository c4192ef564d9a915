//! Who owns, and when.

use crate::scene::{PATH, Scene};
use zklock::zookeeper::CreateMode;

#[test]
fn of_two_mutexes_on_one_session_and_path_one_owns() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    assert_eq!(scene.claims().len(), 2);
    assert_ne!(scene.id('a'), scene.id('b'));
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("isowner a", "0");
    scene.program.expect("unlock b", "0");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn mutexes_on_several_sessions_own_in_the_order_of_their_locks() {
    let mut scene = Scene::new();
    for letter in "abcde".chars() {
        scene.open(letter);
        scene.init(&letter.to_string(), letter);
    }
    scene.line_up("abcde");
    for (released, next) in "abcd".chars().zip("bcde".chars()) {
        scene.program.expect(&format!("unlock {released}"), "0");
        scene.await_owner(next, true);
        for other in "abcde".chars().filter(|&other| other != next) {
            scene.program.expect(&format!("isowner {other}"), "0");
        }
    }
}

#[test]
fn a_waiter_that_unlocks_never_owns_later() {
    let mut scene = Scene::on_one_handle("abc");
    scene.line_up("ab");
    let (owner, waiter) = (scene.id('a'), scene.id('b'));
    assert_eq!(scene.claims(), [owner.as_str(), waiter.as_str()]);
    scene.program.expect("unlock b", "0");
    assert_eq!(scene.claims(), [owner.as_str()], "its node is gone when the call returns");
    scene.expect_told('b', "1c");
    scene.program.expect("unlock a", "0");
    // Somebody else gets it meanwhile, and then nobody has it.
    scene.program.expect("lock c", "0");
    scene.program.expect("isowner c", "1");
    scene.program.expect("unlock c", "0");
    scene.program.expect("isowner b", "0");
    scene.expect_told('b', "1c");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn a_waiter_that_leaves_does_not_let_the_next_pass() {
    let mut scene = Scene::on_one_handle("abc");
    scene.line_up("abc");
    scene.program.expect("unlock b", "0");
    scene.program.expect("isowner c", "0");
    assert_eq!(scene.claims().len(), 2);
    scene.program.expect("unlock a", "0");
    scene.await_owner('c', true);
}

#[test]
fn locking_twice_keeps_one_place() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    let before = scene.claims();
    for _ in 0..3 {
        scene.program.expect("lock a", "0");
        scene.program.expect("lock b", "0");
    }
    assert_eq!(scene.claims(), before);
    scene.program.expect("isowner a", "1");
    scene.program.expect("isowner b", "0");
    scene.expect_told('a', "0c");
    scene.expect_told('b', "");
    scene.program.expect("unlock a", "0");
    scene.await_told('b', 0, 1);
    scene.expect_told('b', "0o");
    scene.program.expect("unlock b", "0");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn a_mutex_can_be_locked_again() {
    let mut scene = Scene::on_one_handle("ab");
    for round in 1..=5 {
        scene.line_up("ab");
        scene.program.expect("unlock a", "0");
        // An unlock that came before the completion would run it itself.
        scene.await_told('b', 0, round);
        scene.program.expect("unlock b", "0");
        assert_eq!(scene.claims(), [""; 0]);
    }
    scene.await_told('b', 1, 5);
    scene.expect_told('a', "0c 1c 0c 1c 0c 1c 0c 1c 0c 1c");
    scene.expect_told('b', "0o 1c 0o 1c 0o 1c 0o 1c 0o 1c");
}

#[test]
fn foreign_children_are_passed_over() {
    let mut scene = Scene::on_one_handle("ab");
    scene.zk.make_path(PATH).wait().unwrap();
    let foreign = ["nodash", "x-", "-", "x-0000000000000001-", "lock-abc", "x-y-12z", "\u{e9}-"];
    for name in foreign {
        scene.zk.create(&format!("{PATH}/{name}"), b"", CreateMode::Persistent).wait().unwrap();
    }
    scene.line_up("ab");
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("unlock b", "0");
    assert_eq!(scene.claims().len(), foreign.len(), "they stay");
}

#[test]
fn a_mutex_that_is_not_locked_cannot_be_unlocked() {
    let mut scene = Scene::on_one_handle("a");
    assert_ne!(scene.program.ask("unlock a"), "0");
    scene.program.expect("lock a", "0");
    scene.program.expect("unlock a", "0");
    assert_ne!(scene.program.ask("unlock a"), "0");
    scene.expect_told('a', "0c 1c");
}

#[test]
fn what_is_missing_of_the_path_is_made() {
    let mut scene = Scene::new();
    scene.open('a');
    scene.program.expect("init a a /some/where/deep", "0");
    scene.program.expect("lock a", "0");
    scene.program.expect("isowner a", "1");
    assert_eq!(scene.zk.children("/some/where/deep").wait().unwrap().names.len(), 1);
}
