//! Guards: locks that are held.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use zookeeper_sys as sys;

use crate::capi::boundary::{
    Failure, Object, Unfreed, c_string, free, given, may_block, number, output, status, text, value,
};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::stat;
use crate::capi::zkl::client::ZKL_SUSPENDED;
use crate::capi::zkl::loss_signals::{
    Notice, SignalWhenLost, keep_until_over, loss, reason_number, signal_changes, zkl_lost_fn,
};
use crate::capi::zkl::options;
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::signal_fd::OptionalFd;
use crate::capi::zkl::timeout::{ZKL_FOREVER, timeout, wait};
use crate::error::Code;
use crate::lock::{Guard, GuardState, LockError, LostReason, LostSignal, ready};
use crate::process::inherited;
use crate::runtime::Pending;

/// zkl_guard_state: the lock is held, and no other client can acquire it now.
pub const ZKL_HELD: c_int = 1;
/// zkl_guard_state: the lock is lost for good, and others may hold it.
pub const ZKL_LOST: c_int = 4;

/// A lock that is held; see zkl_lock_acquire.
#[allow(non_camel_case_types)]
pub struct zkl_guard {
    /// `None` after the release. Shared with a hand-over in progress, and with the delivery that it belongs to.
    guard: Option<Arc<Guard>>,
    /// The path of each lock, and its token: one, but of a multi-lock.
    pub(super) locks: Vec<(CString, i64)>,
    signal: Signal,
    pub(super) is_over: Arc<AtomicBool>,
    loss_fd: OptionalFd,
    state_fd: OptionalFd,
    pub(super) shared: Arc<Shared>,
    unfreed: Unfreed,
}

/// Makes signals of a loss, for several threads.
struct Signal(Mutex<LostSignal>);

impl Signal {
    fn make(&self) -> LostSignal {
        self.0.lock().clone()
    }
}

impl Object for zkl_guard {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_guard {
    pub(super) fn boxed(guard: Guard, shared: Arc<Shared>) -> Box<zkl_guard> {
        Box::new(zkl_guard::new(Arc::new(guard), shared))
    }

    pub(super) fn new(guard: Arc<Guard>, shared: Arc<Shared>) -> zkl_guard {
        let shared = shared.of(&guard);
        let locks = guard.tokens().into_iter();
        zkl_guard {
            locks: locks.map(|(path, token)| (c_string(path), token)).collect(),
            signal: Signal(Mutex::new(guard.lost())),
            guard: Some(guard),
            is_over: Arc::default(),
            loss_fd: OptionalFd::default(),
            state_fd: OptionalFd::default(),
            shared,
            unfreed: Unfreed::new(),
        }
    }

    /// The guard, unless the program has released or freed it.
    pub(super) fn held(&self, name: &str) -> Result<&Arc<Guard>, Failure> {
        let given_up = || format!("{name}: the guard is given up");
        self.guard.as_ref().ok_or_else(|| Failure::new(codes::ZKL_NOT_HELD, given_up()))
    }

    /// Ends the program's use of the guard: no more notifications, and its descriptors are closed.
    pub(super) fn give_up(&mut self) -> Option<Arc<Guard>> {
        self.is_over.store(true, Ordering::Release);
        self.loss_fd.close();
        self.state_fd.close();
        self.guard.take()
    }

    fn claim_path(&self) -> Option<Arc<str>> {
        self.guard.as_ref().map(|guard| guard.claim_path())
    }
}

/// Releases a guard. After a hand-over it is released already.
pub(super) fn released(held: Arc<Guard>) -> Pending<(), LockError> {
    if held.lost().get() == Some(LostReason::Released) {
        return ready(Ok(()));
    }
    match Arc::try_unwrap(held) {
        Ok(held) => held.release(),
        Err(shared) => shared.release_now(),
    }
}

/// The version that data must have, as the header has it: -1 for any.
pub(super) fn version_of(name: &'static str, version: c_int) -> Result<Option<i32>, Failure> {
    match version {
        -1 => Ok(None),
        version if version >= 0 => Ok(Some(version)),
        _ => Err(Failure::bad_argument(name, "a version below -1")),
    }
}

impl Drop for zkl_guard {
    fn drop(&mut self) {
        // A hand-over that is under way may have it, too.
        if let Some(Err(shared)) = self.give_up().map(Arc::try_unwrap) {
            shared.let_go();
        }
    }
}

/// ZKL_HELD, ZKL_SUSPENDED or ZKL_LOST, by the local clock at this moment. Costs no request.
///
/// While it is ZKL_HELD, no other client holds the lock: it becomes ZKL_LOST before the servers can admit another
/// client. That requires that nobody deletes the lock's znode by hand, and that `tick_time_ms` of `zkl_client_options`
/// is right. But time passes between a check and the write that follows. To be safe even then, use zkl_guard_token or
/// zkl_guard_set.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_state(guard: Option<&zkl_guard>) -> c_int {
    let state = || {
        let guard = given("zkl_guard_state", "guard", guard)?;
        Ok(match guard.guard.as_deref().map(Guard::state) {
            Some(GuardState::Held) => ZKL_HELD,
            Some(GuardState::Suspended) => ZKL_SUSPENDED,
            Some(GuardState::Lost) | None => ZKL_LOST,
        })
    };
    number(codes::ZKL_PANIC, state, |code| code)
}

/// Why the lock is lost, by the local clock at this moment: ZKL_LOST_SESSION, ZKL_LOST_DELETED or ZKL_LOST_BROKEN. 0 if
/// it is not lost.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_lost_reason(guard: Option<&zkl_guard>) -> c_int {
    let reason = || {
        let guard = given("zkl_guard_lost_reason", "guard", guard)?;
        Ok(reason_number(loss(&guard.signal.make())))
    };
    number(codes::ZKL_PANIC, reason, |code| code)
}

/// The fencing token: a number above 0 that grows with every acquire of this lock, by any client (the czxid of the
/// lock's znode). If a store remembers the largest token and rejects smaller ones, a holder that has lost the lock
/// cannot write to it.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_token(guard: Option<&zkl_guard>) -> i64 {
    let token = || {
        let guard = given("zkl_guard_token", "guard", guard)?;
        Ok(guard.locks.first().map_or(0, |(_, token)| *token))
    };
    number(i64::from(codes::ZKL_PANIC), token, i64::from)
}

/// The lock's path; for a multi-lock, the path of the first lock.
///
/// Any thread. The guard owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_path(guard: Option<&zkl_guard>) -> *const c_char {
    let first = guard.and_then(|guard| guard.locks.first());
    first.map_or(std::ptr::null(), |(path, _)| path.as_ptr())
}

/// Writes the path of the claim's znode to `buffer`, with a NUL and cut off at `size` bytes. Returns the length of the
/// whole path without the NUL. An upgrade or a downgrade may change the path. For a multi-lock, it is the claim
/// of the lock whose path sorts first. It is empty for NULL.
///
/// Any thread. `buffer` has room for `size` bytes, or is NULL: then nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_guard_claim_path(
    guard: Option<&zkl_guard>,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    let path = value(None, || guard.and_then(zkl_guard::claim_path));
    let path = path.as_deref().unwrap_or_default();
    if let Some(room) = size.checked_sub(1).filter(|_| !buffer.is_null()) {
        let written = path.len().min(room);
        // SAFETY: not null, and the caller says that `buffer` has room for `size` bytes, which is one more than `room`.
        unsafe { std::ptr::copy_nonoverlapping(path.as_ptr().cast(), buffer, written) };
        // SAFETY: as above: `written` is at most `room`.
        let end = unsafe { buffer.add(written) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    path.len()
}

/// Registers `lost`, which zklock calls when the lock is lost: at most once, on the client's callback thread, and at
/// once if the lock is lost already. A release does not call it. `finalizer`, if it is not NULL, runs once in any case,
/// on that thread: after `lost`, or when the guard ends. If this returns an error, neither is called.
///
/// A lost session is reported before the servers can admit another client. A deletion of the znode by another client is
/// reported only afterwards, and only once the lock has been held for about 100 ms.
///
/// `lost` may block, call any function of zklock and free the guard. Callbacks of one client run one after the other,
/// so one that blocks delays the next. zkl_guard_release and zkl_guard_free take the registration back: `lost` does not
/// start after them, even for an earlier loss, but one that has started may still run. Several registrations are
/// independent.
///
/// Any thread, callbacks included; does not block.
///
/// ZOK. ZBADARGUMENTS: `guard` or `lost` is NULL. ZSYSTEMERROR: no thread is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_on_lost(
    guard: Option<&zkl_guard>,
    lost: zkl_lost_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_guard_on_lost";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let lost = lost.ok_or_else(|| Failure::bad_argument(NAME, "lost is NULL"))?;
        let line = guard.shared.callbacks.line(NAME)?;
        let signal = guard.signal.make();
        let is_over = Arc::clone(&guard.is_over);
        let pending = Some((line, Userdata::new(userdata, finalizer)));
        let notice = Notice { signal: signal.clone(), lost, is_over, pending };
        keep_until_over(&guard.shared, signal, notice);
        Ok(())
    })
}

/// Waits until the lock is lost, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
///
/// ZOK: the lock is lost. ZOPERATIONTIMEOUT: it is not. ZBADARGUMENTS: NULL, or another negative timeout.
/// ZKL_WOULD_DEADLOCK: inside a callback of the C client, unless the timeout is 0.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_wait_lost(guard: Option<&zkl_guard>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_guard_wait_lost";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let within = timeout(NAME, timeout_ms)?;
        let signal = guard.signal.make();
        if loss(&signal).is_some() {
            return Ok(());
        }
        let within = match within {
            Some(within) if within.is_zero() => Some(within),
            within => may_block(NAME).map(|()| within)?,
        };
        let reason = match within {
            Some(within) => signal.wait_timeout(within),
            None => Some(signal.wait()),
        };
        let held =
            || format!("{NAME}: {}: not lost", guard.held(NAME).map_or("", |held| held.path()));
        reason.map(drop).ok_or_else(|| Failure::new(Code::OPERATION_TIMEOUT.as_raw(), held()))
    })
}

/// A file descriptor that becomes readable (POLLIN) when the lock is lost: for poll, epoll and event loops. The guard
/// owns it and closes it. Each call gives the same one. Do not read or close it, and take it out of the event loop
/// before you end the guard. It reports the same losses as zkl_guard_on_lost.
///
/// Any thread, callbacks included; does not block.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_fd(
    guard: Option<&zkl_guard>,
    fd: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    const NAME: &str = "zkl_guard_fd";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let place = output(NAME, "fd", fd)?;
        place.write(guard.loss_fd.number(NAME, |made| {
            let signal = guard.signal.make();
            if loss(&signal).is_some() {
                made.signal();
            } else {
                let ring = SignalWhenLost { signal: signal.clone(), fd: Arc::clone(made) };
                keep_until_over(&guard.shared, signal, ring);
            }
        })?);
        Ok(())
    })
}

/// A file descriptor that becomes readable (POLLIN) with each change of the guard's state; it is readable from the
/// start. zkl_guard_take_state gives the state and makes it unreadable until the next change. Ownership: as
/// zkl_guard_fd.
///
/// Any thread, callbacks included; does not block.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_state_fd(
    guard: Option<&zkl_guard>,
    fd: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    const NAME: &str = "zkl_guard_state_fd";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let place = output(NAME, "fd", fd)?;
        place.write(guard.state_fd.number(NAME, |made| match &guard.guard {
            Some(held) => signal_changes(&guard.shared, held.states(), Arc::clone(made)),
            None => made.signal(),
        })?);
        Ok(())
    })
}

/// As zkl_guard_state. The descriptor of zkl_guard_state_fd becomes unreadable until the next change.
///
/// Any thread, callbacks included. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_take_state(guard: Option<&zkl_guard>) -> c_int {
    // Before the look: a change in between makes it readable again.
    let clear = || {
        given("zkl_guard_take_state", "guard", guard)?.state_fd.clear();
        Ok(0)
    };
    match number(codes::ZKL_PANIC, clear, |code| code) {
        0 => zkl_guard_state(guard),
        code => code,
    }
}

/// Replaces the data of a znode in one transaction with the check that the lock is still held: if it is not, nothing is
/// written. Waits for the outcome, up to the operation timeout.
///
/// `path` is the znode to write, `data` its new data of `len` bytes (NULL only with 0). `version` is the version that
/// its data must have, or -1 for any. `stat` may be NULL; otherwise it gets the znode's new stat.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZKL_NOT_HELD. ZNONODE: the znode does not exist. ZBADVERSION. ZNOAUTH. ZBADARGUMENTS: an argument is NULL,
/// ZooKeeper does not allow the path, the version is below -1, or the data exceeds a request. ZKL_WOULD_DEADLOCK:
/// inside a callback of the C client. ZKL_NOT_CONNECTED: try again. ZKL_OUTCOME_UNKNOWN: read the znode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_guard_set(
    guard: Option<&zkl_guard>,
    path: *const c_char,
    data: *const c_void,
    len: usize,
    version: c_int,
    stat: Option<&mut MaybeUninit<sys::Stat>>,
) -> c_int {
    const NAME: &str = "zkl_guard_set";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let path = unsafe { text(NAME, "path", path) }?;
        // SAFETY: the header asks for `len` bytes.
        let data = unsafe { options::bytes(NAME, data, len) }?;
        let version = version_of(NAME, version)?;
        may_block(NAME)?;
        let new = guard.held(NAME)?.set(path, data, version).wait()?;
        if let Some(place) = stat {
            place.write(stat::for_c(&new));
        }
        Ok(())
    })
}

/// Releases the lock and waits for the confirmation. Frees the guard, whatever it returns.
///
/// The deletion of the lock's znode is repeated until the znode or the session is gone. Without a connection this waits
/// for the next one, as long as the session can be trusted: it ends within the session timeout, and at once if the lock
/// is lost. To wait for less, use zkl_guard_release_within; not to wait, zkl_guard_free.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK, also for a leadership that was handed over. ZSESSIONEXPIRED: before the release, the session was lost or
/// somebody broke the hold. ZNONODE: another client deleted the znode. After either, others may have held the lock.
/// ZNOAUTH: the session may not DELETE in the lock's directory, so the lock stays until the session ends. A client with
/// its own session replaces it as soon as it holds no other lock. ZINVALIDSTATE, ZCLOSING or ZKL_OUTCOME_UNKNOWN: the
/// client was detached. ZBADARGUMENTS: NULL. ZKL_WOULD_DEADLOCK: inside a callback of the C client; the lock is
/// released in the background.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_release(guard: Option<Box<zkl_guard>>) -> c_int {
    release("zkl_guard_release", guard, ZKL_FOREVER)
}

/// As zkl_guard_release, but waits at most `timeout_ms`: ZKL_FOREVER as zkl_guard_release, 0 not at all. Frees the
/// guard, whatever it returns.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// As zkl_guard_release, and ZKL_OUTCOME_UNKNOWN: no server confirmed it in time, and it continues in the background.
/// ZBADARGUMENTS also for another negative timeout: the lock is released in the background.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_release_within(
    guard: Option<Box<zkl_guard>>,
    timeout_ms: c_int,
) -> c_int {
    release("zkl_guard_release_within", guard, timeout_ms)
}

fn release(name: &'static str, guard: Option<Box<zkl_guard>>, timeout_ms: c_int) -> c_int {
    status(|| {
        let mut guard = guard.ok_or_else(|| Failure::bad_argument(name, "guard is NULL"))?;
        if guard.is_inherited() {
            free(Some(guard));
            return Err(inherited(name, "").into());
        }
        let within = timeout(name, timeout_ms)?;
        may_block(name)?;
        guard.give_up().map_or(Ok(()), |held| wait(released(held), within))
    })
}

/// Releases the lock in the background, and frees the guard. The deletion of the lock's znode is submitted now. It is
/// repeated until the znode or the session is gone, as long as the process lives; see "The end of the process". Waits
/// only if this was the last object of its client: see zkl_client_free.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_free(guard: Option<Box<zkl_guard>>) {
    free(guard);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_guard>();
};
