//! This floor in every interleaving of a few threads, with a stand-in for the C client
//! (`c_client.rs`): who answers a request, and who may touch a handle that is being closed.
//!
//! All models check what the stand-in checks (no call beside the close of a handle or after it, no
//! write to memory that is gone), that nobody waits for ever, that each request is answered once, and
//! that nothing is left of it. Each also names all the answers that there may be, so that none holds
//! only because what it is about never happens.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loom::thread;

use super::slots::{self, InFlight};
use super::{Borrowed, Config, Handle, RawOp, Sink, sys};
use crate::error::Code;
use crate::sync::{AtomicUsize, every_interleaving};

pub(super) mod c_client;

use c_client::{ANSWERS_WHAT_IS_LEFT, REFUSED};

const LOSES_WHAT_IS_LEFT: &str = "loses-what-is-left";

/// The answers of one request. Locked as the checker does not see: see `c_client.rs`.
#[derive(Clone, Default)]
struct Answers(Arc<std::sync::Mutex<Vec<Code>>>);

impl Answers {
    fn sink<T: 'static>(&self) -> Sink<T> {
        let answers = self.clone();
        Box::new(move |reply| answers.push(reply.err().unwrap_or(Code::OK)))
    }

    fn push(&self, code: Code) {
        self.0.lock().unwrap().push(code);
    }

    fn the_one(&self) -> Code {
        let answers = self.0.lock().unwrap();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0]
    }
}

/// The answers that were seen in all the runs of a model.
#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<BTreeSet<Code>>>);

impl Seen {
    fn add(&self, code: Code) {
        self.0.lock().unwrap().insert(code);
    }

    fn are(&self, codes: &[Code]) {
        assert_eq!(*self.0.lock().unwrap(), codes.iter().copied().collect());
    }
}

fn config(hosts: &str) -> Config {
    Config { hosts: hosts.to_owned(), session_timeout: Duration::from_secs(10), session: None }
}

fn open(hosts: &str) -> Arc<Handle> {
    Arc::new(Handle::open(&config(hosts), |_| {}).unwrap())
}

/// A handle of the program's.
#[derive(Clone, Copy)]
struct Lent(*mut sys::zhandle_t);

// SAFETY: a number for the stand-in, which does not follow it.
unsafe impl Send for Lent {}

impl Lent {
    fn new(hosts: &std::ffi::CStr) -> Lent {
        let (no_id, no_context) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the host string is static, and nothing else is read.
        Lent(unsafe {
            sys::zookeeper_init2(hosts.as_ptr(), None, 10_000, no_id, no_context, 0, None)
        })
    }

    fn adopt(self) -> Arc<Handle> {
        // SAFETY: the models close it after that, and never inside a callback.
        let borrowed = unsafe { Borrowed::new(self.0) }.unwrap();
        Arc::new(Handle::adopt(borrowed, |_| {}).unwrap())
    }

    fn close(self) {
        // SAFETY: the models close it once.
        unsafe { sys::zookeeper_close(self.0) };
    }
}

fn nothing_is_left(handle: &Handle) {
    assert_eq!(handle.in_flight(), 0);
    assert_eq!(slots::len(), 0);
}

#[test]
fn completion_deadline_and_close_give_one_answer_between_them() {
    for hosts in [ANSWERS_WHAT_IS_LEFT, LOSES_WHAT_IS_LEFT] {
        let seen = Seen::default();
        let all = seen.clone();
        every_interleaving(move || {
            let now = Instant::now();
            let handle = open(hosts);
            let answers = Answers::default();
            handle.sync(Some(now), "/", answers.sink());
            let keeper = {
                let handle = Arc::clone(&handle);
                thread::spawn(move || handle.expire(now))
            };
            handle.close();
            keeper.join().unwrap();
            seen.add(answers.the_one());
            nothing_is_left(&handle);
        });
        all.are(&[Code::OK, Code::OPERATION_TIMEOUT, Code::CLOSING]);
    }
}

#[test]
fn a_request_beside_a_close_is_answered_whether_it_was_sent_or_not() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let handle = open(LOSES_WHAT_IS_LEFT);
        let answers = Answers::default();
        let caller = {
            let (handle, sink) = (Arc::clone(&handle), answers.sink());
            thread::spawn(move || handle.sync(None, "/", sink))
        };
        let other_closer = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.close())
        };
        handle.close();
        caller.join().unwrap();
        other_closer.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::INVALID_STATE, Code::CLOSING]);
}

#[test]
fn a_refusal_beside_a_deadline_and_a_close_is_one_answer() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let now = Instant::now();
        let handle = open(LOSES_WHAT_IS_LEFT);
        let answers = Answers::default();
        let caller = {
            let (handle, sink) = (Arc::clone(&handle), answers.sink());
            thread::spawn(move || handle.sync(Some(now), REFUSED, sink))
        };
        let keeper = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        caller.join().unwrap();
        keeper.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    let refused = [Code::BAD_ARGUMENTS, Code::INVALID_STATE];
    all.are(&[&refused[..], &[Code::OPERATION_TIMEOUT, Code::CLOSING]].concat());
}

#[test]
fn who_is_answered_may_send_again_at_once() {
    every_interleaving(|| {
        let now = Instant::now();
        let handle = open(ANSWERS_WHAT_IS_LEFT);
        let first = Answers::default();
        // Two, so that one of them meets the lock under which the first was found.
        let others = [Answers::default(), Answers::default()];
        let sink: Sink<()> = {
            let (handle, first) = (Arc::downgrade(&handle), first.clone());
            let others = others.clone();
            Box::new(move |reply| {
                first.push(reply.err().unwrap_or(Code::OK));
                let handle = handle.upgrade().unwrap();
                others.iter().for_each(|other| handle.sync(None, "/", other.sink()));
            })
        };
        handle.sync(Some(now), "/", sink);
        let keeper = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        keeper.join().unwrap();
        first.the_one();
        others.iter().for_each(|other| drop(other.the_one()));
        nothing_is_left(&handle);
    });
}

const DELETE: RawOp<'static> = RawOp::Delete { path: "/a", version: -1 };

#[test]
fn what_the_c_client_writes_to_outlives_the_deadline_and_goes_with_the_close() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let now = Instant::now();
        let handle = open(LOSES_WHAT_IS_LEFT);
        let answers = Answers::default();
        handle.multi(Some(now), &[DELETE], answers.sink());
        let keeper = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        keeper.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::OPERATION_TIMEOUT, Code::CLOSING]);
}

#[test]
fn what_the_c_client_writes_to_outlives_a_loan_that_was_given_back() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let lent = Lent::new(c"answers-what-is-left");
        let handle = lent.adopt();
        let answers = Answers::default();
        let caller = {
            let (handle, sink) = (Arc::clone(&handle), answers.sink());
            thread::spawn(move || handle.multi(None, &[DELETE], sink))
        };
        handle.close();
        // The program's own thread, which goes on with its handle and knows nothing of the loan.
        lent.close();
        caller.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::INVALID_STATE, Code::CLOSING]);
}

#[test]
fn a_handle_that_the_program_closes_is_not_touched_any_more() {
    for hosts in [c"answers-what-is-left", c"loses-what-is-left"] {
        let seen = Seen::default();
        let all = seen.clone();
        every_interleaving(move || {
            let lent = Lent::new(hosts);
            let handle = lent.adopt();
            let answers = Answers::default();
            let caller = {
                let (handle, sink) = (Arc::clone(&handle), answers.sink());
                thread::spawn(move || {
                    handle.sync(None, "/", sink);
                    handle.state();
                })
            };
            lent.close();
            caller.join().unwrap();
            seen.add(answers.the_one());
            handle.close();
            nothing_is_left(&handle);
        });
        all.are(&[Code::OK, Code::INVALID_STATE, Code::CLOSING]);
    }
}

#[test]
fn no_more_requests_are_in_flight_than_allowed_and_none_is_forgotten() {
    every_interleaving(|| {
        let count: Arc<AtomicUsize> = Arc::default();
        let inside: Arc<AtomicUsize> = Arc::default();
        let visit = |count: Arc<AtomicUsize>, inside: Arc<AtomicUsize>| {
            use std::sync::atomic::Ordering::SeqCst;
            let Some(entered) = InFlight::enter(&count, 1) else { return false };
            assert_eq!(inside.fetch_add(1, SeqCst), 0);
            inside.fetch_sub(1, SeqCst);
            drop(entered);
            true
        };
        let others = [(), ()].map(|()| {
            let (count, inside) = (Arc::clone(&count), Arc::clone(&inside));
            thread::spawn(move || visit(count, inside))
        });
        let mut anyone = visit(Arc::clone(&count), inside);
        for other in others {
            anyone |= other.join().unwrap();
        }
        assert!(anyone);
        assert!(InFlight::enter(&count, 1).is_some());
    });
}
