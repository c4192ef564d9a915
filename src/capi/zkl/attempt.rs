//! Attempts: acquires and other waits that the program can cancel. A callback gets the outcome, or the program takes it.

use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, output, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{contend, zkl_lock};
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::replies::{Delivery, code};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::signal_fd::OptionalFd;
use crate::capi::zkl::timeout::timeout;
use crate::client::{Duties, Duty};
use crate::error::Code;
use crate::lock::{Guard, LockError};
use crate::runtime::{Latest, Pending};

/// The outcome of an acquire: `rc` as from zkl_lock_acquire, or ZKL_CANCELLED. With ZOK `guard` is the program's;
/// otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_done_fn =
    Option<unsafe extern "C" fn(rc: c_int, guard: *mut zkl_guard, userdata: *mut c_void)>;

type Done = unsafe extern "C" fn(c_int, *mut zkl_guard, *mut c_void);

/// A pending acquire or other wait; see zkl_lock_acquire_async.
#[allow(non_camel_case_types)]
pub struct zkl_attempt {
    course: Arc<dyn Attempted>,
    /// Of an acquire without a callback.
    kept: Option<Kept>,
    duties: Arc<Duties>,
    unfreed: Unfreed,
}

/// Where the guard of an acquire comes from that has no callback.
struct Kept {
    course: Arc<Course<Guard>>,
    /// Keeps the session until the guard does.
    boxed: Mutex<Option<Boxing>>,
}

type Boxing = Box<dyn FnOnce(Guard) -> Box<zkl_guard> + Send>;

impl Object for zkl_attempt {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_attempt {
    fn boxed(shared: &Shared, course: Arc<dyn Attempted>, kept: Option<Kept>) -> Box<zkl_attempt> {
        let duties = Arc::clone(shared.duties());
        Box::new(zkl_attempt { course, kept, duties, unfreed: Unfreed::new() })
    }
}

impl Drop for zkl_attempt {
    fn drop(&mut self) {
        if self.kept.is_some() {
            self.course.cancel(&self.duties);
        }
        self.course.fd().close();
    }
}

/// The state that an attempt and its work share.
struct Course<T> {
    phase: Latest<Phase>,
    /// From the cancellation until the work is over: what it has made must not be left.
    giving_up: Mutex<Option<Duty>>,
    /// How it has ended, until that is delivered.
    ended: Mutex<Option<Result<T, Failure>>>,
    /// Signalled when it has ended.
    fd: OptionalFd,
}

/// A course, of whatever it gives.
trait Attempted: Send + Sync {
    /// `false`: it is too late.
    fn cancel(&self, duties: &Arc<Duties>) -> bool;
    fn has_ended(&self) -> bool;
    fn fd(&self) -> &OptionalFd;
}

impl<T> Course<T> {
    fn begin() -> Arc<Course<T>> {
        let phase = Latest::new(Phase::UnderWay);
        let (giving_up, ended, fd) = (Mutex::default(), Mutex::default(), OptionalFd::default());
        Arc::new(Course { phase, giving_up, ended, fd })
    }

    fn end(&self, result: Result<T, Failure>) {
        *self.ended.lock() = Some(result);
        if self.phase.get() == Phase::Cancelled {
            self.give_up();
        }
        self.fd.signal();
    }

    /// The outcome of an attempt that has ended; `None` if it was delivered before.
    fn deliver(&self) -> Option<Result<T, Failure>> {
        let mut before = Phase::Delivered;
        self.phase.update(|phase| {
            before = mem::replace(phase, Phase::Delivered);
            false
        });
        match before {
            Phase::Delivered => return None,
            Phase::Cancelled => self.give_up(),
            Phase::UnderWay => {}
        }
        Some(self.ended.lock().take().unwrap_or_else(|| Err(cancelled())))
    }

    /// If the attempt has ended, cancels it afterwards: drops its result, and the release of that is a separate duty.
    /// Then no thread has to wait for the callback thread, which may itself be waiting for that thread.
    fn give_up(&self) {
        let ended = self.ended.lock().as_mut().map(|ended| mem::replace(ended, Err(cancelled())));
        if let Some(ended) = ended {
            drop(ended);
            drop(self.giving_up.lock().take());
        }
    }
}

impl<T: Send> Attempted for Course<T> {
    fn cancel(&self, duties: &Arc<Duties>) -> bool {
        let mut is_late = false;
        self.giving_up.lock().get_or_insert_with(|| duties.begin());
        self.phase.update(|phase| {
            is_late = *phase == Phase::Delivered;
            let first = *phase == Phase::UnderWay;
            if first {
                *phase = Phase::Cancelled;
            }
            first
        });
        if is_late {
            drop(self.giving_up.lock().take());
        } else {
            self.give_up();
        }
        !is_late
    }

    fn has_ended(&self) -> bool {
        self.phase.get() == Phase::Delivered || self.ended.lock().is_some()
    }

    fn fd(&self) -> &OptionalFd {
        &self.fd
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    UnderWay,
    Cancelled,
    /// The callback is being run, or has been; or the program has taken the outcome.
    Delivered,
}

/// The outcome of an attempt, final when this is dropped: wherever it ends, also where
/// it is dropped itself because its client is closed.
struct Outcome<T: Send + 'static> {
    result: Option<Result<T, Failure>>,
    course: Arc<Course<T>>,
    /// `None`: the program takes it.
    delivery: Option<Delivery<T>>,
}

impl<T: Send + 'static> Outcome<T> {
    /// The result until there is another.
    fn unknown_yet(
        what: &str,
        course: Arc<Course<T>>,
        delivery: Option<Delivery<T>>,
    ) -> Outcome<T> {
        let message = format!("{what}: the client is closed");
        let closed = Failure::new(Code::INVALID_STATE.as_raw(), message);
        Outcome { result: Some(Err(closed)), course, delivery }
    }

    fn is(mut self, result: Result<T, Failure>) {
        self.result = Some(result);
    }
}

impl<T: Send + 'static> Drop for Outcome<T> {
    fn drop(&mut self) {
        let Some(result) = self.result.take() else { return };
        self.course.end(result);
        let Some(Delivery { line, userdata, done }) = self.delivery.take() else { return };
        let course = Arc::clone(&self.course);
        line.run(move || {
            if let Some(result) = course.deliver() {
                done(result, userdata.pointer());
            }
            userdata.finish();
        });
    }
}

fn cancelled() -> Failure {
    Failure::new(codes::ZKL_CANCELLED, "cancelled by the program".to_owned())
}

/// Begins what waits for others, and delivers its outcome. `what` names it if its client is closed meanwhile.
pub(super) fn begin<T, E>(
    shared: &Arc<Shared>,
    what: &str,
    place: Option<&mut MaybeUninit<*mut zkl_attempt>>,
    delivery: Delivery<T>,
    work: impl FnOnce() -> Pending<T, E>,
) where
    T: Send + 'static,
    E: Send + 'static,
    Failure: From<E>,
{
    let course = Course::begin();
    if let Some(place) = place {
        let attempt = zkl_attempt::boxed(shared, Arc::clone(&course) as _, None);
        place.write(Box::into_raw(attempt));
    }
    run(shared, Outcome::unknown_yet(what, course, Some(delivery)), work());
}

/// Begins an acquire. Its outcome goes to `done`, or, where that is NULL, is kept for zkl_attempt_take. `what` names it
/// if its client is closed meanwhile.
pub(super) fn begin_acquire(
    (function, what): (&'static str, &str),
    shared: &Arc<Shared>,
    (done, userdata): (zkl_done_fn, Userdata),
    place: Option<&mut MaybeUninit<*mut zkl_attempt>>,
    boxed: impl FnOnce(Guard) -> Box<zkl_guard> + Send + 'static,
    work: impl FnOnce() -> Pending<Guard, LockError>,
) -> Result<(), Failure> {
    if let Some(done) = done {
        let line = shared.callbacks.line(function)?;
        let delivery = Delivery { line, userdata, done: Box::new(with_guard(done, boxed)) };
        begin(shared, what, place, delivery, work);
        return Ok(());
    }
    let place = place.filter(|_| !userdata.has_finalizer()).ok_or_else(|| {
        let why = "done is NULL: then attempt may not be, and finalizer has to be";
        Failure::bad_argument(function, why)
    })?;
    let course = Course::begin();
    let boxed = Mutex::new(Some(Box::new(boxed) as Boxing));
    let kept = Kept { course: Arc::clone(&course), boxed };
    let attempt = zkl_attempt::boxed(shared, Arc::clone(&course) as _, Some(kept));
    place.write(Box::into_raw(attempt));
    run(shared, Outcome::unknown_yet(what, course, None), work());
    Ok(())
}

/// Runs what waits for others to its end.
fn run<T, E>(shared: &Shared, outcome: Outcome<T>, mut work: Pending<T, E>)
where
    T: Send + 'static,
    E: Send + 'static,
    Failure: From<E>,
{
    // What ends at once is delivered so, also where the client is closed and runs nothing any more.
    let mut nobody = Context::from_waker(Waker::noop());
    if let Poll::Ready(result) = Pin::new(&mut work).poll(&mut nobody) {
        return outcome.is(result.map_err(Failure::from));
    }
    // What gets the outcome keeps `shared`: a detach reaches the attempt even if its client has moved to another handle.
    let course = Arc::clone(&outcome.course);
    shared.spawn(async move {
        let given_up = async {
            let is_cancelled = |phase: &Phase| (*phase == Phase::Cancelled).then_some(());
            course.phase.wait_for(is_cancelled).await;
            Err(cancelled())
        };
        let worked = async { work.await.map_err(Failure::from) };
        outcome.is(futures_lite::future::or(worked, given_up).await);
    });
}

/// Calls the program's function with the outcome of something that gives a guard.
pub(super) fn with_guard(
    done: Done,
    boxed: impl FnOnce(Guard) -> Box<zkl_guard> + Send + 'static,
) -> impl FnOnce(Result<Guard, Failure>, *mut c_void) + Send {
    move |acquired, userdata| {
        let (rc, guard) = code(acquired);
        let guard = match guard {
            Some(guard) => Box::into_raw(boxed(guard)),
            None => {
                // The last of a client ends its session.
                drop(boxed);
                std::ptr::null_mut()
            }
        };
        // SAFETY: the program gave the function for these arguments, to be called on this thread; this is consumed, so
        // it is called once.
        unsafe { done(rc, guard, userdata) };
    }
}

/// Turns guards on that session into the program's objects.
pub(super) fn guards_of(
    shared: &Arc<Shared>,
) -> impl FnOnce(Guard) -> Box<zkl_guard> + Send + use<> {
    let shared = Arc::clone(shared);
    move |guard| zkl_guard::boxed(guard, shared)
}

/// Starts to acquire the lock and returns. zklock calls `done` exactly once with the outcome, on the client's callback
/// thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
/// is called.
///
/// `done` may block and may call any function of zklock. Callbacks of one client run one after the other. The attempt
/// continues when the lock and the client are freed. It ends with its outcome or by zkl_attempt_cancel. If the client
/// is detached or the adopted handle closed, it ends with ZINVALIDSTATE or ZCLOSING. On connection loss it behaves as
/// zkl_lock_acquire.
///
/// `timeout_ms`: as in zkl_lock_acquire. `userdata` is passed on unchanged. `attempt` may be NULL. Otherwise `*attempt`
/// is written before `done` can run, and is the program's: free it with zkl_attempt_free.
///
/// `done` may be NULL if `attempt` is not NULL and `finalizer` is. Then nothing is called: wait for the descriptor of
/// zkl_attempt_fd, and get the outcome from zkl_attempt_take.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `lock` is NULL, `done` is NULL where it must not be, or the timeout is negative
/// and not ZKL_FOREVER. ZSYSTEMERROR: no thread is available. Everything else is the outcome.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_acquire_async(
    lock: Option<&zkl_lock>,
    timeout_ms: c_int,
    done: zkl_done_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_lock_acquire_async";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let within = timeout(NAME, timeout_ms)?;
        let OnASession { lock, shared, .. } = lock.at_present();
        let what = format!("acquire {}", lock.path().escape_debug());
        let to = (done, Userdata::new(userdata, finalizer));
        let work = || contend(&lock, within);
        begin_acquire((NAME, &what), &shared, to, attempt, guards_of(&shared), work)
    })
}

/// A file descriptor that becomes readable (POLLIN) when the attempt has ended in any way: for poll, epoll and event
/// loops. It stays readable.
///
/// The attempt owns it and closes it. Each call gives the same one. Do not read or close it, and take it out of the
/// event loop before you free the attempt. An attempt with a `done` has one too; it is readable before `done` is
/// called.
///
/// Any thread, callbacks included; does not block.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL. ZSYSTEMERROR: no descriptor is available.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_attempt_fd(
    attempt: Option<&zkl_attempt>,
    fd: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    const NAME: &str = "zkl_attempt_fd";
    status(|| {
        let course = &given(NAME, "attempt", attempt)?.course;
        let place = output(NAME, "fd", fd)?;
        place.write(course.fd().number(NAME, |made| {
            if course.has_ended() {
                made.signal();
            }
        })?);
        Ok(())
    })
}

/// Takes the outcome of an acquire without a `done`, once. The attempt must still be freed.
///
/// Any thread, callbacks included; does not block. With ZOK `*guard` is the program's: end it with zkl_guard_release or
/// zkl_guard_free.
///
/// ZOK. ZKL_PENDING: it has not ended. ZKL_CANCELLED. ZNOTHING: the outcome was taken before. ZBADARGUMENTS: an
/// argument is NULL, or the attempt has a `done`. Otherwise as zkl_lock_acquire.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_attempt_take(
    attempt: Option<&zkl_attempt>,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_attempt_take";
    status(|| {
        let attempt = given(NAME, "attempt", attempt)?;
        let place = output(NAME, "guard", guard)?;
        let Some(Kept { course, boxed }) = &attempt.kept else {
            return Err(Failure::bad_argument(NAME, "the outcome goes to a callback"));
        };
        if !course.has_ended() {
            return Err(Failure::new(codes::ZKL_PENDING, format!("{NAME}: it has not ended yet")));
        }
        let acquired = course.deliver().ok_or_else(|| has_its_outcome(NAME))??;
        if let Some(boxed) = boxed.lock().take() {
            place.write(Box::into_raw(boxed(acquired)));
        }
        Ok(())
    })
}

fn has_its_outcome(function: &str) -> Failure {
    Failure::new(Code::NOTHING.as_raw(), format!("{function}: it has its outcome"))
}

/// Cancels an acquire or other wait. After ZOK, the outcome is ZKL_CANCELLED, and no claim is left. Does not wait for
/// that.
///
/// Any thread, callbacks included.
///
/// ZOK, also if it was cancelled before. ZNOTHING: `done` has started, or the outcome was taken. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_attempt_cancel(attempt: Option<&zkl_attempt>) -> c_int {
    const NAME: &str = "zkl_attempt_cancel";
    status(|| {
        let attempt = given(NAME, "attempt", attempt)?;
        if attempt.course.cancel(&attempt.duties) {
            return Ok(());
        }
        Err(has_its_outcome(NAME))
    })
}

/// Frees the attempt and closes its descriptor. An attempt with a `done` continues; this does not cancel it. One
/// without is cancelled, unless its outcome was taken. Waits only if this was the last object of its client: see
/// zkl_client_free.
///
/// Any thread, callbacks included (its own `done` among them). NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_attempt_free(attempt: Option<Box<zkl_attempt>>) {
    free(attempt);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_attempt>();
};
