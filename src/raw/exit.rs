//! Has something run when the process ends by `exit`, or by the return of `main`.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::OnceLock;

// The C library's.
unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

static WORK: OnceLock<fn()> = OnceLock::new();

extern "C" fn run() {
    if let Some(work) = WORK.get() {
        // There is nobody left to notify of a panic.
        let _ = catch_unwind(work);
    }
}

/// Runs `work` at the end, once, however often this is called: while other threads go on as before.
pub(crate) fn at_exit(work: fn()) {
    WORK.get_or_init(|| {
        // SAFETY: the function takes nothing and does not unwind; nothing unloads its code.
        let rc = unsafe { atexit(run) };
        if rc != 0 {
            crate::logging::log!(ERROR, "no memory to be run at the end of the process");
        }
        work
    });
}
