//! Acquires that tell their outcome by a callback.

use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::capi::boundary::{Failure, Object, free, given, output, status};
use crate::capi::callbacks::{Line, Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{contend, zkl_lock};
use crate::capi::zkl::present::{OnASession, Shared};
use crate::capi::zkl::timeout::timeout;
use crate::client::{Duties, Duty};
use crate::error::Code;
use crate::lock::Guard;
use crate::process::Process;
use crate::runtime::Latest;

/// Told how an acquire ended: `rc` as zkl_lock_acquire returns it, or ZKL_CANCELLED. With ZOK `guard`
/// is the program's, otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_done_fn =
    Option<unsafe extern "C" fn(rc: c_int, guard: *mut zkl_guard, userdata: *mut c_void)>;

type Done = unsafe extern "C" fn(c_int, *mut zkl_guard, *mut c_void);

/// An acquire under way; see zkl_lock_acquire_async.
#[allow(non_camel_case_types)]
pub struct zkl_attempt {
    course: Arc<Course>,
    duties: Arc<Duties>,
    process: Process,
}

impl Object for zkl_attempt {
    fn is_inherited(&self) -> bool {
        !self.process.is_this()
    }
}

/// What an attempt and its acquire know of each other.
struct Course {
    phase: Latest<Phase>,
    /// From the cancellation until the acquire is over: its claim must not be left.
    giving_up: Mutex<Option<Duty>>,
    /// How it has ended, until that is delivered.
    ended: Mutex<Option<Result<Guard, Failure>>>,
}

impl Course {
    /// If it has ended, it has ended by being given up: drops the guard, whose release is a duty of its own. Others
    /// need not wait for the callback thread then, which may be waiting for them.
    fn give_up(&self) {
        let ended = self.ended.lock().as_mut().map(|ended| mem::replace(ended, Err(cancelled())));
        if let Some(ended) = ended {
            drop(ended);
            drop(self.giving_up.lock().take());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    UnderWay,
    Cancelled,
    /// The callback is being run, or has been.
    Delivered,
}

/// The outcome of an acquire, delivered when this is dropped: wherever the acquire ends, also where
/// it is dropped itself because its client is closed.
struct Outcome {
    result: Result<Guard, Failure>,
    delivery: Option<Delivery>,
}

struct Delivery {
    course: Arc<Course>,
    done: Done,
    userdata: Userdata,
    shared: Arc<Shared>,
    line: Line,
}

impl Outcome {
    /// What holds until there is another.
    fn unknown_yet(path: &str, delivery: Delivery) -> Outcome {
        let message = format!("acquire {}: the client is closed", path.escape_debug());
        let closed = Failure::new(Code::INVALID_STATE.as_raw(), message);
        Outcome { result: Err(closed), delivery: Some(delivery) }
    }

    fn is(mut self, result: Result<Guard, Failure>) {
        self.result = result;
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        let Some(delivery) = self.delivery.take() else { return };
        let taken = Failure::new(Code::NOTHING.as_raw(), String::new());
        let result = mem::replace(&mut self.result, Err(taken));
        let Delivery { course, done, userdata, shared, line } = delivery;
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
            let (rc, guard) = match result.unwrap_or_else(|| Err(cancelled())) {
                Ok(guard) => {
                    let guard = zkl_guard::boxed(guard, shared);
                    (Code::OK.as_raw(), Box::into_raw(guard))
                }
                Err(failure) => {
                    drop(shared);
                    (failure.tell(), std::ptr::null_mut())
                }
            };
            // SAFETY: the program gave the function for these arguments, to be called on this
            // thread; the delivery is consumed, so it is called once.
            unsafe { done(rc, guard, userdata.pointer()) };
            userdata.finish();
        });
    }
}

fn cancelled() -> Failure {
    Failure::new(codes::ZKL_CANCELLED, "acquire: cancelled".to_owned())
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
        let done = done.ok_or_else(|| Failure::bad_argument(NAME, "done is NULL"))?;
        let OnASession { lock, shared, .. } = lock.at_present();
        let line = shared.callbacks.line(NAME)?;
        let phase = Latest::new(Phase::UnderWay);
        let (giving_up, ended) = (Mutex::default(), Mutex::default());
        let course = Arc::new(Course { phase, giving_up, ended });
        if attempt.is_some() {
            let duties = Arc::clone(shared.client.inner().duties());
            let (course, process) = (Arc::clone(&course), Process::this());
            let handle = Box::new(zkl_attempt { course, duties, process });
            output(NAME, "attempt", attempt)?.write(Box::into_raw(handle));
        }
        let delivery = Delivery {
            course: Arc::clone(&course),
            done,
            userdata: Userdata::new(userdata, finalizer),
            shared: Arc::clone(&shared),
            line,
        };
        let outcome = Outcome::unknown_yet(lock.path(), delivery);
        let mut acquire = contend(&lock, within);
        // What ends at once is delivered so, also where the client is closed and runs nothing any more.
        let mut nobody = Context::from_waker(Waker::noop());
        if let Poll::Ready(result) = Pin::new(&mut acquire).poll(&mut nobody) {
            outcome.is(result.map_err(Failure::from));
            return Ok(());
        }
        let inner = Arc::clone(shared.client.inner());
        inner.spawn(async move {
            let given_up = async {
                let is_cancelled = |phase: &Phase| (*phase == Phase::Cancelled).then_some(());
                course.phase.wait_for(is_cancelled).await;
                Err(cancelled())
            };
            let acquired = async { acquire.await.map_err(Failure::from) };
            outcome.is(futures_lite::future::or(acquired, given_up).await);
        });
        Ok(())
    })
}

/// Gives an acquire up. After ZOK, `done` comes with ZKL_CANCELLED, and no claim is left. Does not wait
/// for that.
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
        let mut is_late = false;
        attempt.course.giving_up.lock().get_or_insert_with(|| attempt.duties.begin());
        attempt.course.phase.update(|phase| {
            is_late = *phase == Phase::Delivered;
            let first = *phase == Phase::UnderWay;
            if first {
                *phase = Phase::Cancelled;
            }
            first
        });
        if is_late {
            drop(attempt.course.giving_up.lock().take());
            let message = format!("{NAME}: it has its outcome");
            return Err(Failure::new(Code::NOTHING.as_raw(), message));
        }
        attempt.course.give_up();
        Ok(())
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
