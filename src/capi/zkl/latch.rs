//! Latches: they open when all that is waited for has happened.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, output, status};
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
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
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

/// Makes a latch at a path: set to a number of events, counted down once for each event, open at zero. It opens once
/// and stays open. Sends nothing. It is a persistent znode with the remaining count in decimal digits.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*latch` is the program's: free it with zkl_latch_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
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

/// Frees the object. The latch itself does not change. Attempts continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_free(latch: Option<Box<zkl_latch>>) {
    free(latch);
}

/// Sets the latch to a number of events, unless it is already set. With 0 events it is open at once. `left` may be
/// NULL; otherwise it gets the remaining count. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection and looks up there whether it was done. Nothing is counted
/// twice. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
/// ZBADARGUMENTS: an argument is NULL, another negative timeout, or the znode at the path is no latch. ZNOAUTH.
/// ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork.
/// ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_set(
    latch: Option<&zkl_latch>,
    events: u32,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    status(|| call("zkl_latch_set", latch, timeout_ms, left, |latch| latch.set(events)))
}

/// Counts one event. At zero the latch opens, and further counts do nothing. `left` may be NULL; otherwise it gets the
/// remaining count.
///
/// Threads, waiting and codes: as zkl_latch_set. ZNONODE: the latch was never set; nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_latch_count_down(
    latch: Option<&zkl_latch>,
    timeout_ms: c_int,
    left: Option<&mut MaybeUninit<u32>>,
) -> c_int {
    status(|| call("zkl_latch_count_down", latch, timeout_ms, left, |latch| latch.count_down()))
}

/// Reads the remaining count, with all changes made before the call, into `*left`. On connection loss it is read again.
///
/// Threads and waiting: as zkl_latch_set.
///
/// ZOK. ZNONODE: the latch was never set. ZOPERATIONTIMEOUT: no server answers. Otherwise as zkl_latch_set.
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

/// Waits until the latch is open, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once. It also waits
/// if the latch is not set yet.
///
/// On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK: the latch is open. ZOPERATIONTIMEOUT: it is not. ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH.
/// ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a
/// fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// As zkl_latch_wait, but does not wait. zklock calls `done` exactly once with its result, or with ZKL_CANCELLED.
/// Otherwise as zkl_queue_take_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `latch` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
/// ZSYSTEMERROR: no thread is available. `done` reports everything else.
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
