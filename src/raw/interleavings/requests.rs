//! Requests on a handle of our own: completion, deadline, refusal and close.

use std::sync::Arc;
use std::time::Instant;

use loom::thread;

use super::c_client::{ANSWERS_WHAT_IS_LEFT, REFUSED};
use super::{Answers, DELETE, LOSES_WHAT_IS_LEFT, Seen, nothing_is_left, open, sending_again};
use crate::error::Code;
use crate::raw::slots::InFlight;
use crate::sync::{AtomicUsize, every_interleaving};

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
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let now = Instant::now();
        let handle = open(ANSWERS_WHAT_IS_LEFT);
        let (first, others) = (Answers::default(), [(); 2].map(|()| Answers::default()));
        handle.sync(Some(now), "/", sending_again(&handle, &first, &others));
        let keeper = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        keeper.join().unwrap();
        seen.add(first.the_one());
        for other in &others {
            other.the_one();
        }
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::OPERATION_TIMEOUT, Code::CLOSING]);
}

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
