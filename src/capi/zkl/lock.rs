//! Locks: making one, and acquiring it while the caller waits.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use crate::capi::boundary::{
    Failure, Object, Unfreed, c_string, free, given, output, status, text,
};
use crate::capi::codes;
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options::{self, Contending, Sharing, zkl_lock_options};
use crate::capi::zkl::present::{OnASession, PresentLock};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{limited, timeout};
use crate::lock::{Guard, Joints, Lock, LockError, Owner};
use crate::runtime::Pending;

/// A lock on a path; see zkl_lock_new.
#[allow(non_camel_case_types)]
pub struct zkl_lock {
    pub(super) present: Arc<PresentLock>,
    pub(super) acquires: Acquires,
    path: CString,
    unfreed: Unfreed,
}

/// For whom a lock is acquired.
#[derive(Clone)]
pub(super) enum Acquires {
    /// Each time for another.
    Anew,
    /// For the thread that calls.
    ForThread(Arc<Joints>),
    ForOwner(Arc<Joints>, Owner),
}

impl Object for zkl_lock {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_lock {
    pub(super) fn boxed(client: &zkl_client, path: &str, how: Contending) -> Box<zkl_lock> {
        let present = Arc::new(PresentLock::new(&client.present, path, how));
        let path = c_string(present.at_present().lock.path());
        Box::new(zkl_lock { present, acquires: Acquires::Anew, path, unfreed: Unfreed::new() })
    }

    /// The lock on its client's present session.
    pub(super) fn at_present(&self) -> OnASession {
        self.acquired_on(self.present.at_present())
    }

    /// The lock on one of its client's sessions.
    pub(super) fn on(&self, session: &Arc<Shared>) -> OnASession {
        self.acquired_on(self.present.on(Arc::clone(session)))
    }

    fn acquired_on(&self, session: OnASession) -> OnASession {
        let (joints, owner) = match &self.acquires {
            Acquires::Anew => return session,
            Acquires::ForThread(joints) => (joints, &Owner::this_thread()),
            Acquires::ForOwner(joints, owner) => (joints, owner),
        };
        let lock = session.lock.reentrant_by(Arc::clone(joints)).owned_by(owner);
        OnASession { lock, ..session }
    }

    pub(super) fn path(&self) -> &str {
        self.path.to_str().unwrap_or_default()
    }

    /// The same lock, acquired for somebody else.
    pub(super) fn acquired(&self, acquires: Acquires) -> zkl_lock {
        let (present, path) = (Arc::clone(&self.present), self.path.clone());
        zkl_lock { present, acquires, path, unfreed: Unfreed::new() }
    }
}

/// Makes a lock on a path. Sends nothing; an acquire creates the missing parts of the path. All acquires exclude each
/// other, even those of one program, session or zkl_lock. A holder cannot acquire the lock again, unless it is
/// re-entrant: see zkl_lock_reentrant.
///
/// `path` is absolute, under the client's chroot. Names that begin with `zl-` are reserved: such a lock can be looked
/// at, but an acquire fails with ZBADARGUMENTS. `options` may be NULL: a queue, no label, znodes that all clients may
/// change, one holder at a time. Both are copied.
///
/// Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. The path is "/"
/// with another strategy than ZKL_QUEUE, or for a semaphore. ZINVALIDACL: the ACL is empty or malformed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_lock_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_lock_options,
    lock: Option<&mut MaybeUninit<*mut zkl_lock>>,
) -> c_int {
    const NAME: &str = "zkl_lock_new";
    status(|| {
        let client = given(NAME, "client", client)?;
        let place = output(NAME, "lock", lock)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let path = unsafe { text(NAME, "path", path) }?;
        // SAFETY: the header asks for a filled struct.
        let how = unsafe { options::contending(NAME, options) }?;
        how.strategy.check_path(path).map_err(|why| Failure::bad_path(NAME, path, why))?;
        if matches!(how.sharing, Sharing::Permits { .. }) && path == "/" {
            return Err(Failure::bad_path(NAME, path, "a semaphore needs a path of its own"));
        }
        place.write(Box::into_raw(zkl_lock::boxed(client, path, how)));
        Ok(())
    })
}

/// The lock's path.
///
/// Any thread. The lock owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_path(lock: Option<&zkl_lock>) -> *const c_char {
    lock.map_or(std::ptr::null(), |lock| lock.path.as_ptr())
}

/// Frees the lock. Its guards stay held, and its attempts continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_free(lock: Option<Box<zkl_lock>>) {
    free(lock);
}

/// Acquires the lock, and waits up to `timeout_ms` in total: ZKL_FOREVER waits without a limit. With 0 it fails with
/// ZOPERATIONTIMEOUT if another client holds the lock; zkl_lock_try gives ZKL_TAKEN then.
///
/// On connection loss it waits for the next connection and looks up its claim. If the session survived, it keeps its
/// place in the queue. After an error no claim is left.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
/// with zkl_guard_release or zkl_guard_free.
///
/// ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
/// ZNODEEXISTS or ZNOCHILDRENFOREPHEMERALS: something other than a lock of this strategy is at the path. ZNOAUTH.
/// ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed, and no session will follow.
/// ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_acquire(
    lock: Option<&zkl_lock>,
    timeout_ms: c_int,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_lock_acquire";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let place = output(NAME, "guard", guard)?;
        let within = timeout(NAME, timeout_ms)?;
        let OnASession { lock, shared, .. } = lock.at_present();
        shared.may_wait(NAME)?;
        let guard = contend(&lock, within).wait()?;
        place.write(Box::into_raw(zkl_guard::boxed(guard, shared)));
        Ok(())
    })
}

/// Acquires the lock if no other contender is ahead: no holder and, in a queue, no waiter. Waits only for the servers'
/// answers, up to the operation timeout.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
/// with zkl_guard_release or zkl_guard_free.
///
/// ZOK. ZKL_TAKEN. ZOPERATIONTIMEOUT: no server answers. Otherwise as zkl_lock_acquire.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_try(
    lock: Option<&zkl_lock>,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_lock_try";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let place = output(NAME, "guard", guard)?;
        let OnASession { lock, shared, .. } = lock.at_present();
        shared.may_wait(NAME)?;
        let Some(guard) = lock.try_acquire().wait()? else {
            return Err(taken(lock.path()));
        };
        place.write(Box::into_raw(zkl_guard::boxed(guard, shared)));
        Ok(())
    })
}

/// The failure of a try when another claim is ahead.
pub(super) fn taken(path: &str) -> Failure {
    Failure::new(codes::ZKL_TAKEN, format!("acquire {}: it is taken", path.escape_debug()))
}

pub(super) fn contend(lock: &Lock, within: Option<Duration>) -> Pending<Guard, LockError> {
    match within {
        Some(within) if within.is_zero() => lock.acquire_at_once(),
        within => limited(lock.acquire(), within),
    }
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_lock>();
};
