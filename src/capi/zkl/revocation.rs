//! Asking a holder for its lock, and taking it away.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::capi::boundary::{Failure, c_string, given, status, text};
use crate::capi::callbacks::{Line, Userdata, zkl_finalizer_fn};
use crate::capi::zkl::contenders::{meant, zkl_contender};
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::timeout::{timeout, wait};
use crate::error::Code;
use crate::lock::Contender;

/// Called when another client asks for a release; `reason` is valid until this returns. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_request_fn =
    Option<unsafe extern "C" fn(reason: *const c_char, userdata: *mut c_void)>;

fn held_no_more(function: &'static str, holder: &Contender) -> Failure {
    let message = format!("{function}: {}: it holds the lock no more", holder.path);
    Failure::new(Code::NOTHING.as_raw(), message)
}

/// Asks a holder from zkl_lock_holder or zkl_lock_contenders to release the lock. Its program is told, if it listens
/// with zkl_guard_on_release_request; nothing else happens. `reason` is one line of up to 256 characters. The session
/// needs WRITE on the lock's path if the holder announces its release, otherwise on the claim's znode.
///
/// On connection loss it is repeated until the outcome is certain.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
///
/// ZOK. ZNOTHING: that holder no longer holds the lock. ZBADARGUMENTS: an argument is NULL, or the claim is another
/// library's, which would not read it. ZKL_OUTCOME_UNKNOWN: no server confirmed it in time. ZNOAUTH. Otherwise as
/// zkl_lock_contenders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_lock_request_release(
    lock: Option<&zkl_lock>,
    holder: Option<&zkl_contender>,
    reason: *const c_char,
) -> c_int {
    const NAME: &str = "zkl_lock_request_release";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        // SAFETY: the header asks for an entry of a list of ours, or what looks like one.
        let holder = unsafe { meant(NAME, "holder", holder) }?;
        // SAFETY: the header asks for a NUL-terminated string.
        let reason = unsafe { text(NAME, "reason", reason) }?;
        let OnASession { lock, shared, .. } = lock.at_present();
        shared.may_wait(NAME)?;
        let asked = lock.request_release(&holder, reason).wait()?;
        if asked { Ok(()) } else { Err(held_no_more(NAME, &holder)) }
    })
}

/// Takes the lock from a holder from zkl_lock_holder or zkl_lock_contenders, and waits up to `timeout_ms` until its
/// claim is gone. The holder's guard is ZKL_LOST, with ZKL_LOST_BROKEN, before another client can hold the lock. Then
/// its own library deletes the claim: when its program ends the guard, or after `grace_ms`. A holder that cannot be
/// reached loses its session instead. The session needs WRITE on the lock's path if the holder announces its release,
/// otherwise on the claim's znode.
///
/// On connection loss it continues, also in the next session.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZNOTHING: that holder no longer held the lock. ZBADARGUMENTS: an argument is NULL, `grace_ms` is negative,
/// another negative timeout, or the claim is another library's, which would not read it. ZKL_OUTCOME_UNKNOWN: the time
/// has passed, and the hold may still be broken later. ZNOAUTH. Otherwise as zkl_lock_contenders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_lock_break_hold(
    lock: Option<&zkl_lock>,
    holder: Option<&zkl_contender>,
    reason: *const c_char,
    grace_ms: c_int,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_lock_break_hold";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        // SAFETY: the header asks for an entry of a list of ours, or what looks like one.
        let holder = unsafe { meant(NAME, "holder", holder) }?;
        // SAFETY: the header asks for a NUL-terminated string.
        let reason = unsafe { text(NAME, "reason", reason) }?;
        let grace = u64::try_from(grace_ms).map(Duration::from_millis);
        let grace = grace.map_err(|_| Failure::bad_argument(NAME, "grace_ms is negative"))?;
        let within = timeout(NAME, timeout_ms)?;
        let OnASession { lock, shared, .. } = lock.at_present();
        shared.may_wait(NAME)?;
        let breaking = lock.break_hold(&holder, reason, grace);
        if wait(breaking, within)? { Ok(()) } else { Err(held_no_more(NAME, &holder)) }
    })
}

/// Registers `requested`. zklock calls it on the client's callback thread each time another client asks for a release,
/// as zkl_lock_request_release and `zklock ask` do. If a client has asked already, zklock calls it at once. Requests do
/// not end the hold. For `finalizer`, for what `requested` may do, and for the end of the guard, the rules of
/// zkl_guard_on_lost apply.
///
/// Any thread, callbacks included; does not block.
///
/// ZOK. ZBADARGUMENTS: `guard` or `requested` is NULL. ZSYSTEMERROR: no thread is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_on_release_request(
    guard: Option<&zkl_guard>,
    requested: zkl_request_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_guard_on_release_request";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let requested =
            requested.ok_or_else(|| Failure::bad_argument(NAME, "requested is NULL"))?;
        let mut requests = guard.held(NAME)?.release_requests();
        let line = guard.shared.callbacks.line(NAME)?;
        let userdata = Some(Arc::new(Userdata::new(userdata, finalizer)));
        let told = Told { line, requested, is_over: Arc::clone(&guard.is_over), userdata };
        guard.shared.spawn(async move {
            while let Some(reason) = requests.next().await {
                told.tell(c_string(&reason));
            }
        });
        Ok(())
    })
}

/// The callback for requests, until this is dropped.
struct Told {
    line: Line,
    requested: unsafe extern "C" fn(*const c_char, *mut c_void),
    is_over: Arc<AtomicBool>,
    /// Empty only at the end.
    userdata: Option<Arc<Userdata>>,
}

impl Told {
    fn tell(&self, reason: CString) {
        let Some(userdata) = self.userdata.clone() else { return };
        let (requested, is_over) = (self.requested, Arc::clone(&self.is_over));
        self.line.run(move || {
            if !is_over.load(Ordering::Acquire) {
                // SAFETY: the program gave the function for these arguments, to be called on this thread.
                unsafe { requested(reason.as_ptr(), userdata.pointer()) };
            }
        });
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let userdata = self.userdata.take();
        // Behind all calls, which have let go of it by then.
        self.line.run(move || {
            if let Some(userdata) = userdata.and_then(Arc::into_inner) {
                userdata.finish();
            }
        });
    }
}
