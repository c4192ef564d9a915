//! The recipes' functions, on structs of the program's.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Barrier;

use proptest::collection::vec;
use proptest::prelude::*;

use super::arguments::{Text, int, refused_unless, text};
use super::scene::{Handle, check, told};
use crate::capi::zkr::lock::{
    zkr_lock_destroy, zkr_lock_error, zkr_lock_getid, zkr_lock_getpath, zkr_lock_init,
    zkr_lock_isowner, zkr_lock_lock, zkr_lock_lock_owner, zkr_lock_unlock,
};
use crate::capi::zkr::queue::{
    zkr_queue_destroy, zkr_queue_element, zkr_queue_init, zkr_queue_offer, zkr_queue_remove,
};
use crate::error::Code;
use crate::path;
use zklock_testing::Server;
use zookeeper_sys as sys;

/// A path that stays for as long as a struct may name it.
fn kept(path: &Text) -> *mut c_char {
    let Some(path) = path.said() else { return path.pointer().cast_mut() };
    std::ffi::CString::new(path).unwrap().into_raw()
}

fn anyone() -> *mut sys::ACL_vector {
    let acl = &raw const sys::ZOO_OPEN_ACL_UNSAFE;
    acl.cast_mut()
}

#[test]
fn a_queue_takes_what_has_a_length_and_gives_what_has_room() {
    let server = Server::start().unwrap();
    let handle = Handle::open(&server.hosts());
    let data = prop::option::weighted(0.8, vec(any::<u8>(), 0..30));
    let room = prop::option::weighted(0.9, prop_oneof![3 => 0..40, 1 => c_int::MIN..0]);
    let flags = [prop::bool::weighted(0.1); 3];
    let path = text("/queue-[a-z]{1,3}|/queue-/|queue|/queue\u{1}".boxed());
    check(
        (path, data, int(), room, flags),
        |(path, data, len, room, [no_handle, no_acl, no_buffer])| {
            let zh = if no_handle { std::ptr::null_mut() } else { handle.0 };
            let acl = if no_acl { std::ptr::null_mut() } else { anyone() };
            let mut queue = MaybeUninit::uninit();
            let queue = queue.as_mut_ptr();
            let path_kept = path.said().map(|_| kept(&path));
            let named = path_kept.unwrap_or(path.pointer().cast_mut());
            // SAFETY: memory for the struct; NULL or a string; a live handle or NULL.
            let code = told(unsafe { zkr_queue_init(queue, zh, named, acl) });
            prop_assert_eq!(code, refused_unless(path.said().is_some() && !no_handle));

            // Only where there are no bytes may there be any number of them.
            let len = data.as_ref().map_or(len, |data| c_int::try_from(data.len()).unwrap());
            let bytes = data.as_ref().map_or(std::ptr::null(), |data| data.as_ptr().cast());
            // SAFETY: filled above; NULL, or `len` bytes.
            let offered = told(unsafe { zkr_queue_offer(queue, bytes, len) });
            let is_path =
                path.said().is_some_and(|path| path != "/" && path::validate(path).is_ok());
            if data.is_none() && !matches!(len, -1 | 0) || !is_path || no_handle {
                prop_assert_eq!(offered, Err(Code::BAD_ARGUMENTS));
            } else if no_acl {
                prop_assert_eq!(offered, Err(Code::INVALID_ACL));
            } else {
                prop_assert_eq!(offered, Ok(()));
            }

            let mut memory = vec![0xa5_u8; 64];
            let buffer = if no_buffer { std::ptr::null_mut() } else { memory.as_mut_ptr().cast() };
            let mut length = room.unwrap_or(0);
            let place = if room.is_some() { &raw mut length } else { std::ptr::null_mut() };
            // SAFETY: filled above; NULL, or a buffer larger than what is said of it.
            let looked = told(unsafe { zkr_queue_element(queue, buffer, place) });
            let (seen, room) = (length, room.unwrap_or(-1));
            if room < 0 || no_buffer && room > 0 || !is_path || no_handle {
                prop_assert_eq!(looked, Err(Code::BAD_ARGUMENTS));
            }
            prop_assert!(looked.is_err() || seen <= room);
            prop_assert!(
                memory[usize::try_from(room.clamp(0, 40)).unwrap()..].iter().all(|b| *b == 0xa5)
            );
            length = 40;
            // SAFETY: as above.
            let taken =
                told(unsafe { zkr_queue_remove(queue, memory.as_mut_ptr().cast(), &mut length) });
            prop_assert_eq!(taken.is_ok(), is_path && !no_handle);
            if let (Ok(()), Some(data)) = (offered, &data) {
                // Nobody else is at this queue, so the oldest element is the only one.
                prop_assert_eq!(&memory[..usize::try_from(length).unwrap()], &data[..]);
            }
            // SAFETY: filled above.
            unsafe { zkr_queue_destroy(queue) };
            Ok(())
        },
    );
    drop(handle);
}

#[test]
fn a_recipes_lock_refuses_a_struct_that_was_never_filled_and_paths_that_are_wrong() {
    let server = Server::start().unwrap();
    let handle = Handle::open(&server.hosts());
    let path = text("/lock-[a-z]{1,3}|/lock-/|lock|/lock\u{1}".boxed());
    let arguments = (path, [any::<u64>(); 13], [prop::bool::weighted(0.1); 3]);
    check(arguments, |(path, garbage, [is_unfilled, no_handle, no_acl])| {
        // As large as the struct is, and aligned as it is.
        let mut memory = garbage;
        let mutex = memory.as_mut_ptr().cast();
        let zh = if no_handle { std::ptr::null_mut() } else { handle.0 };
        let acl = if no_acl { std::ptr::null_mut() } else { anyone() };
        let named = kept(&path);
        let is_filled = !is_unfilled && !no_handle && !named.is_null();
        if !is_unfilled {
            // SAFETY: memory for the struct; NULL or a string; a live handle or NULL.
            let code = told(unsafe { zkr_lock_init(mutex, zh, named, acl) });
            prop_assert_eq!(code, refused_unless(is_filled));
        }
        // SAFETY: memory of the struct's size, filled or not, that stays until it is destroyed.
        prop_assert_eq!(unsafe { zkr_lock_lock(mutex) }, 0);
        // SAFETY: as above.
        let locked = told(unsafe { zkr_lock_error(mutex) });
        let is_path = path.said().is_some_and(|path| path::validate(path).is_ok());
        prop_assert_eq!(locked, refused_unless(is_filled && is_path));
        // SAFETY: as above.
        let owns = unsafe { zkr_lock_isowner(mutex) };
        prop_assert!(locked.is_ok() || owns == 0);
        // SAFETY: as above.
        prop_assert_eq!(unsafe { zkr_lock_lock_owner(mutex) }, owns);
        // SAFETY: as above.
        let shown = unsafe { zkr_lock_getpath(mutex) };
        prop_assert_eq!(shown, if is_filled { named } else { std::ptr::null_mut() });
        // SAFETY: as above.
        let id = unsafe { zkr_lock_getid(mutex) };
        prop_assert!(is_filled || id.is_null());
        // SAFETY: as above.
        let unlocked = told(unsafe { zkr_lock_unlock(mutex) });
        prop_assert_eq!(unlocked.is_ok(), locked.is_ok());
        // SAFETY: as above.
        let destroyed = told(unsafe { zkr_lock_destroy(mutex) });
        prop_assert_eq!(destroyed, refused_unless(is_filled));
        Ok(())
    });
    drop(handle);
}

#[test]
fn threads_that_lock_on_new_handles_at_once_do_not_disturb_each_other() {
    const THREADS: usize = 4;
    let server = Server::start().unwrap();
    let together = Barrier::new(THREADS);
    let lock = &|thread: usize| {
        let path = std::ffi::CString::new(format!("/own-{thread}")).unwrap();
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            let handle = Handle::open(&server.hosts());
            let mut memory = [0_u64; 13];
            let mutex = memory.as_mut_ptr().cast();
            // SAFETY: memory for the struct, a string, and a live handle.
            let filled =
                told(unsafe { zkr_lock_init(mutex, handle.0, path.as_ptr().cast_mut(), anyone()) });
            together.wait();
            // SAFETY: filled above, and stays until it is destroyed.
            unsafe { zkr_lock_lock(mutex) };
            // SAFETY: as above.
            let locked = told(unsafe { zkr_lock_error(mutex) });
            // SAFETY: as above.
            let destroyed = told(unsafe { zkr_lock_destroy(mutex) });
            outcomes.push([filled, locked, destroyed]);
        }
        outcomes
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || lock(n))).collect();
        for thread in threads {
            for outcome in thread.join().unwrap() {
                assert_eq!(outcome, [Ok(()); 3]);
            }
        }
    });
}
