//! How a program that does not ask hears of a loss, or of any change: a callback, or a descriptor that it polls.
//!
//! Both are watched for by a task of the client's, and both are notified when the task ends,
//! however it ends: by the loss, by the release, or because its client is closed, which is a loss.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::capi::callbacks::{Line, Userdata};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::signal_fd::SignalFd;
use crate::lock::{GuardStates, LostReason, LostSignal};

/// zkl_guard_lost_reason, `lost`: the session expired, was ended by the program, or the local clock no longer proves it
/// alive.
pub const ZKL_LOST_SESSION: c_int = 1;
/// zkl_guard_lost_reason, `lost`: another client deleted the lock's znode.
pub const ZKL_LOST_DELETED: c_int = 2;
/// zkl_guard_lost_reason, `lost`: another client broke the hold, as `zklock break` does.
pub const ZKL_LOST_BROKEN: c_int = 3;

/// Called when a lock is lost; `reason` is a ZKL_LOST_* reason. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_lost_fn = Option<unsafe extern "C" fn(reason: c_int, userdata: *mut c_void)>;

pub(super) fn reason_number(reason: Option<LostReason>) -> c_int {
    match reason {
        Some(LostReason::Session) => ZKL_LOST_SESSION,
        Some(LostReason::Deleted) => ZKL_LOST_DELETED,
        Some(LostReason::Broken) => ZKL_LOST_BROKEN,
        Some(LostReason::Released) | None => 0,
    }
}

/// A callback that waits for a loss. Dropped when there is one, or when there will be none.
pub(super) struct Notice {
    pub(super) signal: LostSignal,
    pub(super) lost: unsafe extern "C" fn(c_int, *mut c_void),
    /// Whether the program has released or freed the guard. It gets no notification any more.
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
pub(super) fn keep_until_over(shared: &Shared, signal: LostSignal, told: impl Send + 'static) {
    shared.spawn(async move {
        signal.await;
        drop(told);
    });
}

/// Rings when it is dropped, if the lock is lost by then.
pub(super) struct SignalWhenLost {
    pub(super) signal: LostSignal,
    pub(super) fd: Arc<SignalFd>,
}

impl Drop for SignalWhenLost {
    fn drop(&mut self) {
        if loss(&self.signal).is_some() {
            self.fd.signal();
        }
    }
}

/// Signals with each change of a guard's state, and at the end: then its client is closed, and it is lost.
pub(super) fn signal_changes(shared: &Shared, mut states: GuardStates, fd: Arc<SignalFd>) {
    struct AtTheEnd(Arc<SignalFd>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            self.0.signal();
        }
    }
    let fd = AtTheEnd(fd);
    shared.spawn(async move {
        while states.next().await.is_some() {
            fd.0.signal();
        }
    });
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::ffi::CString;
    use std::mem::MaybeUninit;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicI32;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::capi::zkl::client::{
        ZKL_CLOSED, zkl_client_connect, zkl_client_free, zkl_client_state,
    };
    use crate::capi::zkl::guard::{
        ZKL_HELD, ZKL_LOST, zkl_guard_fd, zkl_guard_free, zkl_guard_on_lost, zkl_guard_state,
        zkl_guard_state_fd, zkl_guard_take_state,
    };
    use crate::capi::zkl::lock::{zkl_lock_acquire, zkl_lock_free, zkl_lock_new};
    use crate::capi::zkl::timeout::ZKL_FOREVER;

    static TOLD: AtomicI32 = AtomicI32::new(0);

    unsafe extern "C" fn tell(reason: c_int, _: *mut c_void) {
        TOLD.store(reason, Ordering::SeqCst);
    }

    /// The output of a function of the API.
    fn made<T>(make: impl FnOnce(Option<&mut MaybeUninit<T>>) -> c_int) -> T {
        let mut place = MaybeUninit::uninit();
        assert_eq!(make(Some(&mut place)), 0);
        // SAFETY: it is written to on success.
        unsafe { place.assume_init() }
    }

    fn owned<T>(made: *mut T) -> Box<T> {
        // SAFETY: it was made by the API as a box, and is taken once.
        unsafe { Box::from_raw(made) }
    }

    /// A descriptor of a guard.
    fn polled(fd: c_int) -> UnixStream {
        // SAFETY: the descriptor is open for as long as the guard is, which is longer than this call.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        fd.try_clone_to_owned().unwrap().into()
    }

    fn is_readable(fd: &mut UnixStream) -> bool {
        std::io::Read::read(fd, &mut [0]).is_ok_and(|read| read == 1)
    }

    fn wait_until(mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_client_that_nothing_drives_any_more_is_closed_and_its_guards_are_lost() {
        let server = zklock_testing::Server::start().unwrap();
        let hosts = CString::new(server.hosts()).unwrap();
        // SAFETY: a string that outlives the call; no options.
        let client = owned(made(|place| unsafe {
            zkl_client_connect(hosts.as_ptr(), std::ptr::null(), place)
        }));
        let [lock, other] = [c"/lock", c"/other"].map(|path| {
            // SAFETY: as above.
            owned(made(|place| unsafe {
                zkl_lock_new(Some(&client), path.as_ptr(), std::ptr::null(), place)
            }))
        });
        let guard = owned(made(|place| zkl_lock_acquire(Some(&lock), ZKL_FOREVER, place)));
        assert_eq!(zkl_guard_on_lost(Some(&guard), Some(tell), std::ptr::null_mut(), None), 0);
        let mut loss = polled(made(|place| zkl_guard_fd(Some(&guard), place)));
        let mut change = polled(made(|place| zkl_guard_state_fd(Some(&guard), place)));
        // Its first state is a change.
        wait_until(|| is_readable(&mut change));
        assert_eq!(zkl_guard_take_state(Some(&guard)), ZKL_HELD);
        assert!(!is_readable(&mut loss));
        // One whose descriptors are asked for when all is over.
        let asked_late = owned(made(|place| zkl_lock_acquire(Some(&other), ZKL_FOREVER, place)));

        client.present.shared().store.client().unwrap().inner().kill_driver();
        wait_until(|| TOLD.load(Ordering::SeqCst) != 0 && is_readable(&mut loss));
        wait_until(|| is_readable(&mut change));
        for fd in [zkl_guard_fd, zkl_guard_state_fd] {
            let mut fd = polled(made(|place| fd(Some(&asked_late), place)));
            wait_until(|| is_readable(&mut fd));
        }
        assert_eq!(TOLD.load(Ordering::SeqCst), ZKL_LOST_SESSION);
        assert_eq!(zkl_guard_state(Some(&guard)), ZKL_LOST);
        assert_eq!(zkl_client_state(Some(&client)), ZKL_CLOSED);
        let mut place = MaybeUninit::uninit();
        assert_ne!(zkl_lock_acquire(Some(&lock), ZKL_FOREVER, Some(&mut place)), 0);
        [guard, asked_late].into_iter().for_each(|guard| zkl_guard_free(Some(guard)));
        [lock, other].into_iter().for_each(|lock| zkl_lock_free(Some(lock)));
        zkl_client_free(Some(client));
        // The session was closed, so that nobody has to wait for its end.
        assert!(server.sessions().unwrap().is_empty());
    }
}
