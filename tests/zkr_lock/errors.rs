//! Errors are returned, not swallowed; and what a program does wrong is no reason to crash.

use zklock::{Acl, Client, CreateMode, Permissions};

use crate::scene::{PATH, Scene};

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
        scene.program.expect("lock a", INVALID_ACL);
        scene.program.expect("isowner a", "0");
        scene.expect_told('a', "");
        assert_ne!(scene.program.ask("unlock a"), "0", "it is not locked");
    }
    assert_eq!(scene.claims(), [""; 0]);
    // None at all means everyone.
    scene.program.expect(&format!("init a a {PATH} null"), "0");
    scene.program.expect("lock a", "0");
    scene.program.expect("isowner a", "1");
}

#[test]
fn a_path_that_the_program_may_not_change_is_an_error() {
    let mut scene = Scene::on_one_handle("a");
    let owner = Client::options().auth("digest", "owner:secret");
    let owner = owner.connect(&scene.server.hosts()).wait().unwrap();
    owner.make_path("/locks").wait().unwrap();
    let mut acl = Acl::creator();
    acl.push(Acl { permissions: Permissions::READ, scheme: "world".into(), id: "anyone".into() });
    owner.create_with_acl(PATH, b"", CreateMode::Persistent, &acl).wait().unwrap();
    scene.program.expect("lock a", NO_AUTH);
    scene.program.expect("isowner a", "0");
    scene.expect_told('a', "");
    // The program may try again when that was put right.
    owner.set_acl(PATH, &Acl::open(), None).wait().unwrap();
    scene.program.expect("lock a", "0");
    scene.program.expect("isowner a", "1");
    scene.expect_told('a', "0c");
}

#[test]
fn a_path_that_can_have_no_children_is_an_error() {
    let mut scene = Scene::on_one_handle("a");
    scene.zk.make_path("/locks").wait().unwrap();
    scene.zk.create(PATH, b"", CreateMode::Ephemeral).wait().unwrap();
    scene.program.expect("lock a", NO_CHILDREN_FOR_EPHEMERALS);
    scene.program.expect("isowner a", "0");
}

#[test]
fn a_path_that_zookeeper_does_not_allow_is_an_error() {
    let mut scene = Scene::new();
    scene.open('a');
    for path in ["relative", "/a//b", "/a/", "/a/../b", "/bad\u{1}"] {
        // Many times: the refusal comes at once, perhaps before the caller waits for it.
        for _ in 0..20 {
            // Whether it is refused here or there, it is refused.
            let rc = scene.program.ask(&format!("init a a {path}"));
            let rc = if rc == "0" { scene.program.ask("lock a") } else { rc };
            assert_eq!(rc, BAD_ARGUMENTS, "{path}");
            scene.program.expect("isowner a", "0");
            scene.expect_told('a', "");
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
    assert_ne!(scene.program.ask("lock a"), "0");
    assert_ne!(scene.program.ask("unlock a"), "0");
    scene.program.expect("isowner a", "0");
    scene.program.expect("getid a", "-");
    scene.program.expect("getpath a", "-");
    scene.program.ask("destroy a");
    scene.program.end();
}
