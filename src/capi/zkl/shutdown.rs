//! The end of what zklock keeps for the whole process.

use std::ffi::c_int;
use std::time::Duration;

use crate::capi::boundary::{Failure, may_block, status, unfreed};
use crate::capi::codes;
use crate::capi::zkr::clients;
use crate::capi::zkr::lock::registry;
use crate::error::Code;
use crate::raw::shrink_tables;
use crate::runtime::{machine, now};
use crate::{logging, threads};

/// As long as an operation takes by default, and so the end of a session.
const LIMIT: Duration = Duration::from_secs(15);
/// How often threads are asked to end: one that ends may have started another.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the threads of zklock, and frees what it keeps for the process. Call this before the end of the program if its
/// memory is checked: see zklock.supp, which is installed with the library.
///
/// Free all objects first: clients, locks, guards, attempts, recipes. The call waits up to 15 seconds for background
/// work: ends of sessions, releases, callbacks. No other thread may be inside a function of zklock meanwhile. A second
/// call does nothing. The program may make clients again later; then call this again at the end.
///
/// Any thread except callbacks; blocks.
///
/// ZOK: no thread of zklock is left. ZINVALIDSTATE: an object is not freed, or a program of zoo_lock.h or zoo_queue.h
/// has not closed its handle. ZOPERATIONTIMEOUT: a thread still works; zkl_last_error names it. ZKL_WOULD_DEADLOCK:
/// inside a callback. After an error everything works as before.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_shutdown() -> c_int {
    const NAME: &str = "zkl_shutdown";
    status(|| {
        may_block(NAME)?;
        if threads::is_one() {
            let why = format!("{NAME}: called inside a callback, whose thread it waits for");
            return Err(Failure::new(codes::ZKL_WOULD_DEADLOCK, why));
        }
        if unfreed() + clients::count() > 0 {
            let why = format!("{NAME}: a client, or what was made of one, is not freed");
            return Err(Failure::new(Code::INVALID_STATE.as_raw(), why));
        }
        let deadline = now() + LIMIT;
        loop {
            machine::end_when_idle();
            logging::end_when_idle();
            match threads::join_all(deadline.min(now() + LOOK)) {
                Ok(()) => break,
                Err(_) if now() < deadline => {}
                Err(thread) => {
                    let why = format!("{NAME}: the thread {thread} still works");
                    return Err(Failure::new(Code::OPERATION_TIMEOUT.as_raw(), why));
                }
            }
        }
        shrink_tables();
        registry::shrink();
        Ok(())
    })
}
