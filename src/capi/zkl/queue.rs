//! Work that is handed out, each piece at least once.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{
    Failure, Object, Unfreed, c_string, free, given, may_block, output, status,
};
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

/// The priority of elements from programs without priorities, such as those of zoo_queue.h.
pub const ZKL_DEFAULT_PRIORITY: c_int = 128;
const _: () = assert!(ZKL_DEFAULT_PRIORITY == DEFAULT_PRIORITY as c_int);

/// A work queue; see zkl_queue_new.
#[allow(non_camel_case_types)]
pub struct zkl_queue {
    recipe: Recipe,
}

/// An element of a queue that was taken; see zkl_queue_take.
#[allow(non_camel_case_types)]
pub struct zkl_delivery {
    /// Taken out when it is done.
    delivery: Option<Delivery>,
    /// The guard of the element's claim.
    guard: zkl_guard,
    path: CString,
}

/// The outcome of a take: `rc` as from zkl_queue_take, or ZKL_CANCELLED. With ZOK `delivery` is the program's;
/// otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_delivery_fn =
    Option<unsafe extern "C" fn(rc: c_int, delivery: *mut zkl_delivery, userdata: *mut c_void)>;

impl Object for zkl_queue {
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
    }
}

impl Object for zkl_delivery {
    fn unfreed(&self) -> &Unfreed {
        self.guard.unfreed()
    }
}

impl zkl_delivery {
    fn boxed(delivery: Delivery, shared: Arc<Shared>) -> Box<zkl_delivery> {
        let guard = zkl_guard::new(Arc::clone(&delivery.guard), shared);
        let path = c_string(delivery.path());
        Box::new(zkl_delivery { delivery: Some(delivery), guard, path })
    }

    /// Begins to remove the element. The program's guard ends now, the claim with the removal.
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

/// Makes a work queue at a path: each element is delivered at least once, to one consumer at a time. Sends nothing.
/// Elements are persistent znodes, as in zoo_queue.h. A consumer's claim is beside the queue (in `zl-claims-NAME`). Use
/// it for hundreds of elements, not for a million.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*queue` is the program's: free it with zkl_queue_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
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

/// Frees the queue. Its elements, deliveries and attempts stay.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_queue_free(queue: Option<Box<zkl_queue>>) {
    free(queue);
}

/// Puts an element of `len` bytes (NULL only with 0). `priority` is 0 to 255, with 0 delivered first; use
/// ZKL_DEFAULT_PRIORITY if it does not matter. The element goes behind those of the same priority. Waits up to
/// `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection and looks up there whether it was done. Nothing is put twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
/// ZBADARGUMENTS: an argument is NULL, another priority or negative timeout, or the element exceeds a request. ZNOAUTH.
/// ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork.
/// ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// Copies the data of the first element, claimed or not, without taking it: up to `size` bytes to `buffer` (NULL only
/// with 0). `*len` gets its full length. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it is read again. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZNOTHING: the queue is empty. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
/// ZOPERATIONTIMEOUT: no server answers. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client
/// is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// Takes the first unclaimed element, and waits for one up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks
/// once.
///
/// The element stays in the queue, claimed, until zkl_delivery_done removes it. zkl_delivery_free, the loss of the
/// session and the end of the process give it to another consumer. So the work may be done twice, one after the other:
/// see zkl_delivery_guard.
///
/// On connection loss it continues on the next connection or session. After an error nothing is taken. `pthread_cancel`
/// waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*delivery` is the program's: end it
/// with zkl_delivery_done or zkl_delivery_free.
///
/// ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
/// ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the
/// child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// Starts to take an element and returns. zklock calls `done` exactly once with the outcome, on the client's callback
/// thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
/// is called.
///
/// The attempt continues when the queue and the client are freed. It ends with its outcome, or by zkl_attempt_cancel,
/// which takes nothing. If the client is detached or the adopted handle closed, it ends with ZINVALIDSTATE or ZCLOSING.
/// On connection loss it behaves as zkl_queue_take. `attempt` may be NULL. Otherwise `*attempt` is written before
/// `done` can run, and is the program's: free it with zkl_attempt_free.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `queue` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
/// ZSYSTEMERROR: no thread is available. `done` reports everything else.
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

/// The element's data. `len` may be NULL; otherwise it gets the number of bytes.
///
/// Any thread. The delivery owns the bytes, which have no terminating NUL; NULL for NULL.
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
/// Any thread. The delivery owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_path(delivery: Option<&zkl_delivery>) -> *const c_char {
    delivery.map_or(std::ptr::null(), |delivery| delivery.path.as_ptr())
}

/// The claim on the element, as the guard of a lock. zkl_guard_state tells whether another consumer may have the
/// element by now. zkl_guard_on_lost and zkl_guard_fd report that before it happens. zkl_guard_token grows with each
/// delivery of the element, so a store can reject writes of an earlier consumer. zkl_guard_set writes only while the
/// element is claimed.
///
/// Any thread. The delivery owns the guard and ends it: do not release or free it. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_delivery_guard(delivery: Option<&zkl_delivery>) -> Option<&zkl_guard> {
    delivery.map(|delivery| &delivery.guard)
}

/// The delivery that the program hands over to end it. One inherited from another process is freed.
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

/// Removes the element: it is done and will not be delivered again. Waits up to `timeout_ms`, or ZKL_FOREVER. Frees the
/// delivery, whatever it returns.
///
/// On connection loss it waits for the next connection and looks up there whether it was removed. `pthread_cancel`
/// waits until it has ended. In the child of a fork it only frees.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZKL_NOT_HELD: the claim was lost before, and the element is delivered again. ZNONODE: another program has
/// removed it. ZBADVERSION: another program has changed it. ZKL_OUTCOME_UNKNOWN: if it was not removed, it is delivered
/// again. ZBADARGUMENTS: NULL, or another negative timeout. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
/// After either, it is delivered again. ZINVALIDSTATE: in the child of a fork.
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

/// As zkl_delivery_done, but does not wait. When this returns, the removal is submitted and the delivery freed, even
/// after an error. zklock calls `done` exactly once with the result of zkl_delivery_done, on the client's callback
/// thread, and then `finalizer`, if it is not NULL. Both may run before this returns. If this returns an error, neither
/// is called.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `delivery` or `done` is NULL, or another negative timeout. ZSYSTEMERROR: no
/// thread is available. After an error the element is delivered again. `done` reports everything else.
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
        let reply = Reply {
            line,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_code(done, &shared)),
        };
        deliver(NAME, &shared, limited(removed, within), reply);
        Ok(())
    })
}

/// Gives the element back in the background: another consumer takes it. Frees the delivery. Waits only if this was the
/// last object of its client: see zkl_client_free. In the child of a fork it only frees.
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
