//! Holds of read/write locks that become something else.

use std::ffi::c_int;

use crate::capi::boundary::{Failure, given, may_block, number, status};
use crate::capi::codes;
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::options::{ZKL_EXCLUSIVE, ZKL_READ, ZKL_UPGRADEABLE, ZKL_WRITE};
use crate::capi::zkl::timeout::timeout;
use crate::lock::{Access, LockError};
use crate::runtime::Pending;

/// What a guard of a read/write lock leaves to others now: ZKL_READ, ZKL_UPGRADEABLE or ZKL_WRITE; ZKL_EXCLUSIVE of any
/// other lock. Costs no request.
///
/// Any thread. ZBADARGUMENTS for NULL; ZKL_NOT_HELD for a guard that is given up.
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

/// Turns the hold of an upgradeable reader (ZKL_UPGRADEABLE) into a writer's, without a moment in which it is not held.
/// Waits until the readers that hold have released, up to `timeout_ms`: ZKL_FOREVER waits as long as it takes. Nobody new comes in
/// meanwhile, neither readers that come later nor a writer that waited before. Of a writer it does nothing. The
/// fencing token stays what it is.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. Nobody may free or release the guard meanwhile.
///
/// ZOK; ZOPERATIONTIMEOUT when the time is over: the hold is what it was, and nothing is left behind. ZKL_NOT_HELD when
/// the lock is lost; ZBADARGUMENTS for NULL, another negative timeout, a plain reader, another lock than a
/// read/write lock, and a guard that is one of several of a claim; ZINVALIDSTATE while another thread changes it; ZKL_WOULD_DEADLOCK
/// inside a callback of the C client; otherwise as zkl_lock_acquire.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_upgrade(guard: Option<&zkl_guard>, timeout_ms: c_int) -> c_int {
    const NAME: &str = "zkl_guard_upgrade";
    status(|| {
        let guard = given(NAME, "guard", guard)?;
        change(NAME, timeout_ms, || Ok(guard.held(NAME)?.upgrade()))
    })
}

/// Turns a writer's hold into an upgradeable reader's or a reader's, or an upgradeable reader's into a reader's, without a
/// moment in which it is not held: `to` is ZKL_UPGRADEABLE or ZKL_READ. It keeps its place in the queue: those
/// readers come in that wait directly behind it; a writer that waits is not passed. The fencing token stays what
/// it is.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to `timeout_ms`. Nobody may free or release the
/// guard meanwhile.
///
/// ZOK, also when it is that already; ZKL_OUTCOME_UNKNOWN when no server has confirmed it in time: zkl_guard_access says what
/// it is. ZKL_NOT_HELD when the lock is lost; ZBADARGUMENTS for NULL, a negative timeout but ZKL_FOREVER, another `to`, of a reader
/// that is to become upgradeable, and otherwise as zkl_guard_upgrade.
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
