//! Locks that are shared: read/write locks, and semaphores with how many permits they have.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, given, output, status};
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::shared::Shared;
use crate::lock::Semaphore;

/// The number of permits of a semaphore, for all clients: the stored one, or else that of the lock's options.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. Sets `*limit`.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, or the lock is no semaphore. ZOPERATIONTIMEOUT: no server answers.
/// Otherwise as zkl_lock_contenders.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_limit(
    lock: Option<&zkl_lock>,
    limit: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    const NAME: &str = "zkl_lock_limit";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let place = output(NAME, "limit", limit)?;
        let (semaphore, shared) = semaphore(NAME, lock)?;
        shared.may_wait(NAME)?;
        let limit = semaphore.limit().wait()?;
        place.write(c_int::try_from(limit).unwrap_or(c_int::MAX));
        Ok(())
    })
}

/// Sets the number of permits of a semaphore, for all clients. A larger limit serves waiters at once. A smaller limit
/// takes nothing from holders; waiters are served once enough holders have released. An acquire of more permits than
/// exist fails with ZBADARGUMENTS.
///
/// On connection loss it is repeated until the outcome is certain.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
///
/// ZOK. ZBADARGUMENTS: NULL, the lock is no semaphore, or the limit is below 1. ZKL_OUTCOME_UNKNOWN. ZNOAUTH. Otherwise
/// as zkl_lock_contenders.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_set_limit(lock: Option<&zkl_lock>, limit: c_int) -> c_int {
    const NAME: &str = "zkl_lock_set_limit";
    status(|| {
        let lock = given(NAME, "lock", lock)?;
        let (semaphore, shared) = semaphore(NAME, lock)?;
        let limit = u32::try_from(limit).ok().filter(|limit| *limit > 0);
        let limit = limit.ok_or_else(|| Failure::bad_argument(NAME, "a limit is at least 1"))?;
        shared.may_wait(NAME)?;
        Ok(semaphore.set_limit(limit).wait()?)
    })
}

fn semaphore(function: &'static str, lock: &zkl_lock) -> Result<(Semaphore, Arc<Shared>), Failure> {
    let OnASession { semaphore, shared, .. } = lock.at_present();
    match semaphore {
        Some(semaphore) => Ok((semaphore, shared)),
        None => Err(Failure::bad_argument(function, "the lock is no semaphore")),
    }
}
