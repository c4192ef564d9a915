//! Several locks that are acquired together.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::capi::boundary::{Failure, Object, Unfreed, free, given, number, output, status};
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
    unfreed: Unfreed,
}

impl Object for zkl_multi_lock {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
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

/// A guard with its locks in the order of the program's paths.
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

/// Makes a multi-lock: several locks that are acquired together, all or none. Sends nothing. The locks may have any
/// sharing, be re-entrant, or be of a key. There must be at least one, all of one client, and no two on one path.
///
/// Queues get all claims in one transaction. So two multi-locks have the same order in every queue that they share, and
/// cannot deadlock. Locks with another strategy, and re-entrant ones, are acquired before, one after the other in the
/// order of their paths.
///
/// `locks` is an array of `count` locks. They are copied, and may be freed.
///
/// Any thread; does not block. On success `*multi` is the program's: free it with zkl_multi_lock_free.
///
/// ZOK. ZBADARGUMENTS: an argument or a lock is NULL, there are no locks, they are of several clients, or two are on
/// one path. ZINVALIDSTATE: in the child of a fork.
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
        let made = zkl_multi_lock { sessions, locks: all, places, unfreed: Unfreed::new() };
        place.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Frees the multi-lock. Its guards stay held, and its attempts continue.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_multi_lock_free(multi: Option<Box<zkl_multi_lock>>) {
    free(multi);
}

/// Acquires all locks, up to `timeout_ms` in total, as zkl_lock_acquire does one. One guard covers them. Its state is
/// the worst of theirs, and it is lost when one of them is. zkl_guard_set writes only while all are held.
/// zkl_guard_token_of gives the token of each.
///
/// On connection loss it continues and looks up its claims: all exist, or none. After an error no claim is left.
/// `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
/// with zkl_guard_release or zkl_guard_free, which release all.
///
/// ZOK; otherwise as zkl_lock_acquire, for any of the locks.
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

/// Acquires all locks if no other contender is ahead at any. Waits only for the servers' answers, up to the operation
/// timeout. `pthread_cancel` waits until it has ended.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks. On success `*guard` is the program's: end it
/// with zkl_guard_release or zkl_guard_free.
///
/// ZOK. ZKL_TAKEN: nothing is left. Otherwise as zkl_lock_try, for any of the locks.
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

/// As zkl_multi_lock_acquire, but does not wait. Otherwise as zkl_lock_acquire_async, a NULL `done` included.
///
/// Any thread, callbacks of the C client included; does not block.
///
/// ZOK: it has started; otherwise as zkl_lock_acquire_async.
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

/// The fencing token of one of the guard's locks, counted from 0 in the order of zkl_multi_lock_new. zkl_guard_token
/// gives that of the first. If all locks are queues, all tokens are the same: the number of the transaction that made
/// the claims.
///
/// Any thread. ZBADARGUMENTS: NULL, or beyond the last.
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
/// Any thread. The guard owns the string; NULL for NULL, and beyond the last.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_guard_path_of(guard: Option<&zkl_guard>, index: usize) -> *const c_char {
    let lock = guard.and_then(|guard| guard.locks.get(index));
    lock.map_or(std::ptr::null(), |(path, _)| path.as_ptr())
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_multi_lock>();
};
