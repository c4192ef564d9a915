//! Numbers that many clients change.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, output, status};
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
    fn unfreed(&self) -> &Unfreed {
        &self.recipe.unfreed
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

/// Makes a counter at a path. Sends nothing. It is a persistent znode with the number in decimal digits. A missing
/// znode, or one without data, counts as 0. The first change creates it and its parents.
///
/// `path` is absolute, under the client's chroot. `options` may be NULL: the defaults. Both are copied.
///
/// Any thread; does not block. On success `*counter` is the program's: free it with zkl_counter_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork.
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

/// Reads the number, with all changes made before the call, into `*value`. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it is read again. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, another negative timeout, or the znode's data is no number.
/// ZOPERATIONTIMEOUT: no server answers. ZNOAUTH. ZINVALIDSTATE, ZCLOSING, ZSESSIONEXPIRED or ZAUTHFAILED: the client
/// is closed; ZINVALIDSTATE also in the child of a fork. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// Sets the number. Waits up to `timeout_ms`, or ZKL_FOREVER.
///
/// On connection loss it waits for the next connection and looks up there whether it was done. It is never done twice.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks.
///
/// ZOK. ZCONNECTIONLOSS, ZOPERATIONTIMEOUT and ZCLOSING: the outcome is unknown. The session ended before the look-up,
/// no server was reached in time, the servers allow no znodes under /zklock/receipts, or the time is up. ZBADVERSION:
/// other clients were faster a hundred times; nothing was done. Otherwise as zkl_counter_get; nothing was done.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_counter_set(
    counter: Option<&zkl_counter>,
    value: i64,
    timeout_ms: c_int,
) -> c_int {
    status(|| call("zkl_counter_set", counter, timeout_ms, |counter| counter.set(value)))
}

/// Adds a number (subtracts a negative one). `after` may be NULL; otherwise it gets the new value.
///
/// Threads, waiting and codes: as zkl_counter_set. ZBADARGUMENTS also if the sum exceeds 64 bits; nothing was done.
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

/// As zkl_counter_add, but `before` gets the old value. If all clients use this function with positive numbers, each
/// old value is unique.
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

/// Sets the number to `value` if it is `expected`. `*before` gets the old value: the number was set exactly if that is
/// `expected`.
///
/// Threads, waiting and codes: as zkl_counter_set. ZOK also if the number was another one and nothing was done.
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
