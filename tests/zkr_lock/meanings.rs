//! What programs read from the result of `zkr_lock_lock`: ownership, as it was before ZooKeeper 3.4.14,
//! or a status. A program never believes that it owns unless it does, however it was built.

use zklock::zookeeper::CreateMode;
use zklock_testing::{Op, Rule, eventually};

use crate::driver::{
    Build, Driver, OWN, OWN_DEFINED_FOR_OWNER, OWN_LINKED_FOR_OWNER, OWN_LINKED_STATIC_FOR_OWNER,
    PLAIN, RETURNS_ERRORS, RETURNS_OWNER,
};
use crate::scene::{PATH, SESSION, Scene};

/// All in which a nonzero result is ownership.
const OWNERSHIP: [&Build; 4] =
    [&RETURNS_OWNER, &OWN_LINKED_FOR_OWNER, &OWN_LINKED_STATIC_FOR_OWNER, &OWN_DEFINED_FOR_OWNER];

fn scene(build: &Build, mutexes: &str) -> Scene {
    let mut scene = Scene::with(Driver::start_as(build));
    scene.open('a');
    scene.init(mutexes, 'a');
    scene
}

#[test]
fn a_program_that_reads_ownership_owns_exactly_when_it_owns() {
    for build in OWNERSHIP {
        let mut scene = scene(build, "ab");
        for _ in 0..2 {
            scene.program.expect("take a", "owned");
            scene.program.expect("lock a", "1");
        }
        scene.program.expect("take b", "not owned");
        let claims = scene.claims();
        assert_eq!(claims, [scene.id('a'), scene.id('b')]);
        for _ in 0..3 {
            scene.program.expect("take b", "not owned");
        }
        assert_eq!(scene.claims(), claims, "it keeps its place");
        scene.program.expect("unlock a", "0");
        scene.await_owner('b', true);
        scene.program.expect("take b", "owned");
        scene.program.expect("take a", "not owned");
        scene.program.expect("unlock b", "0");
        scene.await_owner('a', true);
        scene.program.expect("take a", "owned");
        scene.expire('a');
        scene.await_owner('a', false);
        scene.program.expect("take a", "not owned");
    }
}

#[test]
fn the_first_lock_on_a_handle_whose_thread_does_not_answer_returns_without_its_place() {
    let mut scene = Scene::with(Driver::start_as(&RETURNS_OWNER));
    scene.open_only('a', &scene.hosts_by(&scene.proxy), SESSION);
    scene.init("a", 'a');
    let answers = scene.proxy.hold(Rule::reply(Op::Exists));
    scene.program.expect("take a", "not owned");
    answers.release();
    scene.await_owner('a', true);
    scene.program.expect("take a", "owned");
}

#[test]
fn a_program_that_reads_ownership_never_believes_to_own_after_a_failure() {
    for build in OWNERSHIP.into_iter().chain([&OWN, &PLAIN]) {
        // One with a znode that nobody may change.
        let mut scene = Scene::on_own_server(Driver::start_as(build));
        scene.open('a');
        scene.init("ab", 'a');
        let never = |scene: &mut Scene, mutex: char| {
            scene.program.expect(&format!("take {mutex}"), "not owned");
            scene.program.expect(&format!("isowner {mutex}"), "0");
            // Of one that waited when its handle was closed as soon as that has come to the driver.
            eventually("the reason is there", || {
                scene.program.ask(&format!("error {mutex}")) != "0"
            });
        };
        // An ACL that is empty, and one that means an identity which the session does not have.
        for (mutex, acl) in [('c', "empty"), ('d', "creator")] {
            scene.program.expect(&format!("init {mutex} a {PATH} {acl}"), "0");
            never(&mut scene, mutex);
        }
        // A directory that the program may not change, one that can't have children, and none at all.
        for (mutex, path) in [('e', "/zookeeper/config"), ('f', "/ephemeral"), ('g', "relative")] {
            if mutex == 'f' {
                scene.zk.create(path, b"", CreateMode::Ephemeral).wait().unwrap();
            }
            scene.program.expect(&format!("init {mutex} a {path}"), "0");
            never(&mut scene, mutex);
        }
        // Not initialised, destroyed, NULL.
        scene.program.expect("zero h", "ok");
        scene.program.expect("destroy c", "0");
        scene.program.expect("release_memory d", "ok");
        for mutex in "hcd".chars() {
            never(&mut scene, mutex);
        }
        // A handle that was closed under one that owns and one that waits.
        scene.program.ask("take a");
        scene.program.ask("take b");
        scene.await_owner('a', true);
        scene.program.expect("close a", "0");
        for mutex in "abba".chars() {
            never(&mut scene, mutex);
        }
    }
}

#[test]
fn without_anything_said_a_program_that_reads_ownership_only_waits() {
    let mut scene = scene(&OWN, "ab");
    for mutex in ["a", "b", "a"] {
        scene.program.expect(&format!("take {mutex}"), "not owned");
    }
    scene.program.expect("isowner a", "1");
    scene.program.expect("isowner b", "0");
}

#[test]
fn a_program_that_reads_a_status_is_notified_of_a_failure() {
    for build in [&PLAIN, &OWN] {
        let mut scene = scene(build, "");
        scene.program.expect(&format!("init a a {PATH} empty"), "0");
        scene.expect_refused('a', "-114");
        scene.expect_told('a', "1c");
    }
}

#[test]
fn a_program_that_asks_for_errors_gets_them_as_the_result() {
    let mut scene = scene(&RETURNS_ERRORS, "ab");
    scene.program.expect("lock a", "0");
    scene.program.expect("lock b", "0");
    scene.program.expect(&format!("init c a {PATH} empty"), "0");
    scene.program.expect("lock c", "-114");
    scene.expect_told('c', "1c");
    scene.program.expect("zero d", "ok");
    scene.program.expect("lock d", "-8");
    scene.program.expect("release_memory d", "ok");
    scene.program.expect("lock d", "-8");
    scene.expire('a');
    scene.await_told('a', 1, 1);
    scene.program.expect("lock a", "-112");
}
