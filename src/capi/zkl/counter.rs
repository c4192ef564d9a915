//! Numbers that many clients change.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, Object, free, given, output, status};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::recipe::{Recipe, zkl_recipe_options};
use crate::error::Error;
use crate::recipes::Counter;
use crate::runtime::Pending;

/// A number that many clients read and change; see zkl_counter_new.
#[allow(non_camel_case_types)]
pub struct zkl_counter {
    recipe: Recipe,
}

impl Object for zkl_counter {
    fn is_inherited(&self) -> bool {
        self.recipe.is_inherited()
    }
}

/// Waits for an operation on the counter.
fn call<T>(
    function: &'static str,
    counter: Option<&zkl_counter>,
    timeout_ms: c_int,
    begin: impl FnOnce(Counter) -> Pending<T, Error>,
) -> Result<T, Failure> {
    let recipe = &given(function, "counter", counter)?.recipe;
    let on = |client: &crate::client::Client, path: &str, acl| begin(client.counter(path).acl(acl));
    Ok(recipe.call(function, timeout_ms, on)?.0)
}

/// Makes a counter at a path. Sends nothing. It is a persistent znode with the number in decimal digits; one that is
/// missing, or has no data, counts as 0. The first change makes it, and those above it.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*counter` is the program's: free it with zkl_counter_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is
/// empty or malformed. ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_counter_new(
    client: Option<&zkl_client>,
    path: *const c_char,
    options: *const zkl_recipe_options,
    counter: Option<&mut MaybeUninit<*mut zkl_counter>>,
) -> c_int {
    const NAME: &str = "zkl_counter_new";
    status(|| {
        let place = output(NAME, "counter", counter)?;
        // SAFETY: the header asks for a NUL-terminated string, and a filled struct.
        let recipe = unsafe { Recipe::new(NAME, client, path, options) }?;
        place.write(Box::into_raw(Box::new(zkl_counter { recipe })));
        Ok(())
    })
}

/// Frees the counter. Its number stays.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_free(counter: Option<Box<zkl_counter>>) {
    free(counter);
}

/// Reads the number; not older than the call. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it is read again. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Sets `*value`.
///
/// ZOK; ZBADARGUMENTS for a NULL, another negative timeout, or a znode whose data are no number; ZOPERATIONTIMEOUT when no
/// server answers; ZNOAUTH; ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED when the client is closed, the first
/// also in the child of a fork; ZKL_WOULD_DEADLOCK inside a callback of the C client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_get(
    counter: Option<&zkl_counter>,
    timeout_ms: c_int,
    value: Option<&mut MaybeUninit<i64>>,
) -> c_int {
    const NAME: &str = "zkl_counter_get";
    status(|| {
        let place = output(NAME, "value", value)?;
        place.write(call(NAME, counter, timeout_ms, |counter| counter.get())?);
        Ok(())
    })
}

/// Sets the number, whatever it was. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection, and finds out there whether it was done: it is never done twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING leave it unknown whether it was done: the session ended before
/// that could be found out, no server was reached for long, the servers allow no znodes under /zklock/receipts, or the
/// time is over. ZBADVERSION when other clients were faster a hundred times, and nothing was done. Otherwise as
/// zkl_counter_get, and nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_set(
    counter: Option<&zkl_counter>,
    value: i64,
    timeout_ms: c_int,
) -> c_int {
    status(|| call("zkl_counter_set", counter, timeout_ms, |counter| counter.set(value)))
}

/// Adds to the number, or subtracts, if that is negative. `after` may be NULL; otherwise it gets what it is after that.
///
/// Threads, waiting and codes: as zkl_counter_set; ZBADARGUMENTS, and nothing was done, also where 64 bits do not hold the
/// sum.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_add(
    counter: Option<&zkl_counter>,
    number: i64,
    timeout_ms: c_int,
    after: Option<&mut MaybeUninit<i64>>,
) -> c_int {
    status(|| {
        let now = call("zkl_counter_add", counter, timeout_ms, |counter| counter.add(number))?;
        if let Some(place) = after {
            place.write(now);
        }
        Ok(())
    })
}

/// As zkl_counter_add, but `before` gets what it was before that: a number that nobody else gets, where all add by this
/// with a positive one.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_get_and_add(
    counter: Option<&zkl_counter>,
    number: i64,
    timeout_ms: c_int,
    before: Option<&mut MaybeUninit<i64>>,
) -> c_int {
    const NAME: &str = "zkl_counter_get_and_add";
    status(|| {
        let place = output(NAME, "before", before)?;
        place.write(call(NAME, counter, timeout_ms, |counter| counter.get_and_add(number))?);
        Ok(())
    })
}

/// Sets the number to `value` if it is `expected`. Sets `*before` to what it was: it was set exactly if that is
/// `expected`.
///
/// Threads, waiting and codes: as zkl_counter_set. ZOK also where it was another number, and nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_compare_and_set(
    counter: Option<&zkl_counter>,
    expected: i64,
    value: i64,
    timeout_ms: c_int,
    before: Option<&mut MaybeUninit<i64>>,
) -> c_int {
    const NAME: &str = "zkl_counter_compare_and_set";
    status(|| {
        let place = output(NAME, "before", before)?;
        let set = |counter: Counter| counter.compare_and_set(expected, value);
        place.write(call(NAME, counter, timeout_ms, set)?);
        Ok(())
    })
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_counter>();
};
