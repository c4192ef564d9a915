//! How a program that does not ask hears of a loss: a callback, or a descriptor that it polls.
//!
//! Both are watched for by a task on the client's keeper, and both are told when the task ends,
//! however it ends: by the loss, by the release, or because its client is closed, which is a loss.

use std::ffi::{c_int, c_void};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::callbacks::{Line, Userdata};
use super::guard::reason_number;
use crate::client::Client;
use crate::lock::{LostReason, LostSignal};

/// Told that a lock is lost: why (ZKL_LOST_SESSION or ZKL_LOST_DELETED). Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_lost_fn = Option<unsafe extern "C" fn(reason: c_int, userdata: *mut c_void)>;

/// A callback that waits for a loss. Dropped when there is one, or when there will be none.
pub(super) struct Notice {
    pub(super) signal: LostSignal,
    pub(super) lost: unsafe extern "C" fn(c_int, *mut c_void),
    /// Whether the program has given up the guard: it is told nothing any more.
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) pending: Option<(Line, Userdata)>,
}

impl Drop for Notice {
    fn drop(&mut self) {
        let Some((line, userdata)) = self.pending.take() else { return };
        let (reason, lost) = (loss(&self.signal), self.lost);
        let is_over = Arc::clone(&self.is_over);
        line.run(move || {
            if let Some(reason) = reason.filter(|_| !is_over.load(Ordering::Acquire)) {
                // SAFETY: the program gave the function for these arguments, to be called on this
                // thread; the notice is consumed, so it is called once.
                unsafe { lost(reason_number(Some(reason)), userdata.pointer()) };
            }
            userdata.finish();
        });
    }
}

/// Why the lock is lost, if it is; a release is no loss.
pub(super) fn loss(signal: &LostSignal) -> Option<LostReason> {
    signal.get().filter(|reason| *reason != LostReason::Released)
}

/// Keeps `told` until the lock is lost or released.
pub(super) fn keep_until_over(client: &Client, signal: LostSignal, told: impl Send + 'static) {
    client.core().spawn(async move {
        signal.await;
        drop(told);
    });
}

/// A descriptor that becomes readable when the lock is lost.
pub(super) struct Bell {
    /// The program's end and ours; empty once the guard is given up.
    ends: Mutex<Option<(UnixStream, UnixStream)>>,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        let (theirs, ours) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        Ok(Bell { ends: Mutex::new(Some((theirs, ours))) })
    }

    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.ends.lock().as_ref().map(|(theirs, _)| theirs.as_raw_fd())
    }

    pub(super) fn ring(&self) {
        if let Some((_, ours)) = &mut *self.ends.lock() {
            // It can only be full if it has rung already.
            let _ = ours.write(&[1]);
        }
    }

    /// Closes both ends: after this the number may be another file's.
    pub(super) fn close(&self) {
        self.ends.lock().take();
    }
}

/// Rings when it is dropped, if the lock is lost by then.
pub(super) struct RingWhenLost {
    pub(super) signal: LostSignal,
    pub(super) bell: Arc<Bell>,
}

impl Drop for RingWhenLost {
    fn drop(&mut self) {
        if loss(&self.signal).is_some() {
            self.bell.ring();
        }
    }
}
