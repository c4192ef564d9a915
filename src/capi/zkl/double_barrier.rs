//! Barriers that let a number of participants in together, and out together.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, may_block, output, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::zkl::async_calls::zkl_result_fn;
use crate::capi::zkl::attempt::{self, zkl_attempt};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::recipe::{Recipe, zkl_recipe_options};
use crate::capi::zkl::replies::{Delivery, code, deliver, no_done, with_code};
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{limited, timeout, wait};
use crate::client::Client;
use crate::process::inherited;
use crate::recipes::{DoubleBarrier, Entered};
use crate::znode::Acl;

/// A barrier for a number of participants; see zkl_double_barrier_new.
#[allow(non_camel_case_types)]
pub struct zkl_double_barrier {
    recipe: Recipe,
    participants: u16,
}

/// A participant that has entered a double barrier; see zkl_double_barrier_enter.
#[allow(non_camel_case_types)]
pub struct zkl_entered {
    /// Locked by nobody: so that several threads may have it.
    entered: Mutex<Entered>,
    shared: Arc<Shared>,
    unfreed: Unfreed,
}

/// The outcome of an enter: `rc` as from zkl_double_barrier_enter, or ZKL_CANCELLED. With ZOK `entered` is the
/// program's; otherwise it is NULL. Must not throw.
#[allow(non_camel_case_types)]
pub type zkl_entered_fn =
    Option<unsafe extern "C" fn(rc: c_int, entered: *mut zkl_entered, userdata: *mut c_void)>;

impl Object for zkl_double_barrier {
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
    }
}

impl Object for zkl_entered {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_double_barrier {
    fn at(&self) -> impl FnOnce(&Client, &str, Vec<Acl>) -> DoubleBarrier {
        let participants = self.participants;
        move |client, path, acl| client.double_barrier(path, participants).acl(acl)
    }
}

fn boxed(entered: Entered, shared: Arc<Shared>) -> *mut zkl_entered {
    let (entered, unfreed) = (Mutex::new(entered), Unfreed::new());
    Box::into_raw(Box::new(zkl_entered { entered, shared, unfreed }))
}

/// The participation that the program hands over to end it. One inherited from another process is freed.
fn leaving(
    function: &'static str,
    entered: Option<Box<zkl_entered>>,
) -> Result<Box<zkl_entered>, Failure> {
    let entered = entered.ok_or_else(|| Failure::bad_argument(function, "entered is NULL"))?;
    if entered.is_inherited() {
        free(Some(entered));
        return Err(inherited(function, "").into());
    }
    Ok(entered)
}

/// Makes a barrier at a path for 1 to 65535 participants; all must give the same number. They enter when all are there,
/// and leave when all are done. Then the next round can enter. Sends nothing. A participant with an ended process or
/// session has left.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*barrier` is the program's: free it with zkl_double_barrier_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, another number, ZooKeeper does not allow the path, or options are invalid.
/// ZINVALIDACL: the ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_double_barrier_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    participants: c_int,
    options: *const zkl_recipe_options,
    barrier: Option<&mut MaybeUninit<*mut zkl_double_barrier>>,
) -> c_int {
    const NAME: &str = "zkl_double_barrier_new";
    status(|| {
        let place = output(NAME, "barrier", barrier)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        let participants = u16::try_from(participants).ok().filter(|number| *number > 0);
        let wrong = || Failure::bad_argument(NAME, "participants are 1 to 65535");
        let participants = participants.ok_or_else(wrong)?;
        place.write(Box::into_raw(Box::new(zkl_double_barrier { recipe, participants })));
        Ok(())
    })
}

/// Frees the object. Participants that have entered stay, and attempts continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_double_barrier_free(barrier: Option<Box<zkl_double_barrier>>) {
    free(barrier);
}

/// Waits up to `timeout_ms`, or ZKL_FOREVER, until all participants are there. If a round is in progress, it also waits
/// until all of that round have left.
///
/// On connection loss it continues on the next connection or session. After an error it has not entered, and nothing is
/// left behind. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*entered` is the program's: end it
/// with zkl_entered_leave or zkl_entered_free.
///
/// ZOK. ZOPERATIONTIMEOUT: the time has passed. ZBADARGUMENTS: an argument is NULL, or another negative timeout.
/// ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the
/// child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_double_barrier_enter(
    barrier: Option<&zkl_double_barrier>,
    timeout_ms: c_int,
    entered: Option<&mut MaybeUninit<*mut zkl_entered>>,
) -> c_int {
    const NAME: &str = "zkl_double_barrier_enter";
    status(|| {
        let barrier = given(NAME, "barrier", barrier)?;
        let place = output(NAME, "entered", entered)?;
        let at = barrier.at();
        let enter = |client: &Client, path: &str, acl| at(client, path, acl).enter();
        let (entered, shared) = barrier.recipe.call(NAME, timeout_ms, enter)?;
        place.write(boxed(entered, shared));
        Ok(())
    })
}

/// As zkl_double_barrier_enter, but does not wait. zklock calls `done` exactly once with its result, or with
/// ZKL_CANCELLED. Otherwise as zkl_queue_take_async.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `barrier` or `done` is NULL, or the timeout is negative and not ZKL_FOREVER.
/// ZSYSTEMERROR: no thread is available. `done` reports everything else.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_double_barrier_enter_async(
    barrier: Option<&zkl_double_barrier>,
    timeout_ms: c_int,
    done: zkl_entered_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_double_barrier_enter_async";
    status(|| {
        let barrier = given(NAME, "barrier", barrier)?;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let shared = barrier.recipe.shared();
        let on = Arc::clone(&shared);
        let delivery = Delivery {
            line: shared.callbacks.line(NAME)?,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(move |entered, userdata| {
                let (rc, entered) = code(entered);
                let entered = entered.map(|entered| boxed(entered, on));
                // SAFETY: the program gave the function for these arguments, to be called on this thread; the
                // delivery is consumed, so it is called once.
                unsafe { done(rc, entered.unwrap_or(std::ptr::null_mut()), userdata) };
            }),
        };
        let what = format!("enter {}", barrier.recipe.path().escape_debug());
        let at = barrier.recipe.on(NAME, &shared, barrier.at())?;
        attempt::begin(&shared, &what, attempt, delivery, || limited(at.enter(), within));
        Ok(())
    })
}

/// Leaves, and waits up to `timeout_ms`, or ZKL_FOREVER, until all of its round have left. Frees `entered`, whatever it
/// returns. On connection loss it continues on the next connection or session. `pthread_cancel` waits until it has
/// ended. In the child of a fork it only frees.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// In any case it has left, or leaves in the background. ZOK. ZOPERATIONTIMEOUT: others are still there, or no server
/// answers. ZBADARGUMENTS: NULL, or another negative timeout. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or
/// ZAUTHFAILED: the client is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback
/// of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_entered_leave(entered: Option<Box<zkl_entered>>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_entered_leave";
    status(|| {
        let entered = leaving(NAME, entered)?;
        let within = timeout(NAME, timeout_ms)?;
        may_block(NAME)?;
        let zkl_entered { entered, shared, .. } = *entered;
        let left = wait(entered.into_inner().leave(), within);
        drop(shared);
        left
    })
}

/// As zkl_entered_leave, but does not wait. When this returns, `entered` is freed, even after an error. zklock calls
/// `done` exactly once with the result of zkl_entered_leave, on the client's callback thread, and then `finalizer`, if
/// it is not NULL. Both may run before this returns. If this returns an error, neither is called.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started. ZBADARGUMENTS: `entered` or `done` is NULL, or another negative timeout. ZSYSTEMERROR: no
/// thread is available. After an error it leaves in the background. `done` reports everything else.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_entered_leave_async(
    entered: Option<Box<zkl_entered>>,
    timeout_ms: c_int,
    done: zkl_result_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
) -> c_int {
    const NAME: &str = "zkl_entered_leave_async";
    status(|| {
        let entered = leaving(NAME, entered)?;
        let within = timeout(NAME, timeout_ms)?;
        let done = done.ok_or_else(|| no_done(NAME))?;
        let line = entered.shared.callbacks.line(NAME)?;
        let zkl_entered { entered, shared, .. } = *entered;
        let delivery = Delivery {
            line,
            userdata: Userdata::new(userdata, finalizer),
            done: Box::new(with_code(done, &shared)),
        };
        let left = limited(entered.into_inner().leave(), within);
        deliver(NAME, &shared, left, delivery);
        Ok(())
    })
}

/// Leaves in the background, and frees `entered`. Waits only if this was the last object of its client: see
/// zkl_client_free. In the child of a fork it only frees.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_entered_free(entered: Option<Box<zkl_entered>>) {
    free(entered);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_double_barrier>();
    usable_by_several_threads::<zkl_entered>();
};
