//! Requests on a handle of our own: completion, deadline, refusal and close.

use std::sync::Arc;
use std::time::Instant;

use loom::sync::Notify;
use loom::thread;

use super::c_client::{ANSWERS_WHAT_IS_LEFT, REFUSED, REFUSES_THE_SECOND};
use super::{
    Answers, DELETE, LOSES_WHAT_IS_LEFT, Seen, Sink, nothing_is_left, open, sending_again, terms,
};
use crate::error::Code;
use crate::raw::{Handle as _, Requests as _};
use crate::sync::every_interleaving;

#[test]
fn completion_deadline_and_close_give_one_answer_between_them() {
    for hosts in [ANSWERS_WHAT_IS_LEFT, LOSES_WHAT_IS_LEFT] {
        let seen = Seen::default();
        let all = seen.clone();
        every_interleaving(move || {
            let now = Instant::now();
            let handle = open(hosts);
            let answers = Answers::default();
            handle.sync(terms(Some(now)), "/", answers.sink());
            let expiring = {
                let handle = Arc::clone(&handle);
                thread::spawn(move || handle.expire(now))
            };
            handle.close();
            expiring.join().unwrap();
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
            thread::spawn(move || handle.sync(terms(None), "/", sink))
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
            thread::spawn(move || handle.sync(terms(Some(now)), REFUSED, sink))
        };
        let expiring = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        caller.join().unwrap();
        expiring.join().unwrap();
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
        handle.sync(terms(Some(now)), "/", sending_again(&handle, &first, &others));
        let expiring = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        expiring.join().unwrap();
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
        handle.multi(terms(Some(now)), &[DELETE], answers.sink());
        let expiring = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        expiring.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::OPERATION_TIMEOUT, Code::CLOSING]);
}

#[test]
fn what_the_c_client_writes_to_outlives_a_refusal_for_want_of_memory() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let handle = open(REFUSES_THE_SECOND);
        let (first, second) = (Answers::default(), Answers::default());
        handle.sync(terms(None), "/", first.sink());
        handle.multi(terms(None), &[DELETE], second.sink());
        handle.close();
        first.the_one();
        seen.add(second.the_one());
        nothing_is_left(&handle);
    });
    // Its completion may be quicker.
    all.are(&[Code::OK, Code::MARSHALLING_ERROR, Code::INVALID_STATE, Code::CLOSING]);
}

/// There is room for one on its way: the other waits, unless the first is through.
#[test]
fn what_waits_is_sent_by_an_answer_or_a_refusal_and_nothing_is_forgotten() {
    for first in ["/", REFUSED] {
        every_interleaving(move || {
            let handle = open(ANSWERS_WHAT_IS_LEFT);
            let answers = [(); 2].map(|()| (Arc::new(Notify::new()), Answers::default()));
            let submit = |path, (told, answers): (Arc<Notify>, Answers)| {
                let (handle, sink) = (Arc::clone(&handle), answers.sink::<()>());
                let sink: Sink<()> = Box::new(move |reply| {
                    sink(reply);
                    told.notify();
                });
                move || handle.sync(terms(None), path, sink)
            };
            let other = thread::spawn(submit(first, answers[0].clone()));
            submit("/", answers[1].clone())();
            other.join().unwrap();
            // One that nobody sends would be waited for in vain.
            for (told, answers) in &answers {
                while answers.are_none() {
                    told.wait();
                }
            }
            handle.close();
            assert_eq!(answers[1].1.the_one(), Code::OK);
            nothing_is_left(&handle);
        });
    }
}

#[test]
fn what_waits_is_answered_once_by_its_deadline_or_a_close() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let now = Instant::now();
        let handle = open(LOSES_WHAT_IS_LEFT);
        let [first, second] = [(); 2].map(|()| Answers::default());
        handle.sync(terms(None), "/", first.sink());
        handle.sync(terms(Some(now)), "/", second.sink());
        let expiring = {
            let handle = Arc::clone(&handle);
            thread::spawn(move || handle.expire(now))
        };
        handle.close();
        expiring.join().unwrap();
        first.the_one();
        seen.add(second.the_one());
        nothing_is_left(&handle);
    });
    let unsent = [Code::OPERATION_TIMEOUT, Code::INVALID_STATE, Code::CLOSING];
    all.are(&[&[Code::OK], &unsent[..]].concat());
}
