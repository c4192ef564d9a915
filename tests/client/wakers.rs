//! Wakers are other people's code, and run on the client's threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use futures_lite::Stream as _;
use test_support::{
    Bench, TIMEOUT, alone, eventually, expire, options, session_id, shared, states_until,
    unless_it_stalls,
};
use zklock::zookeeper::{CreateMode, SessionState, WatchEventKind};
use zklock::{Client, Code, GuardState};
use zklock_testing::wire::Op;
use zklock_testing::{Gate, Rule};

type Action = Box<dyn FnOnce() + Send>;

/// Does something when it is woken for the first time.
struct OnWake(Mutex<Option<Action>>);

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        let action = self.0.lock().unwrap().take();
        if let Some(action) = action {
            action();
        }
    }
}

/// A waker, and the thread that it was woken on once its action has come back.
fn on_wake(action: impl FnOnce() + Send + 'static) -> (Waker, Receiver<ThreadId>) {
    let (send, woken) = channel();
    let action = move || {
        action();
        let _ = send.send(thread::current().id());
    };
    (Waker::from(Arc::new(OnWake(Mutex::new(Some(Box::new(action)))))), woken)
}

fn panicking() -> Waker {
    let bad = || std::panic::resume_unwind(Box::new("a bad waker, as intended"));
    Waker::from(Arc::new(OnWake(Mutex::new(Some(Box::new(bad))))))
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A request whose reply is held back.
fn held_get(bench: &Bench, client: &Client) -> (zklock::Pending<zklock::zookeeper::Znode>, Gate) {
    let gate = bench.proxy.hold(Rule::reply(Op::GetData));
    let pending = client.get("/");
    gate.wait_reached(TIMEOUT).unwrap();
    (pending, gate)
}

fn woken_elsewhere(woken: &Receiver<ThreadId>) {
    assert_ne!(woken.recv_timeout(TIMEOUT).unwrap(), thread::current().id());
}

#[test]
fn the_last_client_can_be_dropped_or_closed_when_an_answer_wakes() {
    let bench = Bench::untouched();
    for close in [false, true] {
        let client = bench.client();
        let session = client.session().unwrap().id();
        let mut states = client.states();
        let (mut pending, gate) = held_get(&bench, &client);
        let (waker, woken) = on_wake(move || {
            if close {
                drop(client.close());
            }
            drop(client);
        });
        assert!(poll(&mut pending, &waker).is_pending());
        gate.release();
        woken_elsewhere(&woken);
        states_until(&mut states, SessionState::Closed);
        assert!(pending.wait().is_ok(), "the answer was there before the client went");
        eventually("the session is over", || !bench.server.sessions().unwrap().contains(&session));
    }
}

/// A waker that blocks until the sender is dropped, unless it is woken before that time; and whether it does.
fn blocking(from: Instant) -> (Waker, Receiver<bool>, Sender<()>) {
    let (go_on, wait) = channel();
    let (begin, begun) = channel();
    let (waker, _) = on_wake(move || {
        let blocks = Instant::now() >= from;
        let _ = begin.send(blocks);
        if blocks {
            let _ = wait.recv_timeout(TIMEOUT);
        }
    });
    (waker, begun, go_on)
}

#[test]
fn a_waker_that_blocks_at_a_deadline_delays_nothing_that_a_session_needs() {
    unless_it_stalls(Duration::from_millis(500), || {
        let bench = Bench::untouched();
        let options = options()
            .session_timeout(Duration::from_secs(4))
            .operation_timeout(Duration::from_millis(500));
        let client = options.connect(&bench.proxy.hosts()).wait().unwrap();
        let session = session_id(&client);
        let mut states = client.states();
        let guard = client.lock("/blocked").acquire().wait().unwrap();
        let other = bench.direct();
        // One is woken by a time, the other by a request's deadline.
        let limit = Duration::from_secs(3);
        let until = Instant::now() + limit;
        let mut acquire = other.lock("/blocked").acquire().within(limit);
        // Before its time it is woken by answers.
        let go_on_by_time = loop {
            let (time, begun_by_time, go_on) = blocking(until);
            assert!(poll(&mut acquire, &time).is_pending());
            if begun_by_time.recv_timeout(TIMEOUT).unwrap() {
                break go_on;
            }
        };
        let (mut pending, gate) = held_get(&bench, &client);
        let (deadline, begun_by_deadline, go_on_by_deadline) = blocking(Instant::now());
        assert!(poll(&mut pending, &deadline).is_pending());
        assert!(begun_by_deadline.recv_timeout(TIMEOUT).unwrap());
        gate.release();
        // Both clients go on: heartbeats are sent and answered, deadlines of others are kept.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            let late = other.lock("/blocked").acquire().within(Duration::from_millis(300)).wait();
            assert_eq!(late.unwrap_err().code(), Code::OPERATION_TIMEOUT);
        }
        assert_eq!(guard.state(), GuardState::Held);
        bench.proxy.cut();
        states_until(&mut states, SessionState::Lost);
        assert!(guard.lost().wait_timeout(TIMEOUT).is_some());
        eventually("the session is over", || !bench.server.sessions().unwrap().contains(&session));
        drop((go_on_by_time, go_on_by_deadline));
        assert_eq!(pending.wait().unwrap_err().code(), Code::OPERATION_TIMEOUT);
        // Its time is over, and the lock is free by now: it ends by what it sees first.
        if let Err(error) = acquire.wait() {
            assert_eq!(error.code(), Code::OPERATION_TIMEOUT);
        }
    });
}

#[test]
fn the_last_client_can_be_dropped_by_who_consumes_a_watch() {
    let (observer, path) = alone();
    for _ in 0..20 {
        let client = options().connect(&shared().hosts()).wait().unwrap();
        let session = client.session().unwrap().id();
        let mut states = client.states();
        let mut watch = client.get_and_watch(&path).wait().unwrap().watch;
        let (waker, woken) = on_wake(move || drop(client));
        assert!(poll(&mut watch, &waker).is_pending());
        observer.set(&path, b"x", None).wait().unwrap();
        woken_elsewhere(&woken);
        assert_eq!(watch.wait().unwrap().kind, WatchEventKind::DataChanged);
        states_until(&mut states, SessionState::Closed);
        eventually("the session is over", || !shared().sessions().unwrap().contains(&session));
    }
}

#[test]
fn the_last_client_can_be_dropped_when_a_state_is_told() {
    for _ in 0..5 {
        let (client, _) = alone();
        let mut states = client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        let owned = client.clone();
        let (waker, woken) = on_wake(move || drop(owned));
        assert!(Pin::new(&mut states).poll_next(&mut Context::from_waker(&waker)).is_pending());
        let session = client.session().unwrap();
        drop(client);
        let password = session.password();
        // The client may be told of the lost connection first, and end the session itself.
        let _ = zklock_testing::expire_session(&shared().hosts(), session.id(), &password);
        woken_elsewhere(&woken);
        states_until(&mut states, SessionState::Closed);
    }
}

/// Everything that a waker may be tempted to do with a client, except to wait.
fn look_around(client: &Client) {
    let _ = (client.state(), client.session(), client.session_timeout());
    let _ = format!("{client:?}");
    drop(client.get("/"));
    drop(client.exists_and_watch("/woken"));
    drop(client.add_auth("digest", b"woken:secret"));
    let mut states = client.states();
    let _ = Pin::new(&mut states).poll_next(&mut Context::from_waker(Waker::noop()));
    let lost = states;
    drop(lost);
}

#[test]
fn a_waker_may_use_the_client_that_wakes_it() {
    let bench = Bench::untouched();
    let client = bench.client();
    let (mut pending, gate) = held_get(&bench, &client);
    let inner = client.clone();
    let (waker, woken) = on_wake(move || look_around(&inner));
    assert!(poll(&mut pending, &waker).is_pending());
    gate.release();
    woken_elsewhere(&woken);

    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    let inner = client.clone();
    let (waker, woken) = on_wake(move || look_around(&inner));
    assert!(Pin::new(&mut states).poll_next(&mut Context::from_waker(&waker)).is_pending());
    expire(&bench.server, &client);
    woken_elsewhere(&woken);
    states_until(&mut states, SessionState::Connected);

    let mut watch = client.exists_and_watch("/node").wait().unwrap().watch;
    let inner = client.clone();
    let (waker, woken) = on_wake(move || look_around(&inner));
    assert!(poll(&mut watch, &waker).is_pending());
    client.create("/node", b"", CreateMode::Persistent).wait().unwrap();
    woken_elsewhere(&woken);

    // The answer to an identity comes on a thread of its own kind. The C client takes one for the
    // answer to all that are on their way, so those added above are waited out first.
    client.get("/").wait().unwrap();
    let gate = bench.proxy.hold(Rule::reply(Op::Auth));
    let mut added = client.add_auth("digest", b"user:secret");
    let inner = client.clone();
    let (waker, woken) = on_wake(move || look_around(&inner));
    assert!(poll(&mut added, &waker).is_pending());
    gate.wait_reached(TIMEOUT).unwrap();
    gate.release();
    woken_elsewhere(&woken);
    client.close().within(TIMEOUT).wait().unwrap();
}

#[test]
fn a_waker_that_panics_costs_nobody_an_answer() {
    let bench = Bench::untouched();
    let client = bench.client();
    let (first, gate) = held_get(&bench, &client);
    let mut gets = vec![first, client.get("/"), client.get("/")];
    for get in &mut gets {
        assert!(poll(get, &panicking()).is_pending());
    }
    let last = client.get("/");
    gate.release();
    last.within(TIMEOUT).wait().unwrap();
    for get in gets {
        get.within(TIMEOUT).wait().unwrap();
    }
}

#[test]
fn a_waker_that_panics_costs_nobody_an_event() {
    let (client, path) = alone();
    let mut watches: Vec<_> =
        (0..5).map(|_| client.get_and_watch(&path).wait().unwrap().watch).collect();
    for watch in &mut watches[..4] {
        assert!(poll(watch, &panicking()).is_pending());
    }
    client.set(&path, b"x", None).wait().unwrap();
    for mut watch in watches {
        let event = watch.wait_timeout(TIMEOUT).unwrap().unwrap();
        assert_eq!(event.kind, WatchEventKind::DataChanged);
    }
}

#[test]
fn a_waker_that_panics_does_not_stop_the_client_from_watching_over_its_session() {
    let (client, _) = alone();
    let mut good = client.states();
    let mut bad: Vec<_> = (0..3).map(|_| client.states()).collect();
    for states in bad.iter_mut().chain([&mut good]) {
        assert_eq!(states.wait(), Some(SessionState::Connected));
    }
    for states in &mut bad {
        let waker = panicking();
        assert!(Pin::new(states).poll_next(&mut Context::from_waker(&waker)).is_pending());
    }
    for _ in 0..2 {
        expire(shared(), &client);
        states_until(&mut good, SessionState::Lost);
        states_until(&mut good, SessionState::Connected);
    }
    for states in &mut bad {
        states_until(states, SessionState::Lost);
    }
    client.close().within(TIMEOUT).wait().unwrap();
    states_until(&mut good, SessionState::Closed);
}

#[test]
fn a_waker_that_panics_at_a_deadline_or_at_the_close_leaves_the_others_theirs() {
    let bench = Bench::untouched();
    let client = options()
        .operation_timeout(Duration::from_millis(200))
        .connect(&bench.server.hosts())
        .wait()
        .unwrap();
    bench.server.freeze().unwrap();
    for _ in 0..2 {
        let mut gets: Vec<_> = (0..20).map(|_| client.get("/")).collect();
        for get in &mut gets {
            assert!(poll(get, &panicking()).is_pending());
        }
        for get in gets {
            assert_eq!(get.wait().unwrap_err().code(), Code::OPERATION_TIMEOUT);
        }
    }
    bench.server.thaw().unwrap();
    let client = options().connect(&bench.proxy.hosts()).wait().unwrap();
    let (first, _gate) = held_get(&bench, &client);
    let mut gets = vec![first];
    gets.extend((0..20).map(|_| client.get("/")));
    for get in &mut gets {
        assert!(poll(get, &panicking()).is_pending());
    }
    client.close().within(TIMEOUT).wait().unwrap();
    for get in gets {
        assert_eq!(get.wait().unwrap_err().code(), Code::CLOSING);
    }
}
