//! Answers Cyrus SASL's questions while the C client authenticates: the user, and the password.
//!
//! It asks with numbers that are looked up here, as everywhere on this floor. The answers live here until the handle
//! is closed.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::OnceLock;

use parking_lot::Mutex;
use parking_lot::lock_api::RawMutex as _;

use super::sys::secure as sys;
use crate::logging::log;
use crate::panics::catch_panic;
use crate::sasl::Sasl;
use crate::secret::Secret;
use crate::sync::per_process;

/// The credentials of one handle.
struct Entry {
    callbacks: [sys::sasl_callback_t; 5],
    user: Option<CString>,
    realm: Option<CString>,
    password: Option<Secret>,
    /// The last that could be read.
    known: Vec<u8>,
    /// The password as it was last asked for, in SASL's form: its length and then its bytes.
    asked: Vec<c_ulong>,
}

// SAFETY: the pointers in its callbacks are functions, and contexts that are numbers.
unsafe impl Send for Entry {}

per_process! {
    /// By the handle's number; boxed, because SASL keeps where the callbacks are. All handles wait for it, so nothing is
    /// read from a file meanwhile.
    static ENTRIES: Mutex<HashMap<usize, Box<Entry>>> = Mutex::default();
}

/// The texts that the C client copies when a handle is opened.
pub(super) struct Texts {
    service: CString,
    host: Option<CString>,
    mechanism: CString,
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| "a NUL in a setting of SASL".to_owned())
}

/// Whether a client can authenticate so on this machine.
///
/// # Errors
/// The reason why not.
pub(crate) fn check(sasl: &Sasl) -> Result<(), String> {
    initialised()?;
    for text in [Some(&sasl.mechanism), Some(&sasl.service), sasl.host.as_ref(), sasl.user.as_ref()]
    {
        text.map_or(Ok(()), |text| c_string(text).map(drop))?;
    }
    sasl.realm.as_ref().map_or(Ok(()), |realm| c_string(realm).map(drop))?;
    sasl.password.as_ref().map_or(Ok(()), |password| password.read().map(drop))?;
    let known = mechanisms();
    if known.iter().any(|known| known.eq_ignore_ascii_case(&sasl.mechanism)) {
        return Ok(());
    }
    Err(format!(
        "Cyrus SASL has no mechanism {} on this machine, only {}; Debian: apt-get install libsasl2-modules, or \
         libsasl2-modules-gssapi-mit for GSSAPI",
        sasl.mechanism,
        known.join(", ")
    ))
}

/// Sets the library up, once in a process.
fn initialised() -> Result<(), String> {
    static DONE: OnceLock<c_int> = OnceLock::new();
    let rc = *DONE.get_or_init(|| {
        // Handles share what the library keeps of mechanisms, each on a thread of its own.
        //
        // SAFETY: the four work together on mutexes that they alone make.
        unsafe { sys::sasl_set_mutex(Some(new_mutex), Some(lock), Some(unlock), Some(free_mutex)) };
        // SAFETY: it takes null for no callbacks.
        unsafe { sys::sasl_client_init(ptr::null()) }
    });
    if rc == sys::SASL_OK {
        return Ok(());
    }
    Err(format!("Cyrus SASL can't be used here: its sasl_client_init gives {rc}"))
}

fn mechanisms() -> Vec<String> {
    // SAFETY: the library is set up. It gives an array that lives as long, or null.
    let mut next = unsafe { sys::sasl_global_listmech() };
    let mut found = Vec::new();
    while !next.is_null() {
        // SAFETY: not past the null that ends the array.
        let name = unsafe { next.read() };
        if name.is_null() {
            break;
        }
        // SAFETY: a name of a mechanism is a C string.
        found.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
        // SAFETY: as above, there is another one or the null.
        next = unsafe { next.add(1) };
    }
    found
}

unsafe extern "C" fn new_mutex() -> *mut c_void {
    Box::into_raw(Box::new(parking_lot::RawMutex::INIT)).cast()
}

unsafe extern "C" fn lock(mutex: *mut c_void) -> c_int {
    // SAFETY: SASL passes what `new_mutex` gave, and has not freed it.
    let mutex = unsafe { mutex.cast::<parking_lot::RawMutex>().as_ref() };
    mutex.map_or(sys::SASL_FAIL, |mutex| {
        mutex.lock();
        sys::SASL_OK
    })
}

unsafe extern "C" fn unlock(mutex: *mut c_void) -> c_int {
    // SAFETY: as in `lock`.
    let Some(mutex) = (unsafe { mutex.cast::<parking_lot::RawMutex>().as_ref() }) else {
        return sys::SASL_FAIL;
    };
    // SAFETY: SASL unlocks what it has locked, on the same thread.
    unsafe { mutex.unlock() };
    sys::SASL_OK
}

unsafe extern "C" fn free_mutex(mutex: *mut c_void) {
    if !mutex.is_null() {
        // SAFETY: from `new_mutex`, and freed once.
        drop(unsafe { Box::from_raw(mutex.cast::<parking_lot::RawMutex>()) });
    }
}

type Proc = unsafe extern "C" fn() -> c_int;

/// A callback, by the number of its handle.
fn callback(id: c_ulong, proc_: Option<Proc>, handle: usize) -> sys::sasl_callback_t {
    sys::sasl_callback_t { id, proc_, context: ptr::without_provenance_mut(handle) }
}

/// Keeps what the handle with this number authenticates with, until [`forget`].
pub(super) fn keep(handle: usize, sasl: &Sasl) -> Result<Texts, String> {
    let text = |text: &Option<String>| text.as_deref().map(c_string).transpose();
    // SAFETY: the library calls each with the arguments that belong to its id.
    let name = unsafe { std::mem::transmute::<Name, Proc>(answer_name) };
    // SAFETY: as above.
    let realm = unsafe { std::mem::transmute::<Realm, Proc>(answer_realm) };
    // SAFETY: as above.
    let password = unsafe { std::mem::transmute::<Password, Proc>(answer_password) };
    let end = || callback(sys::SASL_CB_LIST_END, None, handle);
    let mut wanted = Vec::new();
    if sasl.user.is_some() {
        wanted.push(callback(sys::SASL_CB_USER, Some(name), handle));
        wanted.push(callback(sys::SASL_CB_AUTHNAME, Some(name), handle));
    }
    if sasl.password.is_some() {
        wanted.push(callback(sys::SASL_CB_PASS, Some(password), handle));
    }
    wanted.push(callback(sys::SASL_CB_GETREALM, Some(realm), handle));
    let mut wanted = wanted.into_iter();
    let entry = Entry {
        callbacks: std::array::from_fn(|_| wanted.next().unwrap_or_else(end)),
        user: text(&sasl.user)?,
        realm: text(&sasl.realm)?,
        password: sasl.password.clone(),
        known: Vec::new(),
        asked: Vec::new(),
    };
    let texts = Texts {
        service: c_string(&sasl.service)?,
        host: text(&sasl.host)?,
        mechanism: c_string(&sasl.mechanism)?,
    };
    ENTRIES.lock().insert(handle, Box::new(entry));
    Ok(texts)
}

/// The parameters for the C client, for a handle that has an entry.
pub(super) fn params(handle: usize, texts: &Texts) -> sys::zoo_sasl_params_t {
    let entries = ENTRIES.lock();
    sys::zoo_sasl_params_t {
        service: texts.service.as_ptr(),
        host: texts.host.as_ref().map_or(ptr::null(), |host| host.as_ptr()),
        mechlist: texts.mechanism.as_ptr(),
        callbacks: entries.get(&handle).map_or(ptr::null(), |entry| entry.callbacks.as_ptr()),
    }
}

/// The handle is closed, or was never opened.
pub(super) fn forget(handle: usize) {
    ENTRIES.lock().remove(&handle);
}

type Name = unsafe extern "C" fn(*mut c_void, c_int, *mut *const c_char, *mut u32) -> c_int;
type Realm =
    unsafe extern "C" fn(*mut c_void, c_int, *mut *const c_char, *mut *const c_char) -> c_int;
type Password =
    unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, *mut *mut sys::sasl_secret_t) -> c_int;

/// Gives a text of the handle's, which stays where it is until the handle is closed.
fn give(
    context: *mut c_void,
    result: *mut *const c_char,
    text: impl FnOnce(&Entry) -> Option<&CString>,
) -> c_int {
    let found = catch_panic(|| {
        let entries = ENTRIES.lock();
        Some(text(entries.get(&context.addr())?)?.as_ptr())
    });
    match found.flatten() {
        Some(text) if !result.is_null() => {
            // SAFETY: SASL gives a place for the answer.
            unsafe { result.write(text) };
            sys::SASL_OK
        }
        _ => sys::SASL_FAIL,
    }
}

unsafe extern "C" fn answer_name(
    context: *mut c_void,
    _: c_int,
    result: *mut *const c_char,
    length: *mut u32,
) -> c_int {
    if !length.is_null() {
        let known = catch_panic(|| {
            let entries = ENTRIES.lock();
            entries.get(&context.addr())?.user.as_ref().map(|user| user.as_bytes().len())
        });
        let known = known.flatten().and_then(|length| u32::try_from(length).ok());
        // SAFETY: SASL gives a place for the length, or null.
        unsafe { length.write(known.unwrap_or(0)) };
    }
    give(context, result, |entry| entry.user.as_ref())
}

/// The realm of the settings, or else the first that the server has offered.
unsafe extern "C" fn answer_realm(
    context: *mut c_void,
    _: c_int,
    offered: *mut *const c_char,
    result: *mut *const c_char,
) -> c_int {
    if give(context, result, |entry| entry.realm.as_ref()) == sys::SASL_OK {
        return sys::SASL_OK;
    }
    if offered.is_null() || result.is_null() {
        return sys::SASL_FAIL;
    }
    // SAFETY: SASL gives an array of C strings that a null ends.
    let first = unsafe { offered.read() };
    if first.is_null() {
        return sys::SASL_FAIL;
    }
    // SAFETY: SASL gives a place for the answer.
    unsafe { result.write(first) };
    sys::SASL_OK
}

unsafe extern "C" fn answer_password(
    _: *mut c_void,
    context: *mut c_void,
    _: c_int,
    result: *mut *mut sys::sasl_secret_t,
) -> c_int {
    let found = catch_panic(|| {
        let secret = ENTRIES.lock().get(&context.addr())?.password.clone()?;
        let read = secret.read();
        let mut entries = ENTRIES.lock();
        let entry = entries.get_mut(&context.addr())?;
        match read {
            Ok(password) => entry.known = password,
            // Without an answer the client would have failed for ever, though the file may just be being written.
            Err(error) if entry.known.is_empty() => {
                log!(ERROR, error, "no password for SASL");
                return None;
            }
            Err(error) => log!(WARN, error, "SASL gets the password that was read before"),
        }
        entry.asked = in_sasls_form(&entry.known);
        Some(entry.asked.as_mut_ptr())
    });
    match found.flatten() {
        Some(secret) if !result.is_null() => {
            // SAFETY: SASL gives a place for the answer.
            unsafe { result.write(secret.cast()) };
            sys::SASL_OK
        }
        _ => sys::SASL_FAIL,
    }
}

/// Its length, its bytes, and a zero at least, in words of the length's size.
fn in_sasls_form(password: &[u8]) -> Vec<c_ulong> {
    let words = password.chunks(size_of::<c_ulong>()).map(|chunk| {
        let mut bytes = [0; size_of::<c_ulong>()];
        bytes[..chunk.len()].copy_from_slice(chunk);
        c_ulong::from_ne_bytes(bytes)
    });
    let length = c_ulong::try_from(password.len()).unwrap_or(0);
    std::iter::once(length).chain(words).chain([0]).collect()
}
