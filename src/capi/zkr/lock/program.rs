//! The program's completion: when it is called, and with what.

use std::ffi::{c_int, c_void};

/// Has the lock.
pub(super) const ACQUIRED: c_int = 0;
/// Has it no more.
pub(super) const RELEASED: c_int = 1;

/// The program's callback: called with [`ACQUIRED`] when it gets the lock, and with [`RELEASED`] when it has lost it.
pub(super) type Completion = Option<unsafe extern "C" fn(rc: c_int, cbdata: *mut c_void)>;

/// Whom to tell.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) completion: Completion,
    pub(super) cbdata: *mut c_void,
}

impl Default for Program {
    fn default() -> Program {
        Program { completion: None, cbdata: std::ptr::null_mut() }
    }
}

// SAFETY: zklock never looks behind the pointer; that completions come on another thread is the
// recipe's contract.
unsafe impl Send for Program {}

impl Program {
    pub(super) fn tell(self, rc: c_int) {
        if let Some(completion) = self.completion {
            // SAFETY: the program gave the function for this pointer.
            unsafe { completion(rc, self.cbdata) };
        }
    }
}
