//! Locks: making one, and acquiring it while the caller waits.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use crate::capi::boundary::{Failure, Object, c_string, free, given, output, status, text};
use crate::capi::codes;
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options::{self, Contending, Sharing, zkl_lock_options};
use crate::capi::zkl::present::{OnASession, PresentLock};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{limited, timeout};
use crate::lock::{Guard, Lock, LockError, Owner, ReentrantLock};
use crate::runtime::Pending;

/// A lock on a path; see zkl_lock_new.
#[allow(non_camel_case_types)]
pub struct zkl_lock {
    pub(super) present: Arc<PresentLock>,
    pub(super) acquires: Acquires,
    path: CString,
}

/// For whom a lock is acquired.
#[derive(Clone)]
pub(super) enum Acquires {
    /// Each time for another.
    Anew,
    /// For the thread that calls.
    ForThread(ReentrantLock),
    ForOwner(ReentrantLock, Owner),
}

impl Object for zkl_lock {
    fn is_inherited(&self) -> bool {
        self.present.is_inherited()
    }
}

impl zkl_lock {
    pub(super) fn boxed(client: &zkl_client, path: &str, how: Contending) -> Box<zkl_lock> {
        let present = Arc::new(PresentLock::new(&client.present, path, how));
        let path = c_string(present.at_present().lock.path());
        Box::new(zkl_lock { present, acquires: Acquires::Anew, path })
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
        let lock = match &self.acquires {
            Acquires::Anew => return session,
            Acquires::ForThread(lock) => lock.at(&session.lock).owned_by(&Owner::this_thread()),
            Acquires::ForOwner(lock, owner) => lock.at(&session.lock).owned_by(owner),
        };
        OnASession { lock, ..session }
    }

    pub(super) fn path(&self) -> &str {
        self.path.to_str().unwrap_or_default()
    }

    /// The same lock, acquired for somebody else.
    pub(super) fn acquired(&self, acquires: Acquires) -> zkl_lock {
        zkl_lock { present: Arc::clone(&self.present), acquires, path: self.path.clone() }
    }
}

/// Makes a lock on a path. Sends nothing: what is missing of the path is made when the lock is
/// acquired. Every acquire contends for itself, also two of one program, of one session, of one
/// zkl_lock: a lock that is held is not acquired again by its holder, unless it is re-entrant: see
/// zkl_lock_reentrant.
///
/// `path` is absolute, under the client's chroot; a lock whose last name begins with `zl-`, as those of zklock's own znodes
/// do, can be looked at, and its acquires fail with ZBADARGUMENTS. `options` may be NULL: a queue, no label, znodes
/// that everyone may change, one holder at a time. Both are copied.
///
/// Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, "/" with another strategy than
/// ZKL_QUEUE or for a semaphore, or bad options; ZINVALIDACL for an ACL that is empty or malformed.
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
        how.strategy.check_path(path).map_err(|why| Failure::bad_argument(NAME, why))?;
        if matches!(how.sharing, Sharing::Permits { .. }) && path == "/" {
            return Err(Failure::bad_argument(NAME, "a semaphore needs a path of its own"));
        }
        place.write(Box::into_raw(zkl_lock::boxed(client, path, how)));
        Ok(())
    })
}

/// The lock's path.
///
/// Any thread. Returns a string that belongs to the lock; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_path(lock: Option<&zkl_lock>) -> *const c_char {
    lock.map_or(std::ptr::null(), |lock| lock.path.as_ptr())
}

/// Gives up the lock. Guards and attempts made from it go on. A guard that is held stays held.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_free(lock: Option<Box<zkl_lock>>) {
    free(lock);
}

/// Acquires the lock, waiting for it up to `timeout_ms` in all: ZKL_FOREVER waits as long as it
/// takes, 0 looks once.
///
/// On connection loss it goes on: it waits for the next connection, looks up what became of its
/// claim, and keeps its place in the queue if the session survived. When it fails, no claim is left.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the
/// program's: end it with zkl_guard_release or zkl_guard_free.
///
/// ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL or another negative
/// timeout; ZNODEEXISTS or ZNOCHILDRENFOREPHEMERALS when the path is something else than a lock of
/// this strategy; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is
/// closed and no session will follow; ZKL_WOULD_DEADLOCK inside a callback of the C client.
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

/// Acquires the lock if nobody is ahead: neither a holder nor, in a queue, a waiter. Waits only for
/// the servers' answers, up to the operation timeout.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the
/// program's: end it with zkl_guard_release or zkl_guard_free.
///
/// ZOK; ZKL_TAKEN; ZOPERATIONTIMEOUT when no server answers; otherwise as zkl_lock_acquire.
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

/// Somebody is ahead of one who tries.
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
