//! Operations that tell their outcome by a callback, for event loops. (Acquires: `attempt.rs`.)

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use zookeeper_sys as sys;

use crate::capi::boundary::{Failure, Object, free, given, status, text};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::stat;
use crate::capi::zkl::attempt::{guards_of, with_guard, zkl_done_fn};
use crate::capi::zkl::contenders::zkl_contenders;
use crate::capi::zkl::guard::{released, version_of, zkl_guard};
use crate::capi::zkl::lock::{self, zkl_lock};
use crate::capi::zkl::options;
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::replies::{Delivery, code, deliver, no_done, with_code};
use crate::capi::zkl::timeout::{limited, timeout};
use crate::process::inherited;

/// The outcome of an operation: the code that its blocking variant returns. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_result_fn = Option<unsafe extern "C" fn(rc: c_int, userdata: *mut c_void)>;

/// The contenders. With ZOK `contenders` is the program's: free it with zkl_contenders_free. Otherwise it is NULL. Must
/// not throw.
#[allow(non_camel_case_types)]
pub type zkl_contenders_fn =
    Option<unsafe extern "C" fn(rc: c_int, contenders: *mut zkl_contenders, userdata: *mut c_void)>;

/// The outcome of a write. With ZOK `stat` is the znode's new stat, valid until this returns; otherwise it is NULL.
/// Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_written_fn =
    Option<unsafe extern "C" fn(rc: c_int, stat: *const sys::Stat, userdata: *mut c_void)>;

/// As zkl_lock_try, but does not wait. zklock calls `done` exactly once with the result of zkl_lock_try, on the
/// client's callback thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns
/// an error, neither is called.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `lock` or `done` is NULL. ZSYSTEMERROR: no thread is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_try_async(
    lock: Option<&zkl_lock>,
    done: zkl_done_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_lock_try_async";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let OnASession { lock, shared, .. } = lock.at_present();
        let (path, tell) = (lock.path().to_owned(), with_guard(done, guards_of(&shared)));
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |tried, userdata| {
                let tried =
                    tried.and_then(|held: Option<_>| held.ok_or_else(|| lock::taken(&path)));
                tell(tried, userdata);
            }),
        };
        deliver(NAME, &shared, lock.try_acquire(), delivery);
        Ok(())
    })
}

/// As zkl_lock_contenders, but does not wait, and gives at most the first `most` contenders: with 1 the holder alone,
/// as zkl_lock_holder. `done` and `finalizer`: as in zkl_lock_try_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `lock` or `done` is NULL. ZSYSTEMERROR: no thread is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_contenders_async(
    lock: Option<&zkl_lock>,
    most: usize,
    done: zkl_contenders_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_lock_contenders_async";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let OnASession { lock, shared, .. } = lock.at_present();
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |contenders, userdata| {
                let (rc, contenders) = code(contenders);
                let contenders = contenders.map(zkl_contenders::boxed);
                let contenders = contenders.map_or(std::ptr::null_mut(), Box::into_raw);
                // SAFETY: the program gave the function for these arguments, to be called on this thread; the
                // delivery is consumed, so it is called once.
                unsafe { done(rc, contenders, userdata) };
            }),
        };
        deliver(NAME, &shared, lock.first_contenders(most), delivery);
        Ok(())
    })
}

/// As zkl_guard_set, but does not wait: the write is submitted when this returns. `done` and `finalizer`: as in
/// zkl_lock_try_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `guard`, `path` or `done` is NULL, or the version is below -1. ZSYSTEMERROR: no
/// thread is available. `done` reports everything else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_guard_set_async(
    guard: Option<&zkl_guard>,
    path: *const c_char,
    data: *const c_void,
    len: usize,
    version: c_int,
    done: zkl_written_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_guard_set_async";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let path = unsafe { text(NAME, "path", path) }?;
        // SAFETY: the header asks for `len` bytes.
        let data = unsafe { options::bytes(NAME, data, len) }?;
        let version = version_of(NAME, version)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let delivery = Delivery {
            line: guard.shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |written, userdata| {
                let (rc, new) = code(written);
                let new = new.map(|new| stat::for_c(&new));
                let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
                // SAFETY: as in zkl_lock_contenders_async; the stat lives until it has returned.
                unsafe { done(rc, new, userdata) };
            }),
        };
        deliver(NAME, &guard.shared, guard.held(NAME)?.set(path, data, version), delivery);
        Ok(())
    })
}

/// As zkl_guard_release_within, but does not wait. When this returns, the release is submitted and the guard freed,
/// even after an error. `done` and `finalizer`: as in zkl_lock_try_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: an argument is NULL, or the timeout is negative and not ZKL_FOREVER.
/// ZSYSTEMERROR: no thread is available. After an error the lock is released in the background. `done` reports
/// everything else.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_release_async(
    guard: Option<Box<zkl_guard>>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_guard_release_async";
    status(|| {
        let mut guard = guard.ok_or_else(|| Failure::bad_argument(NAME, "guard is NULL"))?;
        if guard.is_inherited() {
            free(Some(guard));
            return Err(inherited(NAME, "").into());
        }
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let line = guard.shared.callbacks.line(NAME)?;
        guard.held(NAME)?;
        let Some(held) = guard.give_up() else { return Ok(()) };
        let shared = Arc::clone(&guard.shared);
        let delivery = Delivery {
            line,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_code(done, &shared)),
        };
        deliver(NAME, &shared, limited(released(held), within), delivery);
        Ok(())
    })
}
