//! Errors are reported, not swallowed; and what a program does wrong is no reason to crash.

use std::thread;

use test_support::{TIMEOUT, eventually};
use zklock::Client;
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock_testing::Rule;
use zklock_testing::wire::Op;

use crate::scene::{PATH, Scene};

const INVALID_STATE: &str = "-9";
const NO_NODE: &str = "-101";
const SESSION_EXPIRED: &str = "-112";
const NO_AUTH: &str = "-102";
const NO_CHILDREN_FOR_EPHEMERALS: &str = "-108";
const INVALID_ACL: &str = "-114";
const BAD_ARGUMENTS: &str = "-8";

#[test]
fn a_bad_acl_is_an_error() {
    let mut scene = Scene::new();
    scene.open('a');
    scene.zk.make_path(PATH).wait().unwrap();
    // Empty, and one that speaks of an identity which the session does not have.
    for acl in ["empty", "creator"] {
        scene.program.expect(&format!("init a a {PATH} {acl}"), "0");
        scene.expect_refused('a', INVALID_ACL);
        scene.expect_told('a', "1c");
        assert_ne!(scene.program.ask("unlock a"), "0", "it is not locked");
        scene.program.expect("error a", INVALID_ACL);
    }
    assert_eq!(scene.claims(), [""; 0]);
    // None at all means everyone.
    scene.program.expect(&format!("init a a {PATH} null"), "0");
    scene.program.expect("lock a", "0");
    scene.program.expect("error a", "0");
    scene.program.expect("isowner a", "1");
}

#[test]
fn a_path_that_the_program_may_not_change_is_an_error() {
    let mut scene = Scene::on_one_handle("a");
    let owner = Client::options().auth("digest", "owner:secret");
    let owner = owner.connect(&scene.hosts()).wait().unwrap();
    owner.make_path("/locks").wait().unwrap();
    let mut acl = Acl::creator();
    acl.push(Acl { permissions: Permissions::READ, scheme: "world".into(), id: "anyone".into() });
    owner.create_with_acl(PATH, b"", CreateMode::Persistent, &acl).wait().unwrap();
    for _ in 0..2 {
        scene.expect_refused('a', NO_AUTH);
    }
    // The program may try again when that was put right.
    owner.set_acl(PATH, &Acl::open(), None).wait().unwrap();
    scene.program.expect("lock a", "0");
    scene.program.expect("error a", "0");
    scene.program.expect("isowner a", "1");
    scene.expect_told('a', "1c 1c 0c");
}

#[test]
fn a_path_that_can_have_no_children_is_an_error() {
    let mut scene = Scene::on_one_handle("a");
    scene.zk.make_path("/locks").wait().unwrap();
    scene.zk.create(PATH, b"", CreateMode::Ephemeral).wait().unwrap();
    scene.expect_refused('a', NO_CHILDREN_FOR_EPHEMERALS);
}

#[test]
fn a_path_that_zookeeper_does_not_allow_is_an_error() {
    let mut scene = Scene::new();
    scene.open('a');
    for path in ["relative", "/a//b", "/a/", "/a/../b", "/bad\u{1}"] {
        // Many times: the refusal comes at once, perhaps before the caller waits for it.
        for _ in 0..20 {
            scene.program.expect(&format!("init a a {path}"), "0");
            scene.expect_refused('a', BAD_ARGUMENTS);
        }
    }
}

#[test]
fn null_and_zeroed_structs_are_errors() {
    let mut scene = Scene::new();
    scene.program.expect("nulls", "refused");
    scene.open('a');
    scene.program.expect("nulls", "refused");
    scene.program.expect("zero a", "ok");
    scene.program.expect("lock a", "0");
    scene.program.expect("error a", BAD_ARGUMENTS);
    assert_ne!(scene.program.ask("unlock a"), "0");
    scene.program.expect("isowner a", "0");
    scene.program.expect("getid a", "-");
    scene.program.expect("getpath a", "-");
    scene.program.ask("destroy a");
    scene.program.end();
}

#[test]
fn a_failure_inside_a_callback_of_the_handle_is_told_once() {
    let mut scene = Scene::on_one_handle("a");
    // What only the server can refuse comes later; what is refused here comes inside the call.
    scene.zk.make_path("/locks").wait().unwrap();
    scene.zk.create(PATH, b"", CreateMode::Ephemeral).wait().unwrap();
    scene.program.expect("inside a lock a", "0");
    scene.await_told('a', 1, 1);
    scene.expect_told('a', "1o");
    scene.program.expect("error a", NO_CHILDREN_FOR_EPHEMERALS);
    scene.program.expect(&format!("init b a {PATH} empty"), "0");
    scene.program.expect("inside a lock b", "0");
    scene.expect_told('b', "1c");
    scene.program.expect("inside a error b", INVALID_ACL);
}

#[test]
fn a_completion_that_locks_again_in_vain_is_not_run_inside_itself() {
    let mut scene = Scene::new();
    scene.open('a');
    scene.program.expect(&format!("init a a {PATH} empty"), "0");
    scene.program.expect("when a 1 lock", "ok");
    scene.expect_refused('a', INVALID_ACL);
    scene.expect_refused('a', INVALID_ACL);
}

#[test]
fn the_error_of_a_mutex_that_loses_its_place_tells_why() {
    let mut scene = Scene::on_one_handle("abc");
    scene.program.expect("error a", "0");
    scene.line_up("a");
    let id = scene.id('a');
    scene.delete(&id);
    scene.await_told('a', 1, 1);
    scene.program.expect("error a", NO_NODE);
    scene.program.expect("unlock a", "0");
    scene.program.expect("error a", NO_NODE);
    scene.line_up("ab");
    scene.program.expect("error a", "0");
    scene.program.expect("error b", "0");
    scene.expire('a');
    scene.await_told('a', 1, 2);
    scene.await_told('b', 1, 1);
    for mutex in "ab".chars() {
        scene.program.expect(&format!("error {mutex}"), SESSION_EXPIRED);
        scene.expect_refused(mutex, SESSION_EXPIRED);
    }
    // Its first lock finds the session over.
    scene.expect_refused('c', INVALID_STATE);
    scene.program.expect("destroy c", "0");
    scene.program.expect("error c", BAD_ARGUMENTS);
}

#[test]
fn an_unlock_without_the_permission_to_delete_says_so() {
    let mut scene = Scene::on_one_handle("a");
    let acl = [Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone")];
    scene.zk.make_path("/locks").wait().unwrap();
    scene.zk.create_with_acl(PATH, b"", CreateMode::Persistent, &acl).wait().unwrap();
    scene.line_up("a");
    scene.program.expect("unlock a", "-102");
    scene.expect_told('a', "0c 1c");
    scene.program.expect("isowner a", "0");
    assert_eq!(scene.claims().len(), 1);
    // The same of a place in the queue, behind the claim that is left.
    scene.program.expect(&format!("init b a {PATH} open"), "0");
    scene.program.expect("lock b", "0");
    assert_eq!(scene.claims().len(), 2);
    scene.program.expect("unlock b", "-102");
    assert_eq!(scene.claims().len(), 2);
}

#[test]
fn an_unlock_of_what_was_lost_without_its_knowledge_leaves_the_reason() {
    let mut scene = Scene::new();
    let hosts = scene.hosts_by(&scene.proxy);
    scene.open_only('a', &hosts, TIMEOUT);
    scene.init("a", 'a');
    scene.line_up("a");
    let id = scene.id('a');
    let watched = Rule::reply(Op::GetData);
    eventually("the claim is watched", || scene.proxy.count(&watched) > 0);
    // The event of the deletion waits, and with it all that the servers send, until the unlock is on its way.
    let event = scene.proxy.hold(Rule::event());
    scene.delete(&id);
    event.wait_reached(TIMEOUT).unwrap();
    let Scene { program, proxy, .. } = &mut scene;
    thread::scope(|scope| {
        scope.spawn(|| {
            // It looks whether the claim is still its own.
            let look = Rule::request(Op::GetData);
            eventually("the unlock is on its way", || proxy.count(&look) > 1);
            event.release();
        });
        program.expect("unlock a", "0");
    });
    scene.program.expect("error a", NO_NODE);
}
