//! Several locks that are acquired together.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, Object, free, given, number, output, status};
use crate::capi::callbacks::{Userdata, zkl_finalizer_fn};
use crate::capi::codes;
use crate::capi::zkl::attempt::{begin_acquire, zkl_attempt, zkl_done_fn};
use crate::capi::zkl::guard::zkl_guard;
use crate::capi::zkl::lock::{taken, zkl_lock};
use crate::capi::zkl::present::Present;
use crate::capi::zkl::shared::Shared;
use crate::capi::zkl::timeout::{limited, timeout, wait};
use crate::lock::{Guard, LockError, MultiLock};
use crate::runtime::Pending;

/// Several locks that are acquired together; see zkl_multi_lock_new.
#[allow(non_camel_case_types)]
pub struct zkl_multi_lock {
    sessions: Arc<Present>,
    /// As they were given; one at least.
    locks: Vec<zkl_lock>,
    /// Which of them is where in the order of their paths.
    places: Vec<usize>,
}

impl Object for zkl_multi_lock {
    fn is_inherited(&self) -> bool {
        self.sessions.is_inherited()
    }
}

impl zkl_multi_lock {
    /// All of them on one session.
    fn at_present(&self) -> (MultiLock, Arc<Shared>) {
        let shared = self.sessions.shared();
        (MultiLock::new(self.locks.iter().map(|lock| lock.on(&shared).lock)), shared)
    }

    fn path(&self) -> &str {
        self.locks.first().map_or("", |lock| lock.path())
    }
}

/// A guard whose locks are in the order in which they were given.
fn boxed(guard: Guard, shared: Arc<Shared>, places: &[usize]) -> Box<zkl_guard> {
    let mut guard = zkl_guard::boxed(guard, shared);
    let by_path = std::mem::take(&mut guard.locks);
    guard.locks = places.iter().filter_map(|place| by_path.get(*place).cloned()).collect();
    guard
}

fn contend(lock: &MultiLock, timeout_ms: Option<std::time::Duration>) -> Pending<Guard, LockError> {
    match timeout_ms {
        Some(within) if within.is_zero() => {
            let path = lock.locks().first().map_or_else(String::new, |lock| lock.path().to_owned());
            let late = move || LockError::timed_out(&path, None);
            lock.try_acquire().map(move |tried| tried?.ok_or_else(late))
        }
        within => limited(lock.acquire(), within),
    }
}

/// Makes one of several locks, which are acquired together: all, or none. Sends nothing. They may be of any sharing,
/// re-entrant, or of a key; no two on one path, and all of one client. At least one.
///
/// Locks in queues get all their claims by one transaction. So in every queue two that are acquired together, or one of
/// them alone, stand in the same order, whatever order they are given in: nobody can wait for each other. Locks with another
/// strategy, and re-entrant ones, are acquired before that, one after the other in the order of their paths.
///
/// `locks` is an array of `count` locks, which are copied, and may be freed.
///
/// Any thread; does not block. On success `*multi` is the program's: free it with zkl_multi_lock_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, also in the array, no locks, locks of several clients, or two on one path.
/// ZINVALIDSTATE in the child of a fork.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_multi_lock_new(
    locks: *const Option<&zkl_lock>,
    count: usize,
    multi: Option<&mut MaybeUninit<*mut zkl_multi_lock>>,
) -> c_int {
    const NAME: &str = "zkl_multi_lock_new";
    status(|| {
        let place = output(NAME, "multi", multi)?;
        let refused = |why: &str| Err(Failure::bad_argument(NAME, why));
        if locks.is_null() || count == 0 {
            return refused("a multi-lock has one lock at least");
        }
        if count > isize::MAX as usize / size_of::<*const zkl_lock>() {
            return refused("that many locks have no room in memory");
        }
        // SAFETY: not null, and the header asks for `count` locks.
        let given_locks = unsafe { std::slice::from_raw_parts(locks, count) };
        let mut all = Vec::new();
        for lock in given_locks {
            let lock = given(NAME, "one of the locks", *lock)?;
            all.push(lock.acquired(lock.acquires.clone()));
        }
        let sessions = Arc::clone(&all[0].present.sessions);
        if all.iter().any(|lock| !Arc::ptr_eq(&lock.present.sessions, &sessions)) {
            return refused("the locks are of several clients");
        }
        let mut by_path: Vec<usize> = (0..all.len()).collect();
        by_path.sort_by_key(|&index| all[index].path());
        if by_path.windows(2).any(|two| all[two[0]].path() == all[two[1]].path()) {
            return refused("two of the locks are on one path");
        }
        let mut places = vec![0; all.len()];
        for (place, index) in by_path.into_iter().enumerate() {
            places[index] = place;
        }
        let made = zkl_multi_lock { sessions, locks: all, places };
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Gives it up. Guards and attempts made from it go on.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_multi_lock_free(multi: Option<Box<zkl_multi_lock>>) {
    free(multi);
}

/// Acquires all of the locks, up to `timeout_ms` in all, as zkl_lock_acquire does one. One guard stands for all: its
/// state is the worst of theirs, it is lost when one of them is, and zkl_guard_set writes only while all are held.
/// zkl_guard_token_of has the token of each.
///
/// On connection loss it goes on; all claims are looked up, and all are there, or none. When it fails, no claim is
/// left. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
/// zkl_guard_release or zkl_guard_free, which release all.
///
/// ZOK; otherwise as zkl_lock_acquire, of any of the locks.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_multi_lock_acquire(
    multi: Option<&zkl_multi_lock>,
    timeout_ms: c_int,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_multi_lock_acquire";
    status(|| {
        let multi = given(NAME, "multi", multi)?;
        let place = output(NAME, "guard", guard)?;
        let within = timeout(NAME, timeout_ms)?;
        let (lock, shared) = multi.at_present();
        shared.may_wait(NAME)?;
        let guard = contend(&lock, within).wait()?;
        place.write(Box::into_raw(boxed(guard, shared, &multi.places)));
        Ok(())
    })
}

/// Acquires all of the locks if nobody is ahead at any. Waits only for the servers' answers, up to the operation
/// timeout. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it with
/// zkl_guard_release or zkl_guard_free.
///
/// ZOK; ZKL_TAKEN, and nothing is left; otherwise as zkl_lock_try, of any of the locks.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_multi_lock_try(
    multi: Option<&zkl_multi_lock>,
    guard: Option<&mut MaybeUninit<*mut zkl_guard>>,
) -> c_int {
    const NAME: &str = "zkl_multi_lock_try";
    status(|| {
        let multi = given(NAME, "multi", multi)?;
        let place = output(NAME, "guard", guard)?;
        let (lock, shared) = multi.at_present();
        shared.may_wait(NAME)?;
        let tried = wait(lock.try_acquire(), None)?;
        let guard = tried.ok_or_else(|| taken(multi.path()))?;
        place.write(Box::into_raw(boxed(guard, shared, &multi.places)));
        Ok(())
    })
}

/// Begins to acquire all of the locks, and returns. All else is as of zkl_lock_acquire_async, a NULL `done` included.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK when it has begun; otherwise as zkl_lock_acquire_async.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_multi_lock_acquire_async(
    multi: Option<&zkl_multi_lock>,
    timeout_ms: c_int,
    done: zkl_done_fn,
    userdata: *mut c_void,
    finalizer: zkl_finalizer_fn,
    attempt: Option<&mut MaybeUninit<*mut zkl_attempt>>,
) -> c_int {
    const NAME: &str = "zkl_multi_lock_acquire_async";
    status(|| {
        let multi = given(NAME, "multi", multi)?;
        let within = timeout(NAME, timeout_ms)?;
        let (lock, shared) = multi.at_present();
        let (places, boxing) = (multi.places.clone(), Arc::clone(&shared));
        let what = format!("acquire {}", multi.path().escape_debug());
        let to = (done, Userdata::new(userdata, finalizer));
        let boxed = move |guard| boxed(guard, boxing, &places);
        let work = || contend(&lock, within);
        begin_acquire((NAME, &what), &shared, to, attempt, boxed, work)
    })
}

/// The number of locks that the guard covers: more than 1 only for a multi-lock, 0 for NULL.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_locks(guard: Option<&zkl_guard>) -> usize {
    guard.map_or(0, |guard| guard.locks.len())
}

/// The fencing token of one of the guard's locks, which are counted from 0 in the order in which zkl_multi_lock_new was
/// given them: see zkl_guard_token, which gives that of the first. Where all are in queues, all are the same: the number
/// of the transaction that made the claims.
///
/// Any thread. ZBADARGUMENTS for NULL, and beyond the last.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_token_of(guard: Option<&zkl_guard>, index: usize) -> i64 {
    const NAME: &str = "zkl_guard_token_of";
    let token = || {
        let guard = given(NAME, "guard", guard)?;
        let beyond = || Failure::bad_argument(NAME, "it has not that many locks");
        Ok(guard.locks.get(index).ok_or_else(beyond)?.1)
    };
    number(i64::from(codes::ZKL_PANIC), token, i64::from)
}

/// The path of one of the guard's locks: see zkl_guard_token_of.
///
/// Any thread. Returns a string that belongs to the guard; NULL for NULL, and beyond the last.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_path_of(guard: Option<&zkl_guard>, index: usize) -> *const c_char {
    let lock = guard.and_then(|guard| guard.locks.get(index));
    lock.map_or(std::ptr::null(), |(path, _)| path.as_ptr())
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_multi_lock>();
};
