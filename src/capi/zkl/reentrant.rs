//! Re-entrant locks: a thread, or an owner that the program makes, acquires again what it holds.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, given, number, output, status};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{Acquires, zkl_lock};
use crate::lock::Owner;

/// The same lock as a re-entrant one: a thread that holds it acquires it again at once, without a request, by each of the
/// functions that acquire; zkl_lock_acquire_async and zkl_lock_try_async do so for the thread that calls them. Other
/// threads wait, those of this process too. Where threads are not who holds (in an event loop, say), see
/// zkl_lock_as_owner.
///
/// Each acquire gives a guard of its own, which is ended once, in any order and by any thread. All guards of a thread
/// have one token; each is notified of the loss; the last that is released or freed releases the lock, which others
/// return at once. While there are guards of a lock that was lost, an acquire gives ZKL_NOT_HELD: free them all first.
///
/// Only what is made of one re-entrant lock knows of its holders: one zkl_lock for all threads, not one for each. A lock
/// that is re-entrant already gives another handle on it. Strategy, label, ACL and sharing are those of `lock`, which
/// stays as it is and contends beside it.
///
/// Any thread; does not block. On success `*reentrant` is the program's: free it with zkl_lock_free.
///
/// ZOK; ZBADARGUMENTS for a NULL.
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
            Acquires::Anew => lock.at_present().lock.reentrant(),
            Acquires::ForThread(owners) | Acquires::ForOwner(owners, _) => owners.clone(),
        };
        let made = lock.acquired(Acquires::ForThread(owners));
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// A re-entrant lock as one more owner has it, who is no thread: a request, a task, a connection. Whoever acquires by
/// `*owner` acquires for that owner, from any thread. Owners exclude each other, and threads that acquire by
/// `reentrant`. Guards of it stay when it is freed.
///
/// Any thread; does not block. On success `*owner` is the program's: free it with zkl_lock_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, or a lock that is not re-entrant.
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
            Acquires::ForThread(owners) | Acquires::ForOwner(owners, _) => owners.clone(),
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

/// How many guards the owner of this one has of the lock, and acquires that are about to give one: 1 of a lock that is
/// not re-entrant, 0 of a guard that is given up.
///
/// Any thread. ZBADARGUMENTS for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_holds(guard: Option<&zkl_guard>) -> c_int {
    const NAME: &str = "zkl_guard_holds";
    let holds = || Ok(given(NAME, "guard", guard)?.held(NAME).map_or(0, |held| held.holds()));
    let number_of = |holds: usize| c_int::try_from(holds).unwrap_or(c_int::MAX);
    number(codes::ZKL_PANIC, || holds().map(number_of), |code| code)
}
