//! Every call ends, also when the link has fallen silent.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{TIMEOUT, eventually, options};
use zklock::{Acl, Client, Code, CreateMode, Guard, GuardState, Op, Result, Strategy};

use crate::bench::Bench;

/// What ends any call without a limit of its own.
const SESSION: Duration = Duration::from_secs(4);
const OPERATION: Duration = Duration::from_secs(3);
/// What a call may take: more than session and operation timeout together, on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

struct Scene {
    client: Client,
    held: Guard,
    lost: Guard,
    path: String,
}

type Call = fn(Scene) -> Result<()>;

/// Every call of the crate that may wait for a server, and the error that it ends with; `None` where
/// it may end well.
const CALLS: &[(&str, Option<Code>, Call)] = &[
    ("create", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.create(&s.path, b"", CreateMode::Persistent).wait().map(drop)
    }),
    ("create_with_acl", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client
            .create_with_acl(&s.path, b"", CreateMode::Persistent, &Acl::open())
            .wait()
            .map(drop)
    }),
    ("delete", Some(Code::OPERATION_TIMEOUT), |s| s.client.delete(&s.path, None).wait()),
    ("exists", Some(Code::OPERATION_TIMEOUT), |s| s.client.exists(&s.path).wait().map(drop)),
    ("exists_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.exists_and_watch(&s.path).wait().map(drop)
    }),
    ("get", Some(Code::OPERATION_TIMEOUT), |s| s.client.get(&s.path).wait().map(drop)),
    ("get_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.get_and_watch(&s.path).wait().map(drop)
    }),
    ("set", Some(Code::OPERATION_TIMEOUT), |s| s.client.set(&s.path, b"", None).wait().map(drop)),
    ("children", Some(Code::OPERATION_TIMEOUT), |s| s.client.children(&s.path).wait().map(drop)),
    ("children_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.children_and_watch(&s.path).wait().map(drop)
    }),
    ("get_acl", Some(Code::OPERATION_TIMEOUT), |s| s.client.get_acl(&s.path).wait().map(drop)),
    ("set_acl", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.set_acl(&s.path, &Acl::open(), None).wait()
    }),
    ("sync", Some(Code::OPERATION_TIMEOUT), |s| s.client.sync("/").wait()),
    ("multi", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.multi(&[Op::check("/")]).wait().map(drop)
    }),
    ("make_path", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.make_path(&format!("{}/a", s.path)).wait()
    }),
    ("add_auth", None, |s| s.client.add_auth("digest", b"a:b").wait()),
    ("close", None, |s| s.client.close().wait()),
    ("dropping all", None, |s| {
        drop(s);
        Ok(())
    }),
    ("acquire_within", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.lock("/free").acquire_within(OPERATION).wait().map(drop)
    }),
    ("try_acquire", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.lock("/free").try_acquire().wait().map(drop)
    }),
    ("holder", Some(Code::OPERATION_TIMEOUT), |s| s.client.lock("/free").holder().wait().map(drop)),
    ("contenders", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.lock("/free").contenders().wait().map(drop)
    }),
    ("exists of a lock", Some(Code::OPERATION_TIMEOUT), |s| {
        s.client.lock("/free").exists().wait().map(drop)
    }),
    ("release", Some(Code::SESSION_EXPIRED), |s| s.held.release().wait()),
    ("release_within", Some(Code::OPERATION_TIMEOUT), |s| {
        s.held.release_within(Duration::from_millis(50)).wait()
    }),
    ("release_within of zero", Some(Code::OPERATION_TIMEOUT), |s| {
        s.held.release_within(Duration::ZERO).wait()
    }),
    ("release of a lock that is lost", Some(Code::NO_NODE), |s| s.lost.release().wait()),
    ("waiting for the loss", None, |s| {
        assert_eq!(s.held.lost().wait(), zklock::LostReason::Session);
        Ok(())
    }),
];

#[test]
fn every_call_ends_under_a_cut_link() {
    let bench = Bench::shared();
    // Each of them has a link of its own, all of which are cut at once.
    thread::scope(|scope| {
        for (number, (name, expected, call)) in CALLS.iter().enumerate() {
            let bench = &bench;
            scope.spawn(move || {
                let proxy = zklock_testing::Proxy::start(bench.server.addr()).unwrap();
                let options = options().session_timeout(SESSION).operation_timeout(OPERATION);
                let client = options.connect(&proxy.hosts()).wait().unwrap();
                let acquire = |what: &str| {
                    let lock =
                        client.lock(&format!("/cut-{number}/{what}")).strategy(Strategy::Queue);
                    lock.acquire_within(TIMEOUT).wait().unwrap()
                };
                let (held, lost) = (acquire("held"), acquire("lost"));
                bench.direct().delete(lost.path(), None).wait().unwrap();
                eventually("the loss is known", || lost.state() == GuardState::Lost);
                let path = format!("/cut-{number}/node");
                let scene = Scene { client, held, lost, path };
                proxy.cut();
                let began = Instant::now();
                let ended = call(scene);
                let took = began.elapsed();
                assert!(took < ENDS_WITHIN, "{name} took {took:?}");
                if let Some(expected) = expected {
                    assert_eq!(ended.unwrap_err().code(), *expected, "{name}");
                }
            });
        }
    });
}

#[test]
fn the_release_of_a_guard_that_is_lost_ends_at_once_and_is_done_later() {
    let bench = Bench::shared();
    let client = options()
        .session_timeout(SESSION)
        .operation_timeout(TIMEOUT)
        .connect(&bench.proxy.hosts())
        .wait()
        .unwrap();
    let guard = bench.lock(&client, Strategy::Queue).acquire().wait().unwrap();
    bench.proxy.cut();
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(zklock::LostReason::Session));
    // No server can be asked, and none has to be.
    let released = futures_lite::future::block_on(futures_lite::future::poll_once(guard.release()));
    assert_eq!(released.expect("it is ready at once").unwrap_err().code(), Code::SESSION_EXPIRED);
    bench.proxy.heal();
    bench.expect_free(Strategy::Queue);
}
