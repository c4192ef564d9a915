//! The recipe's struct, byte for byte, and the way from it to the state behind it.
//!
//! Programs copy it, so it holds no pointer of ours: a number in the unused tail of its mutex names the
//! state, and a copy names the same.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use parking_lot::Mutex;
use zookeeper_sys as sys;

use super::recipe::Recipe;
use super::state::Program;
use crate::capi::boundary::Failure;
use crate::capi::zkr::pmutex::Pmutex;
use crate::process::inherited;
use crate::sync::per_process;

/// What a program is told: `rc` is 0 when it has the lock, and 1 when it has it no more.
pub(super) type Completion = Option<unsafe extern "C" fn(rc: c_int, cbdata: *mut c_void)>;

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

per_process! {
    /// The states behind the structs, by number.
    static STATES: Mutex<States> = Mutex::default();
}

#[derive(Default)]
struct States {
    latest: u64,
    by_number: HashMap<u64, Arc<Recipe>>,
}

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

    fn number(&self) -> u64 {
        self.pmutex.number()
    }

    /// The state behind the struct, if it was ever locked.
    pub(super) fn state(&self) -> Option<Arc<Recipe>> {
        let states = STATES.lock();
        states.by_number.get(&self.number()).cloned()
    }

    /// The state behind the struct, made if there is none.
    pub(super) fn state_for_lock(&self) -> Arc<Recipe> {
        // The number is written under this lock only.
        let mut states = STATES.lock();
        if let Some(state) = states.by_number.get(&self.number()) {
            return Arc::clone(state);
        }
        states.latest += 1;
        let number = self.pmutex.set_number(states.latest);
        Arc::clone(states.by_number.entry(number).or_default())
    }
}

impl zkr_lock_mutex {
    /// Empties the struct, and gives the state that was behind it and its copies.
    pub(super) fn forget(&self) -> Option<Arc<Recipe>> {
        self.show(None, None, false);
        self.path.set(std::ptr::null_mut());
        self.acl.set(std::ptr::null_mut());
        self.completion.set(None);
        self.pmutex.unmark();
        STATES.lock().by_number.remove(&self.number())
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
