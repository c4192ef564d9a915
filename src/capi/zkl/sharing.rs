//! Locks that are shared: read/write locks, and semaphores with how many permits they have.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, given, output, status};
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::present::OnASession;
use crate::capi::zkl::shared::Shared;
use crate::lock::Semaphore;

/// How many permits a semaphore has, for all who use it; where none has said so yet, what its options say.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. Sets `*limit`.
///
/// ZOK; ZBADARGUMENTS for a NULL, or a lock that is no semaphore; ZOPERATIONTIMEOUT when no server answers;
/// otherwise as zkl_lock_contenders.
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

/// Sets how many permits a semaphore has, for all who use it. More are given to those who wait at once. When there are
/// fewer than are held, all who hold go on to, and others are let in when enough have released; an acquire of
/// more than there are fails with ZBADARGUMENTS.
///
/// On connection loss it is repeated until it is certain.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout.
///
/// ZOK; ZBADARGUMENTS for a NULL, a lock that is no semaphore, or a limit below 1; ZKL_OUTCOME_UNKNOWN; ZNOAUTH; otherwise as zkl_lock_contenders.
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
