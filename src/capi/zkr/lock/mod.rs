//! The C recipe's lock, for programs that were written against `zoo_lock.h`.
//!
//! From the bottom up:
//! - `program.rs`: the program's completion.
//! - `layout.rs`: the program's struct.
//! - `state.rs`: the state of a mutex.
//! - `recipe.rs`: keeps that state.
//! - `registry.rs`: finds it for a struct.
//! - `turn.rs`: calls the completion.
//! - `refusal.rs`: keeps the reason why there is no place in the queue.
//! - `report.rs`: reports the end of an acquire.
//! - `acquire.rs`: takes a place in the queue.
//! - `release.rs`: gives it back.

mod acquire;
mod layout;
mod program;
mod recipe;
mod refusal;
pub(in crate::capi) mod registry;
mod release;
mod report;
mod state;
mod turn;

use std::ffi::{c_char, c_int, c_void};

use zookeeper_sys as sys;

use self::acquire::Order;
use self::layout::{checked, initialised, zkr_lock_mutex};
use self::program::Completion;
use self::release::not_locked;
use super::clients;
use crate::capi::acl;
use crate::capi::boundary::{self, Failure};
use crate::capi::codes::ZKL_PANIC;
use crate::raw::watch_for_forks;
use crate::znode::Acl;

/// As `zkr_lock_init_cb`, without a completion.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_init(
    mutex: *mut zkr_lock_mutex,
    zh: *mut sys::zhandle_t,
    path: *mut c_char,
    acl: *mut sys::ACL_vector,
) -> c_int {
    // SAFETY: the caller's promises are the same.
    unsafe { zkr_lock_init_cb(mutex, zh, path, acl, None, std::ptr::null_mut()) }
}

/// Fills a struct. Local: the handle is not touched before the first lock.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_init_cb(
    mutex: *mut zkr_lock_mutex,
    zh: *mut sys::zhandle_t,
    path: *mut c_char,
    acl: *mut sys::ACL_vector,
    completion: Completion,
    cbdata: *mut c_void,
) -> c_int {
    boundary::status(|| {
        let missing = |name: &str| Err(Failure::bad_argument("zkr_lock_init", name));
        if mutex.is_null() {
            return missing("mutex is NULL");
        }
        if zh.is_null() {
            return missing("zh is NULL");
        }
        if path.is_null() {
            return missing("path is NULL");
        }
        watch_for_forks();
        let filled = zkr_lock_mutex::new(zh, path, acl, completion, cbdata);
        // SAFETY: not null, and the caller gives room for a struct.
        unsafe { mutex.write(filled) };
        Ok(())
    })
}

/// Takes a place in the queue, and returns when the place is known. Always 0: there are programs that
/// take any other value for ownership.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_lock(mutex: *mut zkr_lock_mutex) -> c_int {
    // SAFETY: the caller's promises are the same.
    unsafe { lock("zkr_lock_lock", mutex) };
    0
}

/// As `zkr_lock_lock`, and returns whether the mutex owns the lock then.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_lock_owner(mutex: *mut zkr_lock_mutex) -> c_int {
    // SAFETY: the caller's promises are the same.
    unsafe { lock("zkr_lock_lock_owner", mutex) }.into()
}

/// Takes a place in the queue; whether the mutex owns the lock then.
///
/// # Safety
/// As for `zkr_lock_lock`.
unsafe fn lock(function: &'static str, mutex: *mut zkr_lock_mutex) -> bool {
    let mut found = None;
    let code = boundary::status(|| {
        // SAFETY: the header's contract.
        let mutex = unsafe { checked(function, mutex) }?;
        let (recipe, _) = found.insert((registry::find_or_make(mutex), mutex.program()));
        // SAFETY: the struct was checked, and the rest is the header's contract.
        let order = recipe.check_handle().and_then(|()| unsafe { order(function, mutex) });
        recipe.lock(mutex, order)
    });
    // The completion may have freed the struct by now.
    boundary::value(false, || {
        let Some((recipe, program)) = found else { return false };
        if code == ZKL_PANIC {
            recipe.refuse_after_panic(program);
        }
        recipe.owns()
    })
}

/// The request that a program makes with its struct.
///
/// # Safety
/// As for `zkr_lock_lock`.
unsafe fn order(function: &'static str, mutex: &zkr_lock_mutex) -> Result<Order, Failure> {
    // SAFETY: the program keeps the path while the mutex is in use.
    let path = unsafe { boundary::text(function, "path", mutex.path()) }?.to_owned();
    // SAFETY: the program keeps the ACL while the mutex is in use.
    let acl = match unsafe { mutex.acl().as_ref() } {
        // SAFETY: as above, for what it points to.
        Some(acl) => unsafe { acl::copy(function, acl) }?,
        None => Acl::open(),
    };
    // SAFETY: the program's handle is live until it closes it, and the header says how.
    let (client, line) = unsafe { clients::client_and_line_for(function, mutex.zh()) }?;
    Ok(Order { client, path, acl, line })
}

/// Why the mutex has no place in the queue.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_error(mutex: *mut zkr_lock_mutex) -> c_int {
    boundary::status(|| {
        // SAFETY: the header's contract.
        let mutex = unsafe { checked("zkr_lock_error", mutex) }?;
        registry::find(mutex).and_then(|recipe| recipe.failure()).map_or(Ok(()), Err)
    })
}

/// Gives the lock, or the place in the queue, back.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_unlock(mutex: *mut zkr_lock_mutex) -> c_int {
    boundary::status(|| {
        // SAFETY: the header's contract.
        let mutex = unsafe { checked("zkr_lock_unlock", mutex) }?;
        match registry::find(mutex) {
            Some(recipe) => recipe.unlock(mutex, mutex.program()),
            None => Err(not_locked()),
        }
    })
}

/// Replaces the completion.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_setcallback(mutex: *mut zkr_lock_mutex, completion: Completion) {
    boundary::value((), || {
        // SAFETY: the header's contract.
        let Ok(mutex) = (unsafe { initialised("zkr_lock_setcallback", mutex) }) else { return };
        mutex.set_completion(completion);
        if let Some(recipe) = registry::find(mutex) {
            recipe.set_completion(completion);
        }
    });
}

/// The completion.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_getcallback(mutex: *mut zkr_lock_mutex) -> Completion {
    boundary::value(None, || {
        // SAFETY: the header's contract.
        unsafe { initialised("zkr_lock_getcallback", mutex) }.ok()?.program().completion
    })
}

/// Frees what the mutex has, the lock or the place in its queue included.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_destroy(mutex: *mut zkr_lock_mutex) -> c_int {
    boundary::status(|| {
        // SAFETY: the header's contract.
        let mutex = unsafe { initialised("zkr_lock_destroy", mutex) }?;
        // First, so that a completion that runs on another thread cannot lock it again.
        mutex.clear();
        if let Some(recipe) = registry::remove(mutex) {
            recipe.end();
            // What was written to it until then.
            mutex.show(None, None, false);
        }
        Ok(())
    })
}

/// The path that was given to init.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_getpath(mutex: *mut zkr_lock_mutex) -> *mut c_char {
    boundary::value(std::ptr::null_mut(), || {
        // SAFETY: the header's contract.
        let mutex = unsafe { initialised("zkr_lock_getpath", mutex) };
        mutex.map_or(std::ptr::null_mut(), |mutex| mutex.path())
    })
}

/// Whether the mutex owns the lock now; brings the fields up to date.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_isowner(mutex: *mut zkr_lock_mutex) -> c_int {
    boundary::value(0, || {
        // SAFETY: the header's contract.
        let mutex = unsafe { checked("zkr_lock_isowner", mutex) };
        mutex
            .is_ok_and(|mutex| registry::find(mutex).is_some_and(|recipe| recipe.is_owner(mutex)))
            .into()
    })
}

/// The name of the claim that is first in the queue: `ownerid`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_getid(mutex: *mut zkr_lock_mutex) -> *mut c_char {
    boundary::value(std::ptr::null_mut(), || {
        // SAFETY: the header's contract.
        let Ok(mutex) = (unsafe { initialised("zkr_lock_getid", mutex) }) else {
            return std::ptr::null_mut();
        };
        if let Some(recipe) = registry::find(mutex) {
            recipe.is_owner(mutex);
        }
        mutex.ownerid()
    })
}
