//! How requests travel: in order, without blocking, bounded in number, and each with an end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use test_support::{Bench, LONGEST_SESSION, TIMEOUT, alone, eventually, options};
use zklock::Code;
use zklock::zookeeper::CreateMode;

#[test]
fn requests_keep_the_order_in_which_they_were_called() {
    let (client, path) = alone();
    let sets: Vec<_> =
        (0..1_000).map(|n: i32| client.set(&path, &n.to_be_bytes(), Some(n))).collect();
    let creates: Vec<_> = (0..1_000)
        .map(|_| client.create(&format!("{path}/n-"), b"", CreateMode::PersistentSequential))
        .collect();
    for (n, set) in sets.into_iter().enumerate() {
        assert_eq!(usize::try_from(set.wait().unwrap().version).unwrap(), n + 1);
    }
    for (n, create) in creates.into_iter().enumerate() {
        assert_eq!(block_on(create).unwrap().path, format!("{path}/n-{n:010}"));
    }
    assert_eq!(client.get(&path).wait().unwrap().data, 999_i32.to_be_bytes());
}

#[test]
fn threads_that_share_a_client_each_see_their_own_order() {
    let (client, path) = alone();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (client, node) = (client.clone(), format!("{path}/{thread}"));
            scope.spawn(move || {
                client.create(&node, b"", CreateMode::Persistent).wait().unwrap();
                let sets: Vec<_> = (0..100).map(|n| client.set(&node, b"x", Some(n))).collect();
                for (n, set) in (1..).zip(sets) {
                    assert_eq!(set.wait().unwrap().version, n);
                }
            });
        }
    });
}

#[test]
fn too_many_requests_are_refused_and_the_connection_stays() {
    let bench = Bench::untouched();
    let client =
        options().session_timeout(LONGEST_SESSION).connect(&bench.server.hosts()).wait().unwrap();
    let session = client.session();
    let mut states = client.states();
    bench.server.freeze().unwrap();
    let began = Instant::now();
    let gets: Vec<_> = (0..20_000).map(|_| client.get("/")).collect();
    let submitted = began.elapsed();
    bench.server.thaw().unwrap();
    let mut ends = BTreeMap::new();
    for get in gets {
        let code = get.wait().map_or_else(|error| error.code(), |_| Code::OK);
        *ends.entry(code).or_insert(0) += 1;
    }
    assert!(submitted < TIMEOUT / 2, "submitting took {submitted:?}");
    assert_eq!(ends.keys().copied().collect::<Vec<_>>(), [Code::THROTTLED_OP, Code::OK]);
    assert!(ends[&Code::OK] >= 10_000, "{ends:?}");
    // No place is lost by what was refused or answered.
    let gets: Vec<_> = (0..10_000).map(|_| client.get("/")).collect();
    assert!(gets.into_iter().all(|get| get.wait().is_ok()));
    assert_eq!(client.session(), session);
    let told = states.wait_timeout(Duration::ZERO).unwrap();
    assert_eq!(told, Some(zklock::zookeeper::SessionState::Connected));
    assert!(states.wait_timeout(Duration::ZERO).is_err(), "no other state came and went");
}

#[test]
fn a_wait_ends_by_its_own_deadline_and_the_request_goes_on() {
    let bench = Bench::untouched();
    let client =
        options().session_timeout(LONGEST_SESSION).connect(&bench.server.hosts()).wait().unwrap();
    client.create("/node", b"", CreateMode::Persistent).wait().unwrap();
    bench.server.freeze().unwrap();
    let error = client.set("/node", b"late", None).within(Duration::from_millis(50)).wait();
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.is_outcome_unknown(), "{error}");
    assert!(error.to_string().starts_with("set"), "{error}");
    assert!(client.get("/node").within(Duration::ZERO).wait().unwrap_err().is_timeout());
    bench.server.thaw().unwrap();
    assert_eq!(client.get("/node").wait().unwrap().data, b"late");
}

#[test]
fn every_operation_ends_by_the_operation_timeout() {
    let bench = Bench::untouched();
    let options =
        options().session_timeout(LONGEST_SESSION).operation_timeout(Duration::from_millis(150));
    let client = options.connect(&bench.server.hosts()).wait().unwrap();
    bench.server.freeze().unwrap();
    let ops = [zklock::zookeeper::Op::check("/")];
    let code = |result: Result<(), zklock::Error>| result.unwrap_err().code();
    let ends = [
        code(client.create("/a", b"", CreateMode::Persistent).wait().map(drop)),
        code(client.delete("/a", None).wait()),
        code(client.exists("/a").wait().map(drop)),
        code(client.exists_and_watch("/a").wait().map(drop)),
        code(block_on(client.get("/a")).map(drop)),
        code(client.get_and_watch("/a").wait().map(drop)),
        code(client.set("/a", b"", None).wait().map(drop)),
        code(client.children("/a").wait().map(drop)),
        code(client.children_and_watch("/a").wait().map(drop)),
        code(client.get_acl("/a").wait().map(drop)),
        code(client.set_acl("/a", &zklock::zookeeper::Acl::open(), None).wait()),
        code(client.sync("/").wait()),
        code(client.add_auth("digest", b"a:b").wait()),
        code(client.multi(&ops).wait().map(drop)),
        code(client.make_path("/a/b/c").wait()),
        code(
            client
                .reconfigure(&zklock::zookeeper::Reconfiguration::leave([7]), None)
                .wait()
                .map(drop),
        ),
    ];
    assert_eq!(ends, [Code::OPERATION_TIMEOUT; 16]);
    bench.server.thaw().unwrap();
    // What the C client still owed to those requests reaches nobody, and disturbs nobody.
    eventually("it is answered again", || client.get("/").wait().is_ok());
    eventually("a transaction", || client.multi(&ops).wait().is_ok_and(|done| done.len() == 1));
}

#[test]
fn a_dropped_request_is_still_executed() {
    let (client, path) = alone();
    drop(client.set(&path, b"done", None));
    assert_eq!(client.get(&path).wait().unwrap().data, b"done");
}

#[test]
fn a_lost_connection_answers_what_was_on_its_way_with_an_unknown_outcome() {
    let bench = Bench::untouched();
    let client = bench.client();
    client.create("/node", b"", CreateMode::Persistent).wait().unwrap();
    let gate = bench.proxy.hold(zklock_testing::Rule::request(zklock_testing::wire::Op::SetData));
    let sets: Vec<_> = (0..100).map(|_| client.set("/node", b"x", None)).collect();
    gate.wait_reached(TIMEOUT).unwrap();
    bench.proxy.reset_all();
    gate.release();
    for set in sets {
        let error = set.wait().unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
    }
    eventually("a request on the next connection", || client.get("/").wait().is_ok());
}
