//! What claims are called, so that programs with the recipe and programs with this library exclude
//! each other; and what the struct says of it.

use test_support::eventually;

use crate::scene::{PATH, Scene};

#[test]
fn a_claim_is_named_for_its_session_and_number() {
    let mut scene = Scene::on_one_handle("a");
    scene.line_up("a");
    let session = scene.program.ask("session a");
    let session = u64::from_str_radix(&session, 16).unwrap();
    let claims = scene.claims();
    let name = &claims[0];
    let number =
        name.strip_prefix(&format!("x-{session:016x}-")).unwrap_or_else(|| panic!("{name}"));
    assert!(number.len() == 10 && number.bytes().all(|byte| byte.is_ascii_digit()), "{name}");
    scene.program.expect("fields a", &format!("1 {name} {name}"));
    scene.program.expect("getid a", name);
    scene.program.expect("getpath a", PATH);
    scene.program.expect("unlock a", "0");
    for asked in ["isowner a", "getid a"] {
        assert!(scene.program.ask("fields a").starts_with("0 - "), "it has no claim any more");
        scene.program.ask(asked);
    }
    assert!(scene.program.ask("fields a").starts_with("0 - "), "whatever it was asked since");
}

#[test]
fn an_old_programs_claim_ahead_of_ours_blocks_us_until_it_goes() {
    let mut scene = Scene::on_one_handle("a");
    let old = scene.old_claim();
    scene.program.expect("lock a", "0");
    scene.program.expect("isowner a", "0");
    let own = scene.id('a');
    assert_eq!(scene.claims(), [old.as_str(), own.as_str()]);
    scene.program.expect("fields a", &format!("0 {own} {old}"));
    scene.program.expect("getid a", &old);
    scene.expect_told('a', "");
    scene.delete(&old);
    scene.await_told('a', 0, 1);
    scene.program.expect("isowner a", "1");
    scene.program.expect("fields a", &format!("1 {own} {own}"));
}

#[test]
fn our_claim_blocks_an_old_program() {
    let mut scene = Scene::on_one_handle("ab");
    scene.line_up("a");
    let old = scene.old_claim();
    scene.program.expect("lock b", "0");
    // By the old program's rule, the claim with the lowest suffix owns.
    let (first, second) = (scene.id('a'), scene.id('b'));
    assert_eq!(scene.claims(), [first.as_str(), old.as_str(), second.as_str()]);
    scene.program.expect("unlock a", "0");
    assert_eq!(scene.claims()[0], old, "it is the old program's turn");
    scene.program.expect("isowner b", "0");
    scene.delete(&old);
    scene.await_owner('b', true);
}

#[test]
fn the_owners_id_is_looked_up_again_when_the_one_before_goes() {
    let mut scene = Scene::on_one_handle("abcd");
    scene.line_up("abcd");
    let ids = ['a', 'b', 'c', 'd'].map(|mutex| scene.id(mutex));
    scene.program.expect("fields d", &format!("0 {} {}", ids[3], ids[0]));
    scene.program.expect("unlock a", "0");
    scene.await_owner('b', true);
    scene.program.expect("unlock c", "0");
    // Read directly, as programs do.
    let refreshed = format!("0 {} {}", ids[3], ids[1]);
    eventually("ownerid", || scene.program.ask("fields d") == refreshed);
    scene.program.expect("getid d", &ids[1]);
}

#[test]
fn an_old_claim_with_another_session_counts_by_its_number_alone() {
    let mut scene = Scene::on_one_handle("a");
    // Its name sorts behind ours in every way but by the suffix.
    scene.zk.make_path(PATH).wait().unwrap();
    let mode = zklock::zookeeper::CreateMode::EphemeralSequential;
    let old = scene.zk.create(&format!("{PATH}/x-ffffffffffffffff-"), b"", mode).wait().unwrap();
    scene.program.expect("lock a", "0");
    scene.program.expect("isowner a", "0");
    scene.zk.delete(&old.path, None).wait().unwrap();
    scene.await_owner('a', true);
}

#[test]
fn a_claim_names_the_thread_that_locks_the_mutex() {
    let mut scene = Scene::on_one_handle("xy");
    scene.line_up("xy");
    let claims = scene.zk.lock(PATH).contenders().wait().unwrap();
    assert_eq!(claims.len(), 2);
    for claim in claims {
        // A process's first thread has its number.
        assert_eq!(claim.thread, claim.pid.to_string());
    }
}
