//! The numbers of sequential children have an end, and none of what comes after it is in order.
//!
//! A server of version 3.4 counts on with -2147483648. One of 3.8 stands still: its data tree takes a new
//! count only if it is larger, so it gives 2147483647 again and again, and runs on into the negative
//! numbers only for as long as creates follow each other so closely that the tree has not been asked.

use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use test_support::{
    Bench, TIMEOUT, acquire_in_background, eventually, options, scaled, session_id,
};
use zklock::zookeeper::{CreateMode, Op, OpResult};
use zklock::{Client, Interop, Lock, MultiLock};
use zklock_testing::Server;
use zklock_testing::wire::{self, RawClient};

use crate::seeds::c_lock_test::Neighbour;
use crate::seeds::c_recipe::{Order, RecipeMutex};
use crate::seeds::peers::{lock_by_pattern, lock_by_serial_number};
use crate::snapshot::set_cversion;

const HOLDER: &str = "2147483647";

/// Directories whose last number is the next one.
const AT_THE_END: [&str; 3] = ["/same-number", "/same-name", "/fallen-back"];
/// Directories where the last number is taken, and whose counter went on from there.
const BEYOND: [(&str, &str); 2] =
    [("/beyond-c", "lock-"), ("/beyond-pattern", "8a7ed3a33e4f44c2a8f03b6e6d0a9c11__lock__")];

/// Where the last number but one is the next.
const FOR_ALL: &str = "/for-all";

/// Where the last twenty numbers are the next ones.
const NEARLY_AT_THE_END: [&str; 6] =
    ["/plain", "/announced", "/read-write", "/semaphore", "/multi", "/multi-too"];

fn at(directory: &str) -> Bench {
    static SERVER: LazyLock<Arc<Server>> = LazyLock::new(|| {
        const HOUR: Duration = Duration::from_secs(3600);
        let server = Server::builder().max_session_timeout(HOUR).start().unwrap();
        let mut raw = RawClient::connect(server.addr(), HOUR).unwrap();
        let beyond = BEYOND.map(|(directory, _)| directory);
        let at_the_end = AT_THE_END.iter().chain(&beyond);
        let mut counters: Vec<_> = at_the_end.map(|directory| (*directory, i32::MAX)).collect();
        counters.push((FOR_ALL, i32::MAX - 1));
        counters.extend(NEARLY_AT_THE_END.map(|at| (at, i32::MAX - 20)));
        counters.iter().for_each(|(directory, _)| drop(raw.create(directory, b"").unwrap()));
        set_cversion(&server, &counters);
        // They stay for as long as their session does, which nobody ends.
        let mut holder = RawClient::connect(server.addr(), HOUR).unwrap();
        for (directory, name) in BEYOND {
            let prefix = format!("{directory}/{name}");
            let mode = wire::CreateMode::EphemeralSequential;
            let path = holder.create_with(&prefix, b"holder", mode).unwrap();
            assert_eq!(path, format!("{prefix}{HOLDER}"));
        }
        set_cversion(&server, &beyond.map(|directory| (directory, i32::MIN)));
        Arc::new(server)
    });
    Bench::at(Arc::clone(&SERVER), directory)
}

/// Ours waits for the holder that is there, and holds when it has gone.
fn ours_waits_for_the_holder(bench: &Bench) {
    let (client, other) = (bench.direct(), bench.direct());
    let holder = format!("{}/{}", bench.path, bench.children()[0]);
    assert!(bench.lock(&client).try_acquire().wait().unwrap().is_none());
    let waiting = acquire_in_background(&bench.lock(&client));
    eventually("it waits for the holder", || {
        bench.watched_by(session_id(&client)) == [holder.clone()]
    });
    let next = acquire_in_background(&bench.lock(&other));
    eventually("the next one waits, too", || !bench.watched_by(session_id(&other)).is_empty());
    assert!(!waiting.is_finished() && !next.is_finished());
    bench.delete(&holder);
    let guard = waiting.join().unwrap().unwrap();
    assert_eq!(bench.lock(&other).holder().wait().unwrap().unwrap().path, &*guard.claim_path());
    assert!(!next.is_finished());
    guard.release().wait().unwrap();
    next.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
}

#[test]
fn a_claim_from_beyond_the_wrap_does_not_go_before_the_holder() {
    let bench = at("/beyond-pattern");
    let client = bench.direct();
    assert!(lock_by_pattern(&client, &bench.path, "0123456789abcdef0123456789abcdef").unwrap());
    assert_eq!(bench.children().len(), 2, "both hold");
    bench.delete(&format!("{}/{}", bench.path, bench.children()[1]));

    ours_waits_for_the_holder(&bench);
}

#[test]
fn a_claim_from_beyond_the_wrap_in_c_does_not_go_before_the_holder() {
    let bench = at("/beyond-c");
    let client = bench.direct();
    let seed = Neighbour { zk: &client, node: bench.path.clone(), condition: Arc::default() };
    assert!(seed.lock().unwrap());
    assert_eq!(bench.children(), ["lock-2147483647", "lock--2147483648"], "both hold");
    bench.delete(&format!("{}/lock--2147483648", bench.path));

    ours_waits_for_the_holder(&bench);
}

#[test]
fn claims_of_the_same_number_do_not_hold_together() {
    let bench = at("/same-number");
    let (older, younger) = (bench.direct(), bench.direct());
    let [holder, newcomer] =
        [&younger, &older].map(|zk| RecipeMutex::new(zk, &bench.path, Order::Number));
    holder.lock().unwrap();
    newcomer.lock().unwrap();
    assert!(bench.children().iter().all(|name| name.ends_with(HOLDER)));
    assert!(holder.is_owner() && newcomer.is_owner());
    holder.unlock().unwrap();
    newcomer.unlock().unwrap();

    // Its name sorts behind ours, its claim is before ours.
    let holder = bench.stranger("zz-lock-");
    assert!(holder.path.ends_with(HOLDER));
    ours_waits_for_the_holder(&bench);
}

#[test]
fn a_number_that_is_given_twice_is_no_error() {
    let bench = at("/same-name");
    let clients = [0; 4].map(|_| bench.direct());
    let mut holder = bench.stranger("lock-");
    assert!(holder.path.ends_with(HOLDER));
    let seed = Neighbour { zk: &clients[0], node: bench.path.clone(), condition: Arc::default() };
    let error = seed.lock().unwrap_err();
    assert!(error.is_node_exists(), "an error for everybody who would wait: {error}");
    holder.leave();

    let guard = bench.lock(&clients[0]).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.claim_path().ends_with(HOLDER));
    assert!(bench.lock(&clients[1]).try_acquire().wait().unwrap().is_none());
    let error = bench.lock(&clients[1]).acquire().within(Duration::from_millis(20)).wait();
    assert!(error.unwrap_err().is_timeout());
    let served = thread::scope(|scope| {
        let acquire = |client| bench.lock(client).acquire().within(TIMEOUT).wait();
        let waiting = clients[1..].iter().map(|client| {
            let one = scope.spawn(move || {
                let guard = acquire(client)?;
                let token = guard.fencing_token();
                guard.release().wait().map(|()| token)
            });
            eventually("it waits", || {
                bench.watched_by(session_id(client)) == [&*guard.claim_path()]
            });
            one
        });
        let waiting: Vec<_> = waiting.collect();
        let mut tokens = vec![guard.fencing_token()];
        guard.release().wait().unwrap();
        tokens.extend(waiting.into_iter().map(|one| one.join().unwrap().unwrap()));
        tokens
    });
    assert!(served[1..].iter().all(|token| *token > served[0]));
    bench.expect_empty();
}

#[test]
fn a_counter_that_falls_back_puts_no_newcomer_before_the_holder() {
    let bench = at("/fallen-back");
    let (client, newcomer) = (bench.direct(), bench.direct());
    // Within a transaction the tree is not asked.
    let prefix = format!("{}/lock-", bench.path);
    let create = || Op::create(&prefix, "", CreateMode::EphemeralSequential);
    let created = client.multi(&[create(), create(), create()]).wait().unwrap();
    let numbers = ["2147483647", "-2147483648", "-2147483647"];
    for (result, number) in created.into_iter().zip(numbers) {
        assert_eq!(result, OpResult::Created(format!("{prefix}{number}")));
    }
    // The first two have had their turn.
    for number in &numbers[..2] {
        bench.delete(&format!("{prefix}{number}"));
    }
    assert!(lock_by_serial_number(&newcomer, &bench.path).unwrap());
    assert_eq!(bench.children(), ["lock--2147483647", "lock-2147483647"], "both hold");
    bench.delete(&format!("{prefix}{HOLDER}"));

    ours_waits_for_the_holder(&bench);
}

#[test]
fn a_claim_of_two_znodes_is_one_also_where_their_numbers_do_not_follow_each_other() {
    let bench = at(FOR_ALL);
    let (client, other) = (bench.direct(), bench.direct());
    let all = |client| bench.lock(client).interoperate(Interop::All);
    for _ in 0..3 {
        let guard = all(&client).acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(bench.children().len(), 2);
        let contenders = all(&other).contenders().wait().unwrap();
        assert_eq!(contenders.len(), 1, "{contenders:?}");
        assert_eq!(contenders[0].path, &*guard.claim_path());
        assert!(all(&other).try_acquire().wait().unwrap().is_none());
        let next = acquire_in_background(&all(&other));
        eventually("it waits", || !bench.watched_by(session_id(&other)).is_empty());
        assert!(!next.is_finished());
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        let next = next.join().unwrap().unwrap();
        assert!(next.fencing_token() > token);
        assert_eq!(bench.children().len(), 2);
        next.release().wait().unwrap();
        bench.expect_empty();
    }
    // One of them is there when the last numbers are given, by whatever name.
    let mut stranger = bench.stranger("0123456789abcdef0123456789abcdef__lock__");
    let waiting = acquire_in_background(&all(&client));
    eventually("it waits", || bench.watched_by(session_id(&client)) == [&*stranger.path]);
    stranger.leave();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
    bench.expect_empty();
}

/// Clients take turns until each has had as many as it wants.
fn take_turns(clients: &[Client], lock: impl Fn(usize, &Client) -> Lock + Sync) {
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            let lock = &lock;
            scope.spawn(move || {
                for turn in 0..scaled(30, 200) {
                    let acquire = lock(number + turn, client).acquire().within(TIMEOUT);
                    acquire.wait().unwrap().release().wait().unwrap();
                }
            });
        }
    });
}

#[test]
fn nobody_is_stuck_at_the_end_of_the_counter() {
    let bench = at("/plain");
    let clients = [0; 6].map(|_| bench.direct());
    take_turns(&clients, |_, client| client.lock("/plain"));
    take_turns(&clients, |number, client| {
        let lock = client.read_write("/read-write");
        if number % 2 == 0 { lock.read() } else { lock.write() }
    });
    take_turns(&clients, |number, client| {
        client.semaphore("/semaphore", 3).permits(1 + number as u32 % 3)
    });
    let announcing = [0; 6]
        .map(|_| options().announced_releases(true).connect(&bench.server.hosts()).wait().unwrap());
    take_turns(&announcing, |_, client| client.lock("/announced"));
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(move || {
                for _ in 0..scaled(30, 200) {
                    let locks = ["/multi", "/multi-too"].map(|path| client.lock(path));
                    let acquire = MultiLock::new(locks).acquire().within(TIMEOUT);
                    acquire.wait().unwrap().release().wait().unwrap();
                }
            });
        }
    });
    for directory in NEARLY_AT_THE_END {
        let bench = at(directory);
        bench.expect_empty();
    }
}
