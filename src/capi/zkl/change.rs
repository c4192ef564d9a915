//! Holds of read/write locks that become something else.

use std::ffi::c_int;

use crate::capi::boundary::{Failure, given, may_block, number, status};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options::{ZKL_EXCLUSIVE, ZKL_READ, ZKL_UPGRADEABLE, ZKL_WRITE};
use crate::capi::zkl::timeout::timeout;
use crate::lock::{Access, LockError};
use crate::runtime::Pending;

/// How a read/write lock is held now: ZKL_READ, ZKL_UPGRADEABLE or ZKL_WRITE. ZKL_EXCLUSIVE for
/// any other lock. Costs no request.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_access(guard: Option<&zkl_guard>) -> c_int {
    const NAME: &str = "zkl_guard_access";
    let access = || {
        let guard = given(NAME, "guard", guard)?;
        Ok(match guard.held(NAME)?.access() {
            Some(Access::Read) => ZKL_READ,
            Some(Access::Upgradeable) => ZKL_UPGRADEABLE,
            Some(Access::Write) => ZKL_WRITE,
            None => ZKL_EXCLUSIVE,
        })
    };
    number(codes::ZKL_PANIC, access, |code| code)
}

/// Turns an upgradeable hold (ZKL_UPGRADEABLE) into a writer's without releasing it. Waits up to `timeout_ms`, or
/// ZKL_FOREVER, until the present readers have released. Meanwhile no other client is admitted: neither later readers
/// nor waiting writers. For a writer it does nothing. The fencing token stays the same.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Do not free or release the guard meanwhile.
///
/// ZOK. ZOPERATIONTIMEOUT: the time has passed. The hold is unchanged, and nothing is left behind. ZKL_NOT_HELD: the
/// lock is lost. ZBADARGUMENTS: NULL, another negative timeout, a plain reader, a lock that is not a read/write lock,
/// or one of several guards of a claim. ZINVALIDSTATE: another thread is changing it. ZKL_WOULD_DEADLOCK: inside a
/// callback of the C client. Otherwise as zkl_lock_acquire.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_upgrade(guard: Option<&zkl_guard>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_guard_upgrade";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        change(NAME, timeout_ms, || Ok(guard.held(NAME)?.upgrade()))
    })
}

/// Turns a writer's hold into an upgradeable one or a reader's, or an upgradeable hold into a reader's, without
/// releasing it: `to` is ZKL_UPGRADEABLE or ZKL_READ. It keeps its place in the queue. Readers directly behind it are
/// admitted. No reader passes a waiting writer. The fencing token stays the same.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to `timeout_ms`. Do not free or release the
/// guard meanwhile.
///
/// ZOK, also if the hold already is as wanted. ZKL_OUTCOME_UNKNOWN: no server confirmed it in time; zkl_guard_access
/// gives the present kind. ZKL_NOT_HELD: the lock is lost. ZBADARGUMENTS: NULL, another negative timeout, another `to`,
/// or a reader that is to become upgradeable. Otherwise as zkl_guard_upgrade.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_downgrade(
    guard: Option<&zkl_guard>,
    to: c_int,
    timeout_ms: c_int,
) -> c_int {
    const NAME: &str = "zkl_guard_downgrade";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        let to = match to {
            ZKL_READ => Access::Read,
            ZKL_UPGRADEABLE => Access::Upgradeable,
            _ => return Err(Failure::bad_argument(NAME, "it can't be downgraded to that")),
        };
        change(NAME, timeout_ms, || Ok(guard.held(NAME)?.downgrade(to)))
    })
}

fn change(
    name: &'static str,
    timeout_ms: c_int,
    begin: impl FnOnce() -> Result<Pending<(), LockError>, Failure>,
) -> Result<(), Failure> {
    let within = timeout(name, timeout_ms)?;
    may_block(name)?;
    let changing = begin()?;
    match within {
        Some(within) => changing.within(within).wait()?,
        None => changing.wait()?,
    }
    Ok(())
}
