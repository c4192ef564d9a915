//! Work that is handed out, each piece at least once.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, Object, c_string, free, given, may_block, output, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::zkl::async_calls::zkl_result_fn;
use crate::capi::zkl::attempt::{self, zkl_attempt};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options;
use crate::capi::zkl::recipe::{Recipe, zkl_recipe_options};
use crate::capi::zkl::replies::{Delivery as Reply, code, deliver, no_done, with_code};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{ZKL_FOREVER, limited, timeout, wait};
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::LockError;
use crate::process::inherited;
use crate::recipes::{DEFAULT_PRIORITY, Delivery, WorkQueue};
use crate::runtime::Pending;
use crate::znode::Acl;

/// The priority of elements that are put by programs without priorities, such as those of zoo_queue.h.
pub const ZKL_DEFAULT_PRIORITY: c_int = 128;
const _: () = assert!(ZKL_DEFAULT_PRIORITY == DEFAULT_PRIORITY as c_int);

/// A queue of work; see zkl_queue_new.
#[allow(non_camel_case_types)]
pub struct zkl_queue {
    recipe: Recipe,
}

/// An element of a queue that was taken; see zkl_queue_take.
#[allow(non_camel_case_types)]
pub struct zkl_delivery {
    /// Taken out when it is done.
    delivery: Option<Delivery>,
    /// What claims it.
    guard: zkl_guard,
    path: CString,
}

/// Called with how a take ended: `rc` as zkl_queue_take returns it, or ZKL_CANCELLED. With ZOK `delivery` is the program's,
/// otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_delivery_fn =
    Option<unsafe extern "C" fn(rc: c_int, delivery: *mut zkl_delivery, userdata: *mut c_void)>;

impl Object for zkl_queue {
    fn is_inherited(&self) -> bool {
        self.recipe.is_inherited()
    }
}

impl Object for zkl_delivery {
    fn is_inherited(&self) -> bool {
        self.guard.is_inherited()
    }
}

impl zkl_delivery {
    fn boxed(delivery: Delivery, shared: Arc<Shared>) -> Box<zkl_delivery> {
        let guard = zkl_guard::new(Arc::clone(&delivery.guard), shared);
        let path = c_string(delivery.path());
        Box::new(zkl_delivery { delivery: Some(delivery), guard, path })
    }

    /// Begins to remove the element: its guard is given up, and its claim goes with that.
    fn done(&mut self) -> Option<Pending<(), LockError>> {
        // Before that, so that nobody else has the claim.
        drop(self.guard.give_up());
        self.delivery.take().map(Delivery::done)
    }
}

fn queue_at(client: &Client, path: &str, acl: Vec<Acl>) -> WorkQueue {
    client.queue(path).acl(acl)
}

/// Takes: 0 milliseconds look once.
fn taking(queue: &WorkQueue, within: Option<std::time::Duration>) -> Pending<Delivery, LockError> {
    match within {
        Some(within) if within.is_zero() => {
            let path = queue.path().to_owned();
            queue.try_take().map(move |taken| {
                taken?.ok_or_else(|| {
                    let detail = "there is no element that nobody has claimed";
                    let late = Error::with_detail("take", &path, Code::OPERATION_TIMEOUT, detail);
                    LockError::store(&path, late)
                })
            })
        }
        within => limited(queue.take(), within),
    }
}

/// Makes a queue of work at a path: each element that is put is delivered at least once, to one consumer at a time. Sends
/// nothing. Elements are persistent znodes, as zoo_queue.h has them; who works on one has a claim beside the queue (in
/// `zl-claims-NAME`). It is for hundreds of elements, not for a million.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*queue` is the program's: free it with zkl_queue_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
/// empty or malformed. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_queue_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_recipe_options,
    queue: Option<&mut MaybeUninit<*mut zkl_queue>>,
) -> c_int {
    const NAME: &str = "zkl_queue_new";
    status(|| {
        let place = output(NAME, "queue", queue)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        place.write(Box::into_raw(Box::new(zkl_queue { recipe })));
        Ok(())
    })
}

/// Frees the queue. Its elements stay, and so do deliveries and attempts.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_queue_free(queue: Option<Box<zkl_queue>>) {
    free(queue);
}

/// Puts an element of `len` bytes (NULL only with 0): before all whose `priority` is a larger number, and behind those
/// that have the same. 0 to 255; ZKL_DEFAULT_PRIORITY where none matters. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection, and finds out there whether it was done: nothing is put twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was put. ZBADARGUMENTS for a NULL,
/// another priority or negative timeout, or an element that is larger than a request takes; ZNOAUTH; ZINVALIDSTATE,
/// ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a fork; ZKL_WOULD_DEADLOCK
/// inside a callback of the C client: nothing was done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_queue_put(
    queue: Option<&zkl_queue>,
    data: *const c_void,
    len: usize,
    priority: c_int,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_queue_put";
    status(|| {
        let recipe = &given(NAME, "queue", queue)?.recipe;
        // SAFETY: the header asks for `len` bytes.
        let data = unsafe { options::bytes(NAME, data, len) }?;
        let wrong = |_| Failure::bad_argument(NAME, "a priority is 0 to 255");
        let priority = u8::try_from(priority).map_err(wrong)?;
        let ((), _) = recipe.call(NAME, timeout_ms, |client, path, acl| {
            queue_at(client, path, acl).put_with_priority(priority, data)
        })?;
        Ok(())
    })
}

/// The data of the element that is first, whether somebody works on it or not; it stays where it is. Up to `size` bytes are
/// copied to `buffer` (NULL only with 0); `*len` is how many it has. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it is read again. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK; ZNOTHING when the queue is empty; ZBADARGUMENTS for a NULL or another negative timeout; ZOPERATIONTIMEOUT when no
/// server answers; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
/// also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_queue_peek(
    queue: Option<&zkl_queue>,
    timeout_ms: c_int,
    buffer: *mut c_void,
    size: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    const NAME: &str = "zkl_queue_peek";
    status(|| {
        let recipe = &given(NAME, "queue", queue)?.recipe;
        let place = output(NAME, "len", len)?;
        if buffer.is_null() && size > 0 {
            return Err(Failure::bad_argument(NAME, "buffer is NULL"));
        }
        let peek = |client: &Client, path: &str, acl| queue_at(client, path, acl).peek();
        let (first, _) = recipe.call(NAME, timeout_ms, peek)?;
        let empty = || Failure::new(Code::NOTHING.as_raw(), format!("{NAME}: the queue is empty"));
        let first = first.ok_or_else(empty)?;
        let copied = first.len().min(size);
        if copied > 0 {
            // SAFETY: not null, the header asks for `size` bytes, and they are nobody else's.
            unsafe { std::ptr::copy_nonoverlapping(first.as_ptr(), buffer.cast(), copied) };
        }
        place.write(first.len());
        Ok(())
    })
}

/// Takes the first element that nobody has claimed, waiting for it up to `timeout_ms`: ZKL_FOREVER waits as long as it
/// takes, 0 looks once.
///
/// The element stays in the queue, claimed: zkl_delivery_done removes it; zkl_delivery_free, the loss of the session and
/// the end of the process give it to another consumer. So it may be worked on twice, by one after the other: see
/// zkl_delivery_guard.
///
/// On connection loss it goes on with the next connection or session. When it fails, nothing is taken. `pthread_cancel`
/// waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*delivery` is the program's: end it with
/// zkl_delivery_done or zkl_delivery_free.
///
/// ZOK; ZOPERATIONTIMEOUT when the time is over; ZBADARGUMENTS for a NULL or another negative timeout; ZNOAUTH;
/// ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a
/// fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_queue_take(
    queue: Option<&zkl_queue>,
    timeout_ms: c_int,
    delivery: Option<&mut MaybeUninit<*mut zkl_delivery>>,
) -> c_int {
    const NAME: &str = "zkl_queue_take";
    status(|| {
        let recipe = &given(NAME, "queue", queue)?.recipe;
        let place = output(NAME, "delivery", delivery)?;
        let within = timeout(NAME, timeout_ms)?;
        let (taken, shared) = recipe.call(NAME, ZKL_FOREVER, |client, path, acl| {
            taking(&queue_at(client, path, acl), within)
        })?;
        place.write(Box::into_raw(zkl_delivery::boxed(taken, shared)));
        Ok(())
    })
}

/// Begins to take an element, and returns. `done` is called exactly once, on zklock's callback thread of the client, with
/// the outcome; `finalizer`, if there is one, after it. They may be called before this returns. When this returns an error,
/// neither is called.
///
/// The attempt goes on when the queue and the client are freed; it ends by its outcome, by zkl_attempt_cancel, after which
/// nothing is taken, or with ZINVALIDSTATE or ZCLOSING when the client is detached or the adopted handle closed. On
/// connection loss it goes on as zkl_queue_take does. `attempt` may be NULL; otherwise `*attempt`, written before `done` can
/// run, is the program's: free it with zkl_attempt_free.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; ZBADARGUMENTS for a NULL queue or done, or a negative timeout other than ZKL_FOREVER;
/// ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_queue_take_async(
    queue: Option<&zkl_queue>,
    timeout_ms: c_int,
    done: zkl_delivery_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_queue_take_async";
    status(|| {
        let recipe = &given(NAME, "queue", queue)?.recipe;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let shared = recipe.shared();
        let on = Arc::clone(&shared);
        let delivery = Reply {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |taken, userdata| {
                let (rc, taken) = code(taken);
                let taken = taken.map(|taken| zkl_delivery::boxed(taken, on));
                let taken = taken.map_or(std::ptr::null_mut(), Box::into_raw);
                // SAFETY: the program gave the function for these arguments, to be called on this thread; the
                // delivery is consumed, so it is called once.
                unsafe { done(rc, taken, userdata) };
            }),
        };
        let what = format!("take {}", recipe.path().escape_debug());
        let queue = recipe.on(NAME, &shared, queue_at)?;
        attempt::begin(&shared, &what, attempt, delivery, || taking(&queue, within));
        Ok(())
    })
}

/// The element's data; `len` may be NULL, otherwise it gets how many bytes there are.
///
/// Any thread. Returns bytes that belong to the delivery, not ended by a NUL; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_data(
    delivery: Option<&zkl_delivery>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const c_void {
    let data = delivery.and_then(|delivery| Some(delivery.delivery.as_ref()?.data()));
    if let Some(place) = len {
        place.write(data.map_or(0, <[u8]>::len));
    }
    data.map_or(std::ptr::null(), |data| data.as_ptr().cast())
}

/// The path of the element.
///
/// Any thread. Returns a string that belongs to the delivery; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_path(delivery: Option<&zkl_delivery>) -> *const c_char {
    delivery.map_or(std::ptr::null(), |delivery| delivery.path.as_ptr())
}

/// The claim on the element, as the guard of a lock: zkl_guard_state says whether the element may be another's by now,
/// zkl_guard_on_lost and zkl_guard_fd report that, before it is; zkl_guard_token grows with each delivery of the element,
/// so that a store can refuse what an earlier consumer writes; zkl_guard_set writes only while it is claimed.
///
/// Any thread. The guard belongs to the delivery, ends with it, and must neither be released nor freed. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_guard(delivery: Option<&zkl_delivery>) -> Option<&zkl_guard> {
    delivery.map(|delivery| &delivery.guard)
}

/// What the program gives up, to end it; one of another process is freed.
fn ending(
    function: &'static str,
    delivery: Option<Box<zkl_delivery>>,
) -> Result<Box<zkl_delivery>, Failure> {
    let null = || Failure::bad_argument(function, "delivery is NULL");
    let delivery = delivery.ok_or_else(null)?;
    if delivery.is_inherited() {
        free(Some(delivery));
        return Err(inherited(function, "").into());
    }
    Ok(delivery)
}

/// Removes the element: it is done, and delivered to nobody any more. Waits for that up to `timeout_ms`, or ZKL_FOREVER.
/// Frees the delivery, whatever it returns.
///
/// On connection loss it waits for the next connection, and finds out there whether it was removed. `pthread_cancel` waits
/// until it has ended. In the child of a fork it only frees.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZKL_NOT_HELD when the claim was lost before: it is delivered again. ZNONODE when another program has removed it,
/// ZBADVERSION when one has changed it. ZKL_OUTCOME_UNKNOWN: if it was not removed, it is delivered again. ZBADARGUMENTS for NULL, or another negative timeout, and
/// ZKL_WOULD_DEADLOCK inside a callback of the C client: it is delivered again. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_done(
    delivery: Option<Box<zkl_delivery>>,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_delivery_done";
    status(|| {
        let mut delivery = ending(NAME, delivery)?;
        let within = timeout(NAME, timeout_ms)?;
        may_block(NAME)?;
        delivery.done().map_or(Ok(()), |done| wait(done, within))
    })
}

/// As zkl_delivery_done, without waiting: the removal is submitted when this returns, and the delivery freed, also when this
/// returns an error. `done` is called exactly once, on zklock's callback thread of the client, with what zkl_delivery_done
/// would have returned; `finalizer`, if there is one, after it. They may be called before this returns. When this returns
/// an error, neither is called.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; ZBADARGUMENTS for a NULL delivery or done, or another negative timeout, ZSYSTEMERROR when there is
/// no thread to be had: it is delivered again. Everything else is reported by `done`.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_done_async(
    delivery: Option<Box<zkl_delivery>>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_delivery_done_async";
    status(|| {
        let mut delivery = ending(NAME, delivery)?;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let shared = Arc::clone(&delivery.guard.shared);
        let line = shared.callbacks.line(NAME)?;
        let Some(removed) = delivery.done() else { return Ok(()) };
        let tell = with_code(done, &shared);
        let reply = Reply {
            line,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |removed, userdata| {
                // The last of a client ends its session.
                drop(delivery);
                tell(removed, userdata);
            }),
        };
        deliver(NAME, &shared, limited(removed, within), reply);
        Ok(())
    })
}

/// Gives the element back, in the background: another consumer takes it. Frees the delivery. Does not wait, unless this was
/// the last of its client: see zkl_client_free. In the child of a fork it only frees.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_free(delivery: Option<Box<zkl_delivery>>) {
    free(delivery);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_queue>();
    usable_by_several_threads::<zkl_delivery>();
};
