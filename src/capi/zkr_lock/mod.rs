//! The C recipe's lock, for programs that were written against `zoo_lock.h`.
//!
//! `layout.rs` is the program's struct, `recipe.rs` what stands behind it, `state.rs` what that is at
//! the moment, `report.rs` how it hears of the end of an acquire.

mod layout;
mod recipe;
mod report;
mod state;

use std::ffi::{c_char, c_int, c_void};

use zookeeper_sys as sys;

use self::layout::{Completion, Place, checked, zkr_lock_mutex};
use self::recipe::{Order, not_locked};
use super::boundary::{self, Failure};
use super::{acl, zkr_clients};
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
        let filled = zkr_lock_mutex::new(zh, path, acl, completion, cbdata);
        // SAFETY: not null, and the caller gives room for a struct.
        unsafe { mutex.write(filled) };
        Ok(())
    })
}

/// Takes a place in the queue, and returns when the place is known.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_lock_lock(mutex: *mut zkr_lock_mutex) -> c_int {
    const NAME: &str = "zkr_lock_lock";
    boundary::status(|| {
        // SAFETY: the header's contract.
        let mutex = unsafe { checked(NAME, mutex) }?;
        // SAFETY: the program keeps the path while the mutex is in use.
        let path = unsafe { boundary::text(NAME, "path", mutex.path()) }?.to_owned();
        // SAFETY: the program keeps the ACL while the mutex is in use.
        let acl = match unsafe { mutex.acl().as_ref() } {
            // SAFETY: as above, for what it points to.
            Some(acl) => unsafe { acl::copy(NAME, acl) }?,
            None => Acl::open(),
        };
        // SAFETY: the program's handle is live until it closes it, and the header says how.
        let (client, line) = unsafe { zkr_clients::client_and_line_for(NAME, mutex.zh()) }?;
        let (at, program) = (Place::of(mutex), mutex.program());
        mutex.state_for_lock().lock(mutex, Order { client, path, acl, line, at, program })
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
        match mutex.state() {
            Some(state) => state.unlock(mutex, mutex.program()),
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
        let Ok(mutex) = (unsafe { checked("zkr_lock_setcallback", mutex) }) else { return };
        mutex.set_completion(completion);
        if let Some(state) = mutex.state() {
            state.set_completion(completion);
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
        unsafe { checked("zkr_lock_getcallback", mutex) }.ok()?.program().completion
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
        let mutex = unsafe { checked("zkr_lock_destroy", mutex) }?;
        let state = mutex.forget();
        if let Some(state) = state {
            state.end();
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
        let mutex = unsafe { checked("zkr_lock_getpath", mutex) };
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
        mutex.is_ok_and(|mutex| mutex.state().is_some_and(|state| state.is_owner(mutex))).into()
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
        let Ok(mutex) = (unsafe { checked("zkr_lock_getid", mutex) }) else {
            return std::ptr::null_mut();
        };
        if let Some(state) = mutex.state() {
            state.is_owner(mutex);
        }
        mutex.ownerid()
    })
}
