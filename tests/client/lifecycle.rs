//! Clients come and go, and leave nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{
    Bench, Process, TIMEOUT, alone, child_about, connect, eventually, options, say, shared,
    states_until,
};
use zklock::zookeeper::{CreateMode, Op, SessionState};
use zklock::{Client, Code};
use zklock_testing::Rule;
use zklock_testing::wire::Ops;

const ROUNDS: usize = 1_000;

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_clients_come_and_go() {
    let Some(hosts) = child_about() else { return };
    let round = |n: usize| {
        let client = options().connect(&hosts).wait().unwrap();
        if n % 4 == 0 {
            let _ = client.get_and_watch("/").wait().unwrap();
        }
        if n % 2 == 0 {
            client.close().wait().unwrap();
        }
    };
    // The threads that the process keeps for all clients have been started by the first ones.
    (0..8).for_each(round);
    let counts = || (count("/proc/self/task"), count("/proc/self/fd"));
    let before = counts();
    (0..ROUNDS).for_each(round);
    let mut after = counts();
    // A thread that has been joined may take a moment to leave the list.
    for _ in 0..1_000 {
        if after.0 <= before.0 && after.1 <= before.1 {
            break;
        }
        thread::sleep(Duration::from_millis(5));
        after = counts();
    }
    say((before, after, after.0 <= before.0 && after.1 <= before.1));
}

#[test]
fn a_thousand_clients_leave_no_thread_file_descriptor_or_session() {
    let bench = Bench::untouched();
    let test = "lifecycle::in_a_child_process_clients_come_and_go";
    let mut child = Process::start_test(test, &bench.server.hosts());
    let counts = child.hear().unwrap();
    assert!(counts.ends_with("true)"), "threads and descriptors before and after: {counts}");
    assert!(child.end().success());
    eventually("no session is left", || bench.server.sessions().unwrap().is_empty());
}

#[test]
fn a_close_answers_each_request_on_its_way_exactly_once() {
    let bench = Bench::untouched();
    for held in [true, false] {
        let client = bench.client();
        client.create("/node", b"", CreateMode::Ephemeral).wait().unwrap();
        let gate = held.then(|| bench.proxy.hold(Rule::reply(Ops::any())));
        let answers = Arc::new(AtomicUsize::new(0));
        let mut waits: Vec<_> = (0..100)
            .map(|_| {
                let get = client.get("/node");
                let multi = client.multi(&[Op::check("/node")]);
                let watch = client.exists_and_watch("/node");
                let answers = Arc::clone(&answers);
                move || {
                    let results =
                        [get.wait().map(drop), multi.wait().map(drop), watch.wait().map(drop)];
                    answers.fetch_add(results.len(), Ordering::SeqCst);
                    results.map(|result| result.map_or_else(|error| error.code(), |()| Code::OK))
                }
            })
            .collect();
        // Some are waited for already when the client closes, the rest only afterwards.
        let threads: Vec<_> = waits.split_off(90).into_iter().map(thread::spawn).collect();
        if let Some(gate) = &gate {
            gate.wait_reached(TIMEOUT).unwrap();
        }
        client.close().within(TIMEOUT).wait().unwrap();
        let early = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        for code in early.chain(waits.into_iter().flat_map(|wait| wait())) {
            // One that was still waiting to be sent may hear of the lost connection.
            let known = [Code::OK, Code::CLOSING, Code::CONNECTION_LOSS].contains(&code);
            assert!(known && (!held || code != Code::OK), "{code:?}");
        }
        assert_eq!(answers.load(Ordering::SeqCst), 300);
    }
}

#[test]
fn a_closed_client_refuses_everything_and_can_be_closed_again() {
    let (client, path) = alone();
    let clone = client.clone();
    client.close().wait().unwrap();
    for _ in 0..3 {
        let code = |result: Result<(), zklock::Error>| result.unwrap_err().code();
        let codes = [
            code(clone.create(&path, b"", CreateMode::Persistent).wait().map(drop)),
            code(clone.delete(&path, None).wait()),
            code(clone.exists(&path).wait().map(drop)),
            code(clone.exists_and_watch(&path).wait().map(drop)),
            code(clone.get(&path).wait().map(drop)),
            code(clone.get_and_watch(&path).wait().map(drop)),
            code(clone.set(&path, b"", None).wait().map(drop)),
            code(clone.children(&path).wait().map(drop)),
            code(clone.children_and_watch(&path).wait().map(drop)),
            code(clone.get_acl(&path).wait().map(drop)),
            code(clone.set_acl(&path, &zklock::zookeeper::Acl::open(), None).wait()),
            code(clone.sync(&path).wait()),
            code(clone.multi(&[Op::check(&path)]).wait().map(drop)),
            code(clone.make_path(&path).wait()),
            code(clone.add_auth("digest", b"a:b").wait()),
            code(
                clone
                    .reconfigure(&zklock::zookeeper::Reconfiguration::leave([7]), None)
                    .wait()
                    .map(drop),
            ),
        ];
        assert_eq!(codes, [Code::INVALID_STATE; 16]);
        clone.close().wait().unwrap();
    }
    assert_eq!(clone.state(), SessionState::Closed);
    assert_eq!((clone.session(), clone.session_timeout()), (None, None));
    assert_eq!(clone.states().wait(), Some(SessionState::Closed));
}

#[test]
fn threads_that_submit_while_another_closes_all_get_their_answers() {
    for _ in 0..20 {
        let client = connect(shared());
        let submitting: Vec<_> = (0..4)
            .map(|_| {
                let client = client.clone();
                thread::spawn(move || {
                    for n in 0.. {
                        let (get, watch) = (client.get("/"), client.children_and_watch("/"));
                        let ends = [get.wait().map(drop), watch.wait().map(drop)];
                        if ends.iter().any(Result::is_err) {
                            return n;
                        }
                    }
                    0
                })
            })
            .collect();
        client.get("/").wait().unwrap();
        client.close().within(TIMEOUT).wait().unwrap();
        for thread in submitting {
            thread.join().unwrap();
        }
    }
}

#[test]
fn many_clients_at_once_each_have_a_session_of_their_own() {
    let (observer, path) = alone();
    let pending: Vec<_> = (0..30).map(|_| options().connect(&shared().hosts())).collect();
    let clients: Vec<Client> = pending.into_iter().map(|client| client.wait().unwrap()).collect();
    let creates: Vec<_> = clients
        .iter()
        .map(|client| client.create(&format!("{path}/n-"), b"", CreateMode::EphemeralSequential))
        .collect();
    let mut owners: Vec<_> =
        creates.into_iter().map(|create| create.wait().unwrap().stat.ephemeral_owner).collect();
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners.len(), 30);
    let closing: Vec<_> = clients.iter().map(Client::close).collect();
    closing.into_iter().for_each(|close| close.wait().unwrap());
    assert_eq!(observer.children(&path).wait().unwrap().names, Vec::<String>::new());
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_guard_is_dropped_at_the_end() {
    let Some(hosts) = child_about() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let guard = client.lock("/end").acquire().wait().unwrap();
    // Held elsewhere: it is not this drop that ends the session.
    std::mem::forget(client);
    drop(guard);
    std::process::exit(0);
}

#[test]
fn a_guard_that_is_dropped_at_the_end_of_its_process_leaves_no_claim() {
    let bench = Bench::untouched();
    let client = bench.direct();
    for _ in 0..20 {
        let test = "lifecycle::in_a_child_process_a_guard_is_dropped_at_the_end";
        assert!(Process::start_test(test, &bench.server.hosts()).end().success());
        assert!(client.children("/end").wait().unwrap().names.is_empty());
    }
}

/// How often this thread has waited so far.
pub fn voluntary_waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_client_that_is_closed_while_it_connects_again_stays_closed() {
    let bench = Bench::untouched();
    for round in 0..150 {
        let client = bench.client();
        let mut states = client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        bench.proxy.reset_all();
        // Its handle connects again, and is answered, before, while and after the client is closed.
        thread::sleep(Duration::from_micros(200 * (round % 50)));
        client.close().wait().unwrap();
        assert_eq!(client.state(), SessionState::Closed, "round {round}");
        states_until(&mut states, SessionState::Closed);
    }
}
