//! The recipe's struct, byte for byte.
//!
//! Programs copy it, so it holds no pointer of ours: a number in the unused tail of its mutex names the
//! state, and a copy names the same.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use zookeeper_sys as sys;

use super::program::{Completion, Program};
use crate::capi::boundary::Failure;
use crate::capi::zkr::pmutex::Pmutex;
use crate::process::inherited;

/// `zkr_lock_mutex_t`. Programs read and write its fields while we do.
#[repr(C)]
#[allow(non_camel_case_types, non_snake_case)]
pub struct zkr_lock_mutex {
    zh: *mut sys::zhandle_t,
    path: Cell<*mut c_char>,
    acl: Cell<*mut sys::ACL_vector>,
    id: AtomicPtr<c_char>,
    cbdata: *mut c_void,
    completion: Cell<Completion>,
    pmutex: Pmutex,
    isOwner: AtomicI32,
    ownerid: AtomicPtr<c_char>,
}

const PMUTEX: usize = size_of::<Pmutex>();

#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
const _: () = {
    assert!(size_of::<zkr_lock_mutex>() == 64 + PMUTEX);
    assert!(std::mem::offset_of!(zkr_lock_mutex, acl) == 16);
    assert!(std::mem::offset_of!(zkr_lock_mutex, id) == 24);
    assert!(std::mem::offset_of!(zkr_lock_mutex, completion) == 40);
    assert!(std::mem::offset_of!(zkr_lock_mutex, pmutex) == 48);
    assert!(std::mem::offset_of!(zkr_lock_mutex, isOwner) == 48 + PMUTEX);
    assert!(std::mem::offset_of!(zkr_lock_mutex, ownerid) == 56 + PMUTEX);
};

impl zkr_lock_mutex {
    pub(super) fn new(
        zh: *mut sys::zhandle_t,
        path: *mut c_char,
        acl: *mut sys::ACL_vector,
        completion: Completion,
        cbdata: *mut c_void,
    ) -> zkr_lock_mutex {
        zkr_lock_mutex {
            zh,
            path: Cell::new(path),
            acl: Cell::new(acl),
            id: AtomicPtr::default(),
            cbdata,
            completion: Cell::new(completion),
            pmutex: Pmutex::new(),
            isOwner: AtomicI32::new(0),
            ownerid: AtomicPtr::default(),
        }
    }

    pub(super) fn zh(&self) -> *mut sys::zhandle_t {
        self.zh
    }

    pub(super) fn path(&self) -> *mut c_char {
        self.path.get()
    }

    pub(super) fn acl(&self) -> *mut sys::ACL_vector {
        self.acl.get()
    }

    pub(super) fn ownerid(&self) -> *mut c_char {
        self.ownerid.load(Ordering::Acquire)
    }

    pub(super) fn set_completion(&self, completion: Completion) {
        self.completion.set(completion);
    }

    /// Shows the program where it stands. The strings stay until the state's next attempt but one.
    pub(super) fn show(&self, id: Option<&CStr>, owner: Option<&CStr>, owns: bool) {
        let pointer = |name: Option<&CStr>| name.map_or(std::ptr::null(), CStr::as_ptr).cast_mut();
        self.id.store(pointer(id), Ordering::Release);
        self.ownerid.store(pointer(owner), Ordering::Release);
        self.isOwner.store(c_int::from(owns), Ordering::Release);
    }

    /// The program's callback, and what it gets.
    pub(super) fn program(&self) -> Program {
        Program { completion: self.completion.get(), cbdata: self.cbdata }
    }

    /// The number of its state; copies have the same.
    pub(super) fn number(&self) -> u64 {
        self.pmutex.number()
    }

    /// Gives it the number of its state, and returns that, with the process in it.
    pub(super) fn set_number(&self, number: u64) -> u64 {
        self.pmutex.set_number(number)
    }

    /// Empties the struct: it is not initialised any more.
    pub(super) fn clear(&self) {
        self.show(None, None, false);
        self.path.set(std::ptr::null_mut());
        self.acl.set(std::ptr::null_mut());
        self.completion.set(None);
        self.pmutex.unmark();
    }
}

/// A struct that is written to from other threads while it waits for the lock.
#[derive(Clone, Copy)]
pub(super) struct Place(*const zkr_lock_mutex);

// SAFETY: what is written are atomics; that the struct stays in place meanwhile is the recipe's
// contract, which the program keeps.
unsafe impl Send for Place {}

impl Place {
    pub(super) fn of(mutex: &zkr_lock_mutex) -> Place {
        Place(mutex)
    }

    /// The struct, while it waits.
    pub(super) fn get(&self) -> &zkr_lock_mutex {
        // SAFETY: the program keeps a struct in place while it waits for the lock, and a place is
        // forgotten when that ends.
        unsafe { &*self.0 }
    }
}

/// The struct, if it has been initialised in this process.
///
/// # Safety
/// As for [`initialised`].
pub(super) unsafe fn checked<'a>(
    function: &'static str,
    mutex: *mut zkr_lock_mutex,
) -> Result<&'a zkr_lock_mutex, Failure> {
    // SAFETY: the caller's promises are the same.
    let mutex = unsafe { initialised(function, mutex) }?;
    if mutex.pmutex.is_inherited() { Err(inherited(function, "").into()) } else { Ok(mutex) }
}

/// The struct, if it has been initialised, be it before a fork: then there is nothing behind it here.
///
/// # Safety
/// `mutex` is null or points to a `zkr_lock_mutex_t` that lives during the call.
pub(super) unsafe fn initialised<'a>(
    function: &'static str,
    mutex: *mut zkr_lock_mutex,
) -> Result<&'a zkr_lock_mutex, Failure> {
    // SAFETY: the caller keeps it alive; what is changed in it are cells and atomics.
    let Some(mutex) = (unsafe { mutex.as_ref() }) else {
        return Err(Failure::bad_argument(function, "mutex is NULL"));
    };
    if !mutex.pmutex.is_marked() {
        let why = "mutex was not initialised with zkr_lock_init, or was destroyed";
        return Err(Failure::bad_argument(function, why));
    }
    Ok(mutex)
}
