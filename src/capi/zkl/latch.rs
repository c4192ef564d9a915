//! Latches: they open when all that is waited for has happened.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::capi::boundary::{Failure, Object, free, given, output, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::zkl::async_calls::zkl_result_fn;
use crate::capi::zkl::attempt::{self, zkl_attempt};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::recipe::{Recipe, zkl_recipe_options};
use crate::capi::zkl::replies::{Delivery, no_done, with_code};
use crate::capi::zkl::timeout::{ZKL_FOREVER, limited, timeout};
use crate::client::Client;
use crate::error::{Code, Error};
use crate::recipes::Latch;
use crate::runtime::Pending;
use crate::znode::Acl;

/// A latch that is counted down; see zkl_latch_new.
#[allow(non_camel_case_types)]
pub struct zkl_latch {
    recipe: Recipe,
}

impl Object for zkl_latch {
    fn is_inherited(&self) -> bool {
        self.recipe.is_inherited()
    }
}

fn latch_at(client: &Client, path: &str, acl: Vec<Acl>) -> Latch {
    client.latch(path).acl(acl)
}

/// Waits for an operation that gives what is left.
fn call(
    function: &'static str,
    latch: Option<&zkl_latch>,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
    begin: impl FnOnce(Latch) -> Pending<u32, Error>,
) -> Result<(), Failure> {
    let recipe = &given(function, "latch", latch)?.recipe;
    let on = |client: &Client, path: &str, acl| begin(latch_at(client, path, acl));
    let (now, _) = recipe.call(function, timeout_ms, on)?;
    if let Some(place) = left {
        place.write(now);
    }
    Ok(())
}

/// Waits until it is open: 0 milliseconds look once.
fn opened(latch: &Latch, within: Option<Duration>) -> Pending<()> {
    if within != Some(Duration::ZERO) {
        return limited(latch.opened(), within);
    }
    let path = latch.path().to_owned();
    latch.left().map(move |left| match left {
        Ok(0) => Ok(()),
        Err(error) if !error.is_no_node() => Err(error),
        _ => Err(Error::with_detail("opened", &path, Code::OPERATION_TIMEOUT, "it is not open")),
    })
}

/// Makes a latch at a path: it is set to a number of events, counted down once for each, and opens at zero. It opens once,
/// and stays open. Sends nothing. It is a persistent znode with what is left in decimal digits.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*latch` is the program's: free it with zkl_latch_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
/// empty or malformed. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_latch_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_recipe_options,
    latch: Option<&mut MaybeUninit<*mut zkl_latch>>,
) -> c_int {
    const NAME: &str = "zkl_latch_new";
    status(|| {
        let place = output(NAME, "latch", latch)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        place.write(Box::into_raw(Box::new(zkl_latch { recipe })));
        Ok(())
    })
}

/// Frees the latch, which stays as it is for all. Attempts go on.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_free(latch: Option<Box<zkl_latch>>) {
    free(latch);
}

/// Sets it to a number of events, unless it is set already; a latch of none is open at once. `left` may be NULL; otherwise
/// it gets what is left to be counted. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection, and finds out there whether it was done: nothing is counted twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was done. ZBADARGUMENTS for a NULL,
/// another negative timeout, or a path at which something else is; ZNOAUTH; ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED
/// when the client is closed, the first also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client:
/// nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_set(
    latch: Option<&zkl_latch>,
    events: u32,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    status(|| call("zkl_latch_set", latch, timeout_ms, left, |latch| latch.set(events)))
}

/// Counts one event; at zero it opens, and counting on does nothing. `left` may be NULL; otherwise it gets what is left.
///
/// Threads, waiting and codes: as zkl_latch_set, and ZNONODE when nobody has set it: nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_count_down(
    latch: Option<&zkl_latch>,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    status(|| call("zkl_latch_count_down", latch, timeout_ms, left, |latch| latch.count_down()))
}

/// What is left to be counted; not older than the call. Sets `*left`. On connection loss it is read again.
///
/// Threads and waiting: as zkl_latch_set.
///
/// ZOK; ZNONODE when nobody has set it; ZOPERATIONTIMEOUT when no server answers; otherwise as zkl_latch_set.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_left(
    latch: Option<&zkl_latch>,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    const NAME: &str = "zkl_latch_left";
    status(|| {
        let place = output(NAME, "left", left)?;
        call(NAME, latch, timeout_ms, Some(place), |latch| latch.left())
    })
}

/// Waits until it is open, up to `timeout_ms`, also where nobody has set it yet: ZKL_FOREVER waits as long as it takes, 0
/// looks once.
///
/// On connection loss it goes on with the next connection or session. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK when it is open; ZOPERATIONTIMEOUT when it is not; ZBADARGUMENTS for NULL or another negative timeout; ZNOAUTH;
/// ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first also in the child of a
/// fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_wait(latch: Option<&zkl_latch>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_latch_wait";
    status(|| {
        let recipe = &given(NAME, "latch", latch)?.recipe;
        let within = timeout(NAME, timeout_ms)?;
        let ((), _) = recipe.call(NAME, ZKL_FOREVER, |client, path, acl| {
            opened(&latch_at(client, path, acl), within)
        })?;
        Ok(())
    })
}

/// Begins to wait until it is open, and returns: `done` is called exactly once, with what zkl_latch_wait would have
/// returned, or ZKL_CANCELLED. All else is as of zkl_queue_take_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; ZBADARGUMENTS for a NULL latch or done, or a negative timeout other than ZKL_FOREVER;
/// ZSYSTEMERROR when there is no thread to be had. Everything else is reported by `done`.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_wait_async(
    latch: Option<&zkl_latch>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_latch_wait_async";
    status(|| {
        let recipe = &given(NAME, "latch", latch)?.recipe;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let shared = recipe.shared();
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_code(done, &shared)),
        };
        let what = format!("wait for {}", recipe.path().escape_debug());
        let latch = recipe.on(NAME, &shared, latch_at)?;
        attempt::begin(&shared, &what, attempt, delivery, || opened(&latch, within));
        Ok(())
    })
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_latch>();
};
