//! Locks, acquires, lists and guards.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::arguments::{int, lock_options, refused_unless, text};
use super::scene::{Scene, check, given, told};
use crate::capi::zkl::attempt::{zkl_attempt_cancel, zkl_attempt_free, zkl_lock_acquire_async};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::contenders::{
    zkl_contenders_count, zkl_contenders_free, zkl_contenders_get, zkl_lock_contenders,
    zkl_lock_holder,
};
use crate::capi::zkl::guard::{
    ZKL_HELD, zkl_guard, zkl_guard_fd, zkl_guard_free, zkl_guard_on_lost, zkl_guard_release,
    zkl_guard_set, zkl_guard_state, zkl_guard_token, zkl_guard_wait_lost,
};
use crate::capi::zkl::lock::{
    zkl_lock, zkl_lock_acquire, zkl_lock_free, zkl_lock_new, zkl_lock_path, zkl_lock_try,
};
use crate::capi::zkl::timeout::ZKL_FOREVER;
use crate::error::Code;
use crate::path;

fn path() -> impl Strategy<Value = String> {
    prop_oneof![4 => "(/[a-c]{1,2}){1,2}", 1 => "/?[a-c./]{0,6}"]
}

/// A short time, or none: what waits for ever is tested elsewhere.
fn timeout() -> impl Strategy<Value = c_int> {
    prop_oneof![4 => 0..10, 1 => c_int::MIN..ZKL_FOREVER]
}

fn lock_on(client: &zkl_client, path: &CStr) -> Box<zkl_lock> {
    let lock = given(true, |lock| {
        // SAFETY: a string and no options.
        unsafe { zkl_lock_new(Some(client), path.as_ptr(), std::ptr::null(), lock) }
    });
    lock.unwrap().unwrap()
}

fn acquire(
    lock: Option<&zkl_lock>,
    timeout_ms: c_int,
    has_place: bool,
) -> Result<Option<Box<zkl_guard>>, Code> {
    given(has_place, |guard| zkl_lock_acquire(lock, timeout_ms, guard))
}

#[test]
fn a_lock_is_made_and_acquired_by_arguments_that_are_right() {
    let scene = Scene::new();
    let new = (0..4_u8, text(path()), lock_options(), prop::bool::weighted(0.9));
    check((new, timeout(), any::<bool>(), any::<bool>()), |(new, timeout, has_place, waits)| {
        let (which, path, options, has_lock_place) = new;
        let lock = options.lay_out(|options| {
            given(has_lock_place, |lock| {
                // SAFETY: NULL or a string, NULL or options laid out in memory of their size.
                unsafe { zkl_lock_new(scene.client(which), path.pointer(), options, lock) }
            })
        });
        let is_good = scene.client(which).is_some() && has_lock_place;
        let is_path = path.said().is_some_and(|path| path::validate(path).is_ok());
        let is_allowed = is_path && (options.allow_the_root() || path.said() != Some("/"));
        let said = refused_unless(is_good && path.said().is_some()).and(options.verdict());
        let verdict = said.and(refused_unless(is_allowed));
        prop_assert_eq!(lock.as_ref().map(drop).map_err(|code| *code), verdict);
        let lock = lock.ok().flatten();
        if let Some(lock) = &lock {
            // SAFETY: a string of the lock's.
            let shown = unsafe { CStr::from_ptr(zkl_lock_path(Some(lock))) };
            prop_assert_eq!(shown.to_str().ok(), path.said());
        }
        let guard = if waits {
            let guard = acquire(lock.as_deref(), timeout, has_place);
            prop_assert!(guard.is_err() || timeout >= 0);
            guard
        } else {
            given(has_place, |guard| zkl_lock_try(lock.as_deref(), guard))
        };
        if lock.is_none() || !has_place {
            prop_assert_eq!(guard.as_ref().err(), Some(&Code::BAD_ARGUMENTS));
        }
        prop_assert!(guard.is_err() || which == 1);
        let list = given(has_place, |list| match waits {
            true => zkl_lock_holder(lock.as_deref(), list),
            false => zkl_lock_contenders(lock.as_deref(), list),
        });
        if let Ok(Some(list)) = list {
            let count = zkl_contenders_count(Some(&list));
            for index in [0, count, usize::MAX] {
                prop_assert_eq!(zkl_contenders_get(Some(&list), index).is_some(), index < count);
            }
            zkl_contenders_free(Some(list));
        }
        zkl_lock_free(lock);
        zkl_guard_free(guard.ok().flatten());
        Ok(())
    });
    scene.end();
}

#[test]
fn a_guard_survives_whatever_it_is_asked() {
    let scene = Scene::new();
    let lock = lock_on(&scene.connected, c"/guarded");
    let data = (option::of(vec(any::<u8>(), 0..20)), option::of(any::<usize>()));
    let set = (text(path()), data, int(), any::<bool>());
    let wait = prop_oneof![4 => 0..3, 1 => c_int::MIN..ZKL_FOREVER];
    check((set, wait, [any::<bool>(); 4]), |(set, wait, [has_fd, has_lost, is_lost, releases])| {
        let guard = acquire(Some(&lock), 10_000, true).unwrap().unwrap();
        let (path, (data, len), version, has_stat) = set;
        // Only where there are no bytes may there be any number of them.
        let len = data.as_ref().map_or(len.unwrap_or(0), Vec::len);
        let bytes = data.as_ref().map_or(std::ptr::null(), |data| data.as_ptr().cast::<c_void>());
        let mut stat = MaybeUninit::uninit();
        let stat = has_stat.then_some(&mut stat);
        // SAFETY: NULL or a string; NULL, or `len` bytes.
        let code =
            unsafe { zkl_guard_set(Some(&guard), path.pointer(), bytes, len, version, stat) };
        let is_path = path.said().is_some_and(|path| path::validate(path).is_ok());
        let is_data = data.is_some() || len == 0;
        let is_refused = told(code) == Err(Code::BAD_ARGUMENTS);
        prop_assert_eq!(is_refused, !is_path || !is_data || version < -1);

        let code = told(zkl_guard_wait_lost(Some(&guard), wait));
        let held = if wait < 0 { Code::BAD_ARGUMENTS } else { Code::OPERATION_TIMEOUT };
        prop_assert_eq!(code, Err(held));
        let mut fd = MaybeUninit::new(-1);
        let code = told(zkl_guard_fd(Some(&guard), has_fd.then_some(&mut fd)));
        prop_assert_eq!(code, refused_unless(has_fd));
        // SAFETY: written above.
        prop_assert_eq!(unsafe { fd.assume_init() } >= 0, has_fd);
        let lost: Option<unsafe extern "C" fn(c_int, *mut c_void)> = has_lost.then_some(on_lost);
        let finalizer = is_lost.then_some(count as unsafe extern "C" fn(*mut c_void));
        let counter = counter();
        let code = zkl_guard_on_lost(Some(&guard), lost, counter.userdata(), finalizer);
        prop_assert_eq!(told(code), refused_unless(has_lost));
        prop_assert_eq!(zkl_guard_state(Some(&guard)), ZKL_HELD);
        prop_assert!(zkl_guard_token(Some(&guard)) > 0);
        if releases {
            prop_assert_eq!(told(zkl_guard_release(Some(guard))), Ok(()));
        } else {
            zkl_guard_free(Some(guard));
        }
        counter.comes_to(usize::from(has_lost && is_lost));
        Ok(())
    });
    zkl_lock_free(Some(lock));
    scene.end();
}

#[test]
fn an_acquire_in_the_background_is_refused_or_tells_its_outcome_once() {
    let scene = Scene::new();
    let flags = [any::<bool>(); 4];
    check((0..4_u8, timeout(), flags), |(which, timeout, flags)| {
        let [has_done, has_finalizer, has_place, cancels] = flags;
        let lock = scene.client(which).map(|client| lock_on(client, c"/background"));
        let counter = counter();
        let done: Option<unsafe extern "C" fn(c_int, *mut zkl_guard, *mut c_void)> =
            has_done.then_some(on_done);
        let finalizer = has_finalizer.then_some(count as unsafe extern "C" fn(*mut c_void));
        let mut told_once = usize::from(has_done) + usize::from(has_finalizer);
        let untouched = std::ptr::without_provenance_mut(64);
        let mut attempt = MaybeUninit::new(untouched);
        let place = has_place.then_some(&mut attempt);
        let (lock_given, userdata) = (lock.as_deref(), counter.userdata());
        let code =
            told(zkl_lock_acquire_async(lock_given, timeout, done, userdata, finalizer, place));
        let is_kept = has_place && !has_done && !has_finalizer;
        let is_good = lock.is_some() && (has_done || is_kept) && timeout >= 0;
        prop_assert_eq!(code, refused_unless(is_good));
        // SAFETY: written above, or by the call.
        let attempt = unsafe { attempt.assume_init() };
        prop_assert_eq!(attempt != untouched, is_good && has_place);
        if attempt != untouched {
            // SAFETY: what a call gives is a box that it has let go of.
            let attempt = unsafe { Box::from_raw(attempt) };
            if cancels {
                let code = told(zkl_attempt_cancel(Some(&attempt)));
                prop_assert!(matches!(code, Ok(()) | Err(Code::NOTHING)));
            }
            zkl_attempt_free(Some(attempt));
        }
        if !is_good {
            told_once = 0;
        }
        zkl_lock_free(lock);
        counter.comes_to(told_once);
        Ok(())
    });
    scene.end();
}

/// Counts the calls that get it, and stays: a call too many must find it.
struct Counter(&'static AtomicUsize);

fn counter() -> Counter {
    Counter(Box::leak(Box::default()))
}

impl Counter {
    fn userdata(&self) -> *mut c_void {
        std::ptr::from_ref(self.0).cast_mut().cast()
    }

    fn comes_to(&self, calls: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.0.load(Ordering::SeqCst) < calls {
            assert!(Instant::now() < deadline, "not called");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.0.load(Ordering::SeqCst), calls);
    }
}

unsafe extern "C" fn count(userdata: *mut c_void) {
    // SAFETY: the address of a counter that is never freed.
    let counter = unsafe { &*userdata.cast::<AtomicUsize>() };
    counter.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn on_lost(_: c_int, userdata: *mut c_void) {
    // SAFETY: as it came.
    unsafe { count(userdata) };
}

unsafe extern "C" fn on_done(rc: c_int, guard: *mut zkl_guard, userdata: *mut c_void) {
    if rc == 0 {
        // SAFETY: with ZOK the guard is the program's.
        zkl_guard_free(Some(unsafe { Box::from_raw(guard) }));
    }
    // SAFETY: as it came.
    unsafe { count(userdata) };
}
