//! Re-entrant locks: a thread, or an owner that the program makes, acquires again what it holds.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, given, number, output, status};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{Acquires, zkl_lock};
use crate::lock::Owner;

/// The same lock, made re-entrant. A thread that holds it can acquire it again at once, without a request. Any acquire
/// function does that; zkl_lock_acquire_async and zkl_lock_try_async act for the calling thread. Other threads wait,
/// also those of this process. If threads are not the owners (in an event loop, for example), see zkl_lock_as_owner.
///
/// Each acquire gives its own guard. End each guard once, in any order and on any thread. All guards of a thread share
/// one token, and each reports the loss. The last one that is released or freed releases the lock; the others return at
/// once. If the lock is lost, an acquire gives ZKL_NOT_HELD until all of the thread's guards are freed.
///
/// Only handles made from one re-entrant lock know each other's holders: use one zkl_lock for all threads, not one for
/// each. A lock that is already re-entrant gives another handle on it. Strategy, label, ACL and sharing are those of
/// `lock`, which stays unchanged and contends with it.
///
/// Any thread; does not block. On success `*reentrant` is the program's: free it with zkl_lock_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_reentrant(
    lock: Option<&zkl_lock>,
    reentrant: Option<&mut MaybeUninit<*mut zkl_lock>>,
) -> c_int {
    const NAME: &str = "zkl_lock_reentrant";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let place = output(NAME, "reentrant", reentrant)?;
        let owners = match &lock.acquires {
            Acquires::Anew => Arc::default(),
            Acquires::ForThread(owners) | Acquires::ForOwner(owners, _) => Arc::clone(owners),
        };
        let made = lock.acquired(Acquires::ForThread(owners));
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// A re-entrant lock for one more owner that is not a thread: a request, a task, a connection. Acquires with `*owner`
/// act for that owner, on any thread. Owners exclude each other, and threads that acquire with `reentrant`. Guards stay
/// when `*owner` is freed.
///
/// Any thread; does not block. On success `*owner` is the program's: free it with zkl_lock_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, or the lock is not re-entrant.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_as_owner(
    reentrant: Option<&zkl_lock>,
    owner: Option<&mut MaybeUninit<*mut zkl_lock>>,
) -> c_int {
    const NAME: &str = "zkl_lock_as_owner";
    status(|| {
        let lock = given(NAME, "reentrant", reentrant)?;
        let place = output(NAME, "owner", owner)?;
        let owners = match &lock.acquires {
            Acquires::ForThread(owners) | Acquires::ForOwner(owners, _) => Arc::clone(owners),
            Acquires::Anew => {
                let why = "the lock is not re-entrant: make one by zkl_lock_reentrant";
                return Err(Failure::bad_argument(NAME, why));
            }
        };
        let made = lock.acquired(Acquires::ForOwner(owners, Owner::new()));
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// How many guards the owner of this one has of the lock, pending acquires included. 1 for a lock that is not
/// re-entrant.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_holds(guard: Option<&zkl_guard>) -> c_int {
    const NAME: &str = "zkl_guard_holds";
    let holds = || Ok(given(NAME, "guard", guard)?.held(NAME).map_or(0, |held| held.holds()));
    let number_of = |holds: usize| c_int::try_from(holds).unwrap_or(c_int::MAX);
    number(codes::ZKL_PANIC, || holds().map(number_of), |code| code)
}
