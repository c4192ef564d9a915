//! Handles that the program owns, uses and closes.

use std::sync::Arc;

use loom::thread;

use super::{Answers, DELETE, Seen, nothing_is_left, sending_again, terms};
use crate::error::Code;
use crate::raw::{Adopted, Handle as _, Requests as _, Zhandle, sys};
use crate::sync::every_interleaving;

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

    fn adopt(self) -> Arc<Zhandle> {
        // SAFETY: the models close it after that, and never inside a callback.
        let adopted = unsafe { Adopted::new(self.0) }.unwrap();
        Arc::new(Zhandle::adopt(adopted, |_| {}).unwrap())
    }

    fn close(self) {
        // SAFETY: the models close it once.
        unsafe { sys::zookeeper_close(self.0) };
    }
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
            thread::spawn(move || handle.multi(terms(None), &[DELETE], sink))
        };
        handle.close();
        // The program's own thread, which goes on with its handle and knows nothing of the adoption.
        lent.close();
        caller.join().unwrap();
        seen.add(answers.the_one());
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::INVALID_STATE, Code::CLOSING]);
}

#[test]
fn a_handle_that_the_program_closes_is_not_touched_any_more() {
    // Also if it had no memory for one of the requests that open it.
    for hosts in [c"answers-what-is-left", c"loses-what-is-left", c"refuses-the-second"] {
        let seen = Seen::default();
        let all = seen.clone();
        every_interleaving(move || {
            let lent = Lent::new(hosts);
            let handle = lent.adopt();
            let answers = Answers::default();
            let caller = {
                let (handle, sink) = (Arc::clone(&handle), answers.sink());
                thread::spawn(move || {
                    handle.sync(terms(None), "/", sink);
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
fn who_is_answered_when_a_loan_ends_may_send_again_at_once() {
    let seen = Seen::default();
    let all = seen.clone();
    every_interleaving(move || {
        let lent = Lent::new(c"answers-what-is-left");
        let handle = lent.adopt();
        let (first, others) = (Answers::default(), [(); 2].map(|()| Answers::default()));
        handle.sync(terms(None), "/", sending_again(&handle, &first, &others));
        handle.close();
        lent.close();
        seen.add(first.the_one());
        for other in &others {
            other.the_one();
        }
        nothing_is_left(&handle);
    });
    all.are(&[Code::OK, Code::INVALID_STATE, Code::CLOSING]);
}

#[test]
fn a_handle_that_was_given_back_is_not_opened_by_a_late_answer() {
    every_interleaving(|| {
        let lent = Lent::new(c"answers-what-is-left");
        let handle = lent.adopt();
        handle.close();
        let answers = Answers::default();
        handle.sync(terms(None), "/", answers.sink());
        assert_eq!(answers.the_one(), Code::INVALID_STATE);
        lent.close();
        nothing_is_left(&handle);
    });
}
