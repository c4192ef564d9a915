//! Barriers that hold everybody up until they are taken away.

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
use crate::recipes::Barrier;
use crate::runtime::Pending;
use crate::znode::Acl;

/// A barrier: while it is set, clients wait until it is removed; see zkl_barrier_new.
#[allow(non_camel_case_types)]
pub struct zkl_barrier {
    recipe: Recipe,
}

impl Object for zkl_barrier {
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
    }
}

fn barrier_at(client: &Client, path: &str, acl: Vec<Acl>) -> Barrier {
    client.barrier(path).acl(acl)
}

/// Waits for a change of the barrier.
fn call(
    function: &'static str,
    barrier: Option<&zkl_barrier>,
    timeout_ms: c_int,
    begin: impl FnOnce(Barrier) -> Pending<()>,
) -> Result<(), Failure> {
    let recipe = &given(function, "barrier", barrier)?.recipe;
    let on = |client: &Client, path: &str, acl| begin(barrier_at(client, path, acl));
    let ((), _) = recipe.call(function, timeout_ms, on)?;
    Ok(())
}

/// Waits until it is not set: 0 milliseconds look once.
fn passed(barrier: &Barrier, within: Option<Duration>) -> Pending<()> {
    if within != Some(Duration::ZERO) {
        return limited(barrier.pass(), within);
    }
    let path = barrier.path().to_owned();
    barrier.is_set().map(move |is_set| {
        let late = || Error::with_detail("pass", &path, Code::OPERATION_TIMEOUT, "it is set");
        if is_set? { Err(late()) } else { Ok(()) }
    })
}

/// Makes a barrier at a path. Sends nothing. The barrier is set while a persistent znode exists at the path, as in
/// Curator and kazoo. It stays set when the program ends.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*barrier` is the program's: free it with zkl_barrier_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_barrier_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_recipe_options,
    barrier: Option<&mut MaybeUninit<*mut zkl_barrier>>,
) -> c_int {
    const NAME: &str = "zkl_barrier_new";
    status(|| {
        let place = output(NAME, "barrier", barrier)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        place.write(Box::into_raw(Box::new(zkl_barrier { recipe })));
        Ok(())
    })
}

/// Frees the object. The barrier itself does not change. Attempts continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_barrier_free(barrier: Option<Box<zkl_barrier>>) {
    free(barrier);
}

/// Sets the barrier, and creates missing parents. If it is already set, it succeeds. Waits up to `timeout_ms`, or
/// ZKL_FOREVER.
///
/// On connection loss it waits for the next connection and looks up there whether it was done. It is never done twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. After the others nothing was done:
/// ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH. ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client
/// is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_barrier_set(barrier: Option<&zkl_barrier>, timeout_ms: c_int) -> c_int {
    status(|| call("zkl_barrier_set", barrier, timeout_ms, |barrier| barrier.set()))
}

/// Removes the barrier: all waiters pass. If it is not set, it succeeds.
///
/// Threads, waiting and codes: as zkl_barrier_set.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_barrier_remove(barrier: Option<&zkl_barrier>, timeout_ms: c_int) -> c_int {
    status(|| call("zkl_barrier_remove", barrier, timeout_ms, |barrier| barrier.remove()))
}

/// Waits until the barrier is not set, up to `timeout_ms`: ZKL_FOREVER waits without a limit, 0 checks once.
///
/// On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK: the barrier is not set. ZOPERATIONTIMEOUT: it is set, or no server answers. ZBADARGUMENTS: NULL, or another
/// negative timeout. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed;
/// ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_barrier_pass(barrier: Option<&zkl_barrier>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_barrier_pass";
    status(|| {
        let recipe = &given(NAME, "barrier", barrier)?.recipe;
        let within = timeout(NAME, timeout_ms)?;
        let ((), _) = recipe.call(NAME, ZKL_FOREVER, |client, path, acl| {
            passed(&barrier_at(client, path, acl), within)
        })?;
        Ok(())
    })
}

/// As zkl_barrier_pass, but does not wait. zklock calls `done` exactly once with its result, or with ZKL_CANCELLED.
/// Otherwise as zkl_queue_take_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `barrier` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
/// ZSYSTEMERROR: no thread is available. `done` reports everything else.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_barrier_pass_async(
    barrier: Option<&zkl_barrier>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_barrier_pass_async";
    status(|| {
        let recipe = &given(NAME, "barrier", barrier)?.recipe;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let shared = recipe.shared();
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_code(done, &shared)),
        };
        let what = format!("pass {}", recipe.path().escape_debug());
        let barrier = recipe.on(NAME, &shared, barrier_at)?;
        attempt::begin(&shared, &what, attempt, delivery, || passed(&barrier, within));
        Ok(())
    })
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_barrier>();
};
