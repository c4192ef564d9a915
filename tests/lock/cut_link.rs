//! Every call ends, also when the link has fallen silent.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{TIMEOUT, eventually, options};
use zklock::zookeeper::{Acl, CreateMode, Op};
use zklock::{Client, Code, Guard, GuardState, Strategy};

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

type Call = fn(Scene) -> Result<(), Code>;

/// How a call has ended, whose error is the client's or a lock's.
fn ended<T>(result: Result<T, impl Into<Ended>>) -> Result<(), Code> {
    result.map(drop).map_err(|error| error.into().0)
}

struct Ended(Code);

impl From<zklock::Error> for Ended {
    fn from(error: zklock::Error) -> Ended {
        Ended(error.code())
    }
}

impl From<zklock::LockError> for Ended {
    fn from(error: zklock::LockError) -> Ended {
        Ended(error.code())
    }
}

/// Every call of the crate that may wait for a server, and the error that it ends with; `None` where
/// it may end well.
const CALLS: &[(&str, Option<Code>, Call)] = &[
    ("create", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.create(&s.path, b"", CreateMode::Persistent).wait())
    }),
    ("create_with_acl", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.create_with_acl(&s.path, b"", CreateMode::Persistent, &Acl::open()).wait())
    }),
    ("delete", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.delete(&s.path, None).wait())),
    ("exists", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.exists(&s.path).wait())),
    ("exists_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.exists_and_watch(&s.path).wait())
    }),
    ("get", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.get(&s.path).wait())),
    ("get_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.get_and_watch(&s.path).wait())
    }),
    ("set", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.set(&s.path, b"", None).wait())),
    ("children", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.children(&s.path).wait())),
    ("children_and_watch", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.children_and_watch(&s.path).wait())
    }),
    ("get_acl", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.get_acl(&s.path).wait())),
    ("set_acl", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.set_acl(&s.path, &Acl::open(), None).wait())
    }),
    ("sync", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.sync("/").wait())),
    ("multi", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.multi(&[Op::check("/")]).wait())),
    ("make_path", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.make_path(&format!("{}/a", s.path)).wait())
    }),
    ("reconfigure", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.reconfigure(&zklock::zookeeper::Reconfiguration::leave([7]), None).wait())
    }),
    ("add_auth", None, |s| ended(s.client.add_auth("digest", b"a:b").wait())),
    ("close", None, |s| ended(s.client.close().wait())),
    ("dropping all", None, |s| {
        drop(s);
        Ok(())
    }),
    ("acquire within a limit", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.lock("/free").acquire().within(OPERATION).wait())
    }),
    ("try_acquire", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.lock("/free").try_acquire().wait())
    }),
    ("holder", Some(Code::OPERATION_TIMEOUT), |s| ended(s.client.lock("/free").holder().wait())),
    ("contenders", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.lock("/free").contenders().wait())
    }),
    ("is_locked of a lock", Some(Code::OPERATION_TIMEOUT), |s| {
        ended(s.client.lock("/free").is_locked().wait())
    }),
    ("multi of a guard", Some(Code::OUTCOME_UNKNOWN), |s| {
        ended(s.held.multi(&[Op::check("/")]).wait())
    }),
    ("multi of a guard that is lost", Some(Code::NO_NODE), |s| ended(s.lost.multi(&[]).wait())),
    ("release", Some(Code::SESSION_EXPIRED), |s| ended(s.held.release().wait())),
    ("release within a limit", Some(Code::OUTCOME_UNKNOWN), |s| {
        ended(s.held.release().within(Duration::from_millis(50)).wait())
    }),
    ("release within no time", Some(Code::OUTCOME_UNKNOWN), |s| {
        ended(s.held.release().within(Duration::ZERO).wait())
    }),
    ("release of a lock that is lost", Some(Code::NO_NODE), |s| ended(s.lost.release().wait())),
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
                    lock.acquire().within(TIMEOUT).wait().unwrap()
                };
                let (held, lost) = (acquire("held"), acquire("lost"));
                bench.direct().delete(&lost.claim_path(), None).wait().unwrap();
                eventually("the loss is known", || lost.state() == GuardState::Lost);
                let path = format!("/cut-{number}/node");
                let scene = Scene { client, held, lost, path };
                proxy.cut();
                let began = Instant::now();
                let ended = call(scene);
                let took = began.elapsed();
                assert!(took < ENDS_WITHIN, "{name} took {took:?}");
                if let Some(expected) = expected {
                    assert_eq!(ended, Err(*expected), "{name}");
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
