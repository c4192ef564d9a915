//! The C recipe's lock, for programs that were written against `zoo_lock.h`.
//!
//! The struct is the program's, byte for byte as the recipe has it, and programs copy it. So it holds
//! no pointer of ours: a number in the unused tail of its mutex names the state behind it
//! (`zkr_mutex.rs`), and a copy names the same.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use zookeeper_sys as sys;

use super::boundary::{self, Failure};
use super::zkr_mutex::{Order, Program, Recipe};
use super::{acl, zkr_clients};
use crate::error::Code;
use crate::znode::Acl;

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

const PMUTEX: usize = size_of::<libc::pthread_mutex_t>();

/// The recipe's `pthread_mutex_t`: a valid one, as long as nobody makes it a robust one, whose tail
/// is of no use to the C library.
#[repr(C)]
struct Pmutex {
    _align: [libc::pthread_mutex_t; 0],
    head: [u8; PMUTEX - 16],
    magic: Cell<[u8; 8]>,
    number: Cell<[u8; 8]>,
}

/// Tells a struct that was initialised from other memory.
const MAGIC: [u8; 8] = *b"zkl-lock";

#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
const _: () = {
    assert!(size_of::<Pmutex>() == PMUTEX && align_of::<Pmutex>() == 8);
    assert!(size_of::<zkr_lock_mutex>() == 64 + PMUTEX);
    assert!(std::mem::offset_of!(zkr_lock_mutex, acl) == 16);
    assert!(std::mem::offset_of!(zkr_lock_mutex, id) == 24);
    assert!(std::mem::offset_of!(zkr_lock_mutex, completion) == 40);
    assert!(std::mem::offset_of!(zkr_lock_mutex, pmutex) == 48);
    assert!(std::mem::offset_of!(zkr_lock_mutex, isOwner) == 48 + PMUTEX);
    assert!(std::mem::offset_of!(zkr_lock_mutex, ownerid) == 56 + PMUTEX);
};

/// The states behind the structs, by number.
static STATES: LazyLock<Mutex<States>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct States {
    latest: u64,
    by_number: HashMap<u64, Arc<Recipe>>,
}

impl zkr_lock_mutex {
    /// Shows the program where it stands. The strings stay until the state's next attempt but one.
    pub(super) fn show(&self, id: Option<&CStr>, owner: Option<&CStr>, owns: bool) {
        let pointer = |name: Option<&CStr>| name.map_or(std::ptr::null(), CStr::as_ptr).cast_mut();
        self.id.store(pointer(id), Ordering::Release);
        self.ownerid.store(pointer(owner), Ordering::Release);
        self.isOwner.store(c_int::from(owns), Ordering::Release);
    }

    /// The program's callback, and what it gets.
    fn program(&self) -> Program {
        Program { completion: self.completion.get(), cbdata: self.cbdata }
    }

    fn number(&self) -> u64 {
        u64::from_ne_bytes(self.pmutex.number.get())
    }

    /// The state behind the struct, if it was ever locked.
    fn state(&self) -> Option<Arc<Recipe>> {
        let states = STATES.lock();
        states.by_number.get(&self.number()).cloned()
    }

    /// The state behind the struct, made if there is none.
    fn state_for_lock(&self) -> Arc<Recipe> {
        // The number is written under this lock only.
        let mut states = STATES.lock();
        if let Some(state) = states.by_number.get(&self.number()) {
            return Arc::clone(state);
        }
        states.latest += 1;
        let number = states.latest;
        self.pmutex.number.set(number.to_ne_bytes());
        Arc::clone(states.by_number.entry(number).or_default())
    }
}

/// A struct that is written to from other threads while it waits for the lock.
#[derive(Clone, Copy)]
pub(super) struct Place(*const zkr_lock_mutex);

// SAFETY: what is written are atomics; that the struct stays in place meanwhile is the recipe's
// contract, which the program keeps.
unsafe impl Send for Place {}

impl Place {
    /// The struct, while it waits.
    pub(super) fn get(&self) -> &zkr_lock_mutex {
        // SAFETY: the program keeps a struct in place while it waits for the lock, and a place is
        // forgotten when that ends.
        unsafe { &*self.0 }
    }
}

/// The struct, if it has been initialised.
///
/// # Safety
/// `mutex` is null or points to a `zkr_lock_mutex_t` that lives during the call.
unsafe fn checked<'a>(
    function: &'static str,
    mutex: *mut zkr_lock_mutex,
) -> Result<&'a zkr_lock_mutex, Failure> {
    // SAFETY: the caller keeps it alive; what is changed in it are cells and atomics.
    let Some(mutex) = (unsafe { mutex.as_ref() }) else {
        return Err(Failure::bad_argument(function, "mutex is NULL"));
    };
    if mutex.pmutex.magic.get() != MAGIC {
        let why = "mutex was not initialised with zkr_lock_init, or was destroyed";
        return Err(Failure::bad_argument(function, why));
    }
    Ok(mutex)
}

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
        let head = [0; PMUTEX - 16];
        let (magic, number) = (Cell::new(MAGIC), Cell::new([0; 8]));
        let filled = zkr_lock_mutex {
            zh,
            path: Cell::new(path),
            acl: Cell::new(acl),
            id: AtomicPtr::default(),
            cbdata,
            completion: Cell::new(completion),
            pmutex: Pmutex { _align: [], head, magic, number },
            isOwner: AtomicI32::new(0),
            ownerid: AtomicPtr::default(),
        };
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
        let path = unsafe { boundary::text(NAME, "path", mutex.path.get()) }?.to_owned();
        // SAFETY: the program keeps the ACL while the mutex is in use.
        let acl = match unsafe { mutex.acl.get().as_ref() } {
            // SAFETY: as above, for what it points to.
            Some(acl) => unsafe { acl::copy(NAME, acl) }?,
            None => Acl::open(),
        };
        // SAFETY: the program's handle is live until it closes it, and the header says how.
        let client = unsafe { zkr_clients::client_for(NAME, mutex.zh) }?;
        let line = zkr_clients::line_for(NAME, mutex.zh)?;
        let (at, program) = (Place(mutex), mutex.program());
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

/// The recipe's code for it.
pub(super) fn not_locked() -> Failure {
    Failure::new(Code::SYSTEM_ERROR.as_raw(), "zkr_lock_unlock: the mutex is not locked".into())
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
        mutex.completion.set(completion);
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
        unsafe { checked("zkr_lock_getcallback", mutex) }.ok()?.completion.get()
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
        let state = STATES.lock().by_number.remove(&mutex.number());
        if let Some(state) = state {
            state.end();
        }
        mutex.show(None, None, false);
        mutex.path.set(std::ptr::null_mut());
        mutex.acl.set(std::ptr::null_mut());
        mutex.completion.set(None);
        mutex.pmutex.magic.set([0; 8]);
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
        mutex.map_or(std::ptr::null_mut(), |mutex| mutex.path.get())
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
        mutex.ownerid.load(Ordering::Acquire)
    })
}
