//! Keeps a thread of the program's from being cancelled inside zklock.
//!
//! A cancellation unwinds the stack of the thread from within a system call, and Rust frames can't be
//! unwound so: the process would end. So it is off inside every function, and what was asked for
//! meanwhile happens afterwards.

use std::ffi::c_int;

// The C library's. Of one meaning everywhere, but the crate `libc` has it for few systems.
#[cfg(not(target_os = "android"))]
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Android has no cancellation.
#[cfg(target_os = "android")]
unsafe fn pthread_setcancelstate(_state: c_int, _before: *mut c_int) -> c_int {
    0
}

const PTHREAD_CANCEL_DISABLE: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };

/// While it lives, the thread that has made it is not cancelled. It is dropped on that thread.
pub(super) struct Uncancelled {
    before: c_int,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Uncancelled {
    pub(super) fn begin() -> Uncancelled {
        let mut before = PTHREAD_CANCEL_DISABLE;
        // SAFETY: a valid state, and room for the one before; it fails for nothing else.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Uncancelled { before, _of_this_thread: std::marker::PhantomData }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut unused = 0;
        // SAFETY: the state that the call above gave. It cancels nothing by itself, except where a
        // program has asked for asynchronous cancellation, under which it may not call us.
        unsafe { pthread_setcancelstate(self.before, &raw mut unused) };
    }
}
