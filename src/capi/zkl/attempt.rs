//! What waits for others and delivers its outcome by a callback, and can be cancelled.

use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::capi::boundary::{Failure, Object, free, given, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{contend, zkl_lock};
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::replies::{Delivery, code, no_done};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::timeout;
use crate::client::{Duties, Duty};
use crate::error::Code;
use crate::lock::Guard;
use crate::process::Process;
use crate::runtime::{Latest, Pending};

/// Told how an acquire ended: `rc` as zkl_lock_acquire returns it, or ZKL_CANCELLED. With ZOK `guard`
/// is the program's, otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_done_fn =
    Option<unsafe extern "C" fn(rc: c_int, guard: *mut zkl_guard, userdata: *mut c_void)>;

type Done = unsafe extern "C" fn(c_int, *mut zkl_guard, *mut c_void);

/// An acquire under way, or whatever else waits for others; see zkl_lock_acquire_async.
#[allow(non_camel_case_types)]
pub struct zkl_attempt {
    course: Arc<dyn Cancel>,
    duties: Arc<Duties>,
    process: Process,
}

impl Object for zkl_attempt {
    fn is_inherited(&self) -> bool {
        !self.process.is_this()
    }
}

/// What an attempt and its work know of each other.
struct Course<T> {
    phase: Latest<Phase>,
    /// From the cancellation until the work is over: what it has made must not be left.
    giving_up: Mutex<Option<Duty>>,
    /// How it has ended, until that is delivered.
    ended: Mutex<Option<Result<T, Failure>>>,
}

/// A course, of whatever it gives.
trait Cancel: Send + Sync {
    /// `false`: it is too late.
    fn cancel(&self, duties: &Arc<Duties>) -> bool;
}

impl<T> Course<T> {
    fn begin() -> Arc<Course<T>> {
        let phase = Latest::new(Phase::UnderWay);
        let (giving_up, ended) = (Mutex::default(), Mutex::default());
        Arc::new(Course { phase, giving_up, ended })
    }

    /// If it has ended, it has ended by being given up: drops what it gave, whose release is a duty of its own. Others
    /// need not wait for the callback thread then, which may be waiting for them.
    fn give_up(&self) {
        let ended = self.ended.lock().as_mut().map(|ended| mem::replace(ended, Err(cancelled())));
        if let Some(ended) = ended {
            drop(ended);
            drop(self.giving_up.lock().take());
        }
    }
}

impl<T: Send> Cancel for Course<T> {
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
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    UnderWay,
    Cancelled,
    /// The callback is being run, or has been.
    Delivered,
}

/// The outcome of an attempt, delivered when this is dropped: wherever it ends, also where
/// it is dropped itself because its client is closed.
struct Outcome<T: Send + 'static> {
    result: Result<T, Failure>,
    course: Arc<Course<T>>,
    delivery: Option<Delivery<T>>,
}

impl<T: Send + 'static> Outcome<T> {
    /// What holds until there is another.
    fn unknown_yet(what: &str, course: Arc<Course<T>>, delivery: Delivery<T>) -> Outcome<T> {
        let message = format!("{what}: the client is closed");
        let closed = Failure::new(Code::INVALID_STATE.as_raw(), message);
        Outcome { result: Err(closed), course, delivery: Some(delivery) }
    }

    fn is(mut self, result: Result<T, Failure>) {
        self.result = result;
    }
}

impl<T: Send + 'static> Drop for Outcome<T> {
    fn drop(&mut self) {
        let Some(delivery) = self.delivery.take() else { return };
        let taken = Failure::new(Code::NOTHING.as_raw(), String::new());
        let result = mem::replace(&mut self.result, Err(taken));
        let (course, Delivery { line, userdata, done }) = (Arc::clone(&self.course), delivery);
        *course.ended.lock() = Some(result);
        if course.phase.get() == Phase::Cancelled {
            course.give_up();
        }
        line.run(move || {
            let mut is_cancelled = false;
            course.phase.update(|phase| {
                is_cancelled = *phase == Phase::Cancelled;
                *phase = Phase::Delivered;
                false
            });
            if is_cancelled {
                course.give_up();
            }
            let result = course.ended.lock().take();
            done(result.unwrap_or_else(|| Err(cancelled())), userdata.pointer());
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
        let duties = Arc::clone(shared.duties());
        let (course, process) = (Arc::clone(&course) as _, Process::this());
        place.write(Box::into_raw(Box::new(zkl_attempt { course, duties, process })));
    }
    let outcome = Outcome::unknown_yet(what, Arc::clone(&course), delivery);
    let mut work = work();
    // What ends at once is delivered so, also where the client is closed and runs nothing any more.
    let mut nobody = Context::from_waker(Waker::noop());
    if let Poll::Ready(result) = Pin::new(&mut work).poll(&mut nobody) {
        return outcome.is(result.map_err(Failure::from));
    }
    // The delivery keeps `shared`: a detach reaches the attempt even if its client has moved to another handle.
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

/// What guards on that session are to the program.
pub(super) fn guards_of(
    shared: &Arc<Shared>,
) -> impl FnOnce(Guard) -> Box<zkl_guard> + Send + use<> {
    let shared = Arc::clone(shared);
    move |guard| zkl_guard::boxed(guard, shared)
}

/// Begins to acquire the lock, and returns. `done` is called exactly once, on zklock's callback thread
/// of the client, with the outcome; `finalizer`, if there is one, after it. They may be called before
/// this returns. When this returns an error, neither is called.
///
/// `done` may block and may call any function of zklock. Callbacks of one client come one after the
/// other. The attempt goes on when the lock and the client are freed; it ends by its outcome, by
/// zkl_attempt_cancel, or with ZINVALIDSTATE or ZCLOSING when the client is detached or the adopted
/// handle closed. On connection loss it goes on as zkl_lock_acquire does.
///
/// `timeout_ms`: as in zkl_lock_acquire. `userdata` is passed on as it is. `attempt` may be NULL;
/// otherwise `*attempt`, written before `done` can run, is the program's: free it with
/// zkl_attempt_free.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; ZBADARGUMENTS for a NULL lock or done, or a negative timeout other than
/// ZKL_FOREVER; ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
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
        let done = done.ok_or_else(|| no_done(NAME))?;
        let OnASession { lock, shared, .. } = lock.at_present();
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_guard(done, guards_of(&shared))),
        };
        let what = format!("acquire {}", lock.path().escape_debug());
        begin(&shared, &what, attempt, delivery, || contend(&lock, within));
        Ok(())
    })
}

/// Gives an acquire up, or whatever else waits for others. After ZOK, `done` comes with ZKL_CANCELLED, and no claim is
/// left. Does not wait for that.
///
/// Any thread, callbacks included.
///
/// ZOK, also when it was cancelled before; ZNOTHING when `done` has been called or is being called;
/// ZBADARGUMENTS for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_attempt_cancel(attempt: Option<&zkl_attempt>) -> c_int {
    const NAME: &str = "zkl_attempt_cancel";
    status(|| {
        let attempt = given(NAME, "attempt", attempt)?;
        if attempt.course.cancel(&attempt.duties) {
            return Ok(());
        }
        Err(Failure::new(Code::NOTHING.as_raw(), format!("{NAME}: it has its outcome")))
    })
}

/// Frees the handle on an attempt. The attempt itself goes on: this alone does not cancel it.
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
