//! Notices a `fork`.

use std::ffi::c_int;
use std::sync::Once;

use crate::process::Process;

type Handler = Option<unsafe extern "C" fn()>;

// The C library's; the crate `libc` has it for some systems only.
unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

unsafe extern "C" fn child() {
    Process::has_forked();
}

/// Has every child from now on know that it is one. Called before anything is made that a child
/// could take for its own.
pub(crate) fn watch_for_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only counts, which is allowed in a child; nothing unloads its code.
        let rc = unsafe { pthread_atfork(None, None, Some(child)) };
        if rc != 0 {
            crate::logging::log!(ERROR, rc, "no memory to notice forks with");
        }
    });
}
