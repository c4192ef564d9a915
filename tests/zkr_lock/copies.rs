//! Programs copy the struct by value, and go on with the copy.

use crate::driver::Driver;
use crate::scene::{PATH, Scene};

#[test]
fn a_copy_is_the_same_mutex() {
    let mut scene = Scene::on_one_handle("a");
    scene.line_up("a");
    scene.program.expect("copy a b", "ok");
    let id = scene.id('a');
    scene.program.expect("fields b", &format!("1 {id} {id}"));
    scene.program.expect("isowner b", "1");
    scene.program.expect("getpath b", PATH);
    scene.program.expect("getid b", &id);
    scene.program.expect("unlock b", "0");
    scene.program.expect("isowner a", "0");
    scene.program.expect("isowner b", "0");
    scene.expect_told('a', "0c 1c");
    assert_eq!(scene.claims(), [""; 0]);
}

#[test]
fn nothing_is_written_to_a_struct_that_was_copied_once_it_owned() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("ab");
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("copy b c", "ok");
    scene.program.expect("scribble b", "ok");
    scene.program.expect("isowner c", "1");
    scene.program.expect("unlock c", "0");
    scene.program.expect("isowner c", "0");
    scene.program.expect("intact b", "yes");
    assert_eq!(scene.claims(), [""; 0]);
    scene.program.expect("lock c", "0");
    scene.program.expect("isowner c", "1");
    scene.program.expect("intact b", "yes");
    scene.program.expect("destroy c", "0");
    scene.program.expect("intact b", "yes");
}

#[test]
fn nothing_is_written_to_a_struct_that_was_copied_when_the_lock_is_lost() {
    let mut scene = Scene::on_one_handle("a");
    scene.line_up("a");
    scene.program.expect("copy a c", "ok");
    scene.program.expect("scribble a", "ok");
    scene.expire('a');
    scene.await_told('a', 1, 1);
    scene.program.expect("isowner c", "0");
    scene.program.expect("intact a", "yes");
}

#[test]
fn the_memory_of_a_struct_that_was_copied_may_be_freed() {
    let mut scene = Scene::with(Driver::start_under_valgrind(false));
    scene.open('a');
    scene.init("ab", 'a');
    scene.line_up("ab");
    scene.program.expect("copy a c", "ok");
    scene.program.expect("release_memory a", "ok");
    scene.program.expect("unlock c", "0");
    scene.await_owner('b', true);
    scene.program.expect("copy b d", "ok");
    scene.program.expect("release_memory b", "ok");
    scene.program.expect("release_memory c", "ok");
    scene.program.expect("isowner d", "1");
    scene.program.expect("destroy d", "0");
    scene.await_claims(0);
    scene.program.end();
}
