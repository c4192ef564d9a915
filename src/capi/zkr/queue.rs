//! `zkr_queue_*`: the drop-in for programs written against the C queue recipe. `include/zoo_queue.h`
//! is its other half, and says what each function does.
//!
//! The functions read `zh`, `path` and `acl` of the program's struct at each call, and keep nothing
//! in it: a struct that was copied by value works like the one it was copied from.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::mem::{offset_of, size_of};

use zookeeper_sys as sys;

use super::clients;
use crate::capi::acl;
use crate::capi::boundary::{self, Failure};
use crate::capi::zkr::pmutex::Pmutex;
use crate::error::Code;
use crate::process::inherited;
use crate::raw::watch_for_forks;
use crate::recipes::{Head, Queue};
use crate::runtime::block_on;
use crate::znode::Acl;

/// As the original laid it out: programs have it on their stacks and read its fields.
#[allow(non_camel_case_types, reason = "C's name")]
#[repr(C)]
pub struct zkr_queue {
    zh: *mut sys::zhandle_t,
    path: *mut c_char,
    acl: *mut sys::ACL_vector,
    pmutex: Pmutex,
    node_name: *mut c_char,
    node_name_length: c_int,
    cached_create_path: *mut c_char,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const _: () = {
    assert!(size_of::<zkr_queue>() == 88);
    assert!(offset_of!(zkr_queue, pmutex) == 24);
    assert!(offset_of!(zkr_queue, node_name) == 64);
    assert!(offset_of!(zkr_queue, node_name_length) == 72);
    assert!(offset_of!(zkr_queue, cached_create_path) == 80);
};
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(zkr_queue, zh) == 0);
    assert!(offset_of!(zkr_queue, path) == 8);
    assert!(offset_of!(zkr_queue, acl) == 16);
    assert!(size_of::<zkr_queue>() == 48 + size_of::<libc::pthread_mutex_t>());
};

/// The name of an element without its number.
const NODE_NAME: &CStr = c"qn-";

/// Fills the struct. Nothing is sent.
///
/// # Safety
/// `queue` is null or points to memory for the struct, which no other thread uses; `path` is null or
/// a NUL-terminated string, and `zh` and `acl` are null or alive, for as long as the struct is used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_init(
    queue: *mut zkr_queue,
    zh: *mut sys::zhandle_t,
    path: *mut c_char,
    acl: *mut sys::ACL_vector,
) -> c_int {
    const NAME: &str = "zkr_queue_init";
    boundary::status(|| {
        if queue.is_null() {
            return Err(Failure::bad_argument(NAME, "queue is NULL"));
        }
        // SAFETY: the caller promises a NUL-terminated string or null.
        let checked = unsafe { boundary::text(NAME, "path", path) };
        let cached = checked.as_ref().map_or(Ok(std::ptr::null_mut()), |path| create_path(path));
        watch_for_forks();
        let filled = zkr_queue {
            zh,
            path,
            acl,
            pmutex: Pmutex::new(),
            node_name: NODE_NAME.as_ptr().cast_mut(),
            node_name_length: 3,
            cached_create_path: *cached.as_ref().unwrap_or(&std::ptr::null_mut()),
        };
        // Also before an error is returned: a program that overlooks it must not go on with
        // whatever was in this memory.
        //
        // SAFETY: not null, and the caller promises memory for the struct.
        unsafe { queue.write(filled) };
        checked?;
        cached?;
        if zh.is_null() {
            return Err(Failure::bad_argument(NAME, "zh is NULL"));
        }
        Ok(())
    })
}

/// `path` and the elements' name, in memory that C's `free` takes.
fn create_path(path: &str) -> Result<*mut c_char, Failure> {
    let text = format!("{path}/qn-\0");
    // SAFETY: `malloc` takes any size.
    let memory = unsafe { libc::malloc(text.len()) }.cast::<c_char>();
    if memory.is_null() {
        let message = "zkr_queue_init: no memory".to_owned();
        return Err(Failure::new(Code::SYSTEM_ERROR.as_raw(), message));
    }
    // SAFETY: the memory is as long as the text, and new.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), memory, text.len()) };
    Ok(memory)
}

/// Adds an element at the end of the queue.
///
/// # Safety
/// `queue` is null or was filled by [`zkr_queue_init`], whose promises still hold; `data` is null or
/// points to `buffer_len` bytes that stay unchanged during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_offer(
    queue: *mut zkr_queue,
    data: *const c_char,
    buffer_len: c_int,
) -> c_int {
    const NAME: &str = "zkr_queue_offer";
    boundary::status(|| {
        let bytes = match usize::try_from(buffer_len) {
            Ok(len) if !data.is_null() && len > 0 => {
                // SAFETY: not null, and the caller promises that many bytes.
                unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }
            }
            Ok(0) => &[],
            Ok(_) => return Err(Failure::bad_argument(NAME, "data is NULL but has a length")),
            // As the C client has it: no data at all.
            Err(_) if buffer_len == -1 => &[],
            Err(_) => return Err(Failure::bad_argument(NAME, "a negative length")),
        };
        // SAFETY: the caller's promise.
        let open = unsafe { open(NAME, queue) }?;
        // SAFETY: as above; it is not null, or it would not be open.
        let acl = unsafe { acl_of(NAME, queue) }?;
        block_on(open.offer(bytes, &acl)).map_err(Failure::from)
    })
}

/// Reads the oldest element without taking it.
///
/// # Safety
/// `queue` as for [`zkr_queue_offer`]. `buffer_len` is null or points to an int. `buffer` is null or has
/// room for that many bytes. No other thread uses the two during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_element(
    queue: *mut zkr_queue,
    buffer: *mut c_char,
    buffer_len: *mut c_int,
) -> c_int {
    const NAME: &str = "zkr_queue_element";
    // SAFETY: the caller's promises are those of `receive`.
    unsafe {
        receive(NAME, queue, buffer, buffer_len, |queue, capacity| {
            block_on(queue.element(capacity))
        })
    }
}

/// Takes the oldest element.
///
/// # Safety
/// As for [`zkr_queue_element`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_remove(
    queue: *mut zkr_queue,
    buffer: *mut c_char,
    buffer_len: *mut c_int,
) -> c_int {
    const NAME: &str = "zkr_queue_remove";
    // SAFETY: the caller's promises are those of `receive`.
    unsafe {
        receive(NAME, queue, buffer, buffer_len, |queue, capacity| block_on(queue.remove(capacity)))
    }
}

/// Takes the oldest element, as soon as there is one. `_zh` is there because it always was.
///
/// # Safety
/// As for [`zkr_queue_element`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_take(
    _zh: *mut sys::zhandle_t,
    queue: *mut zkr_queue,
    buffer: *mut c_char,
    buffer_len: *mut c_int,
) -> c_int {
    const NAME: &str = "zkr_queue_take";
    let take = |open: &Queue, capacity| {
        // It matters only where the queue's znode is missing: without one, the server refuses then.
        //
        // SAFETY: the caller's promise; it is not null, or it would not be open.
        let acl = unsafe { acl_of(NAME, queue) }.unwrap_or_default();
        block_on(open.take(capacity, &acl))
    };
    // SAFETY: the caller's promises are those of `receive`.
    unsafe { receive(NAME, queue, buffer, buffer_len, take) }
}

/// Frees what [`zkr_queue_init`] made. Nothing is sent; elements stay.
///
/// # Safety
/// `queue` as for [`zkr_queue_offer`], and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkr_queue_destroy(queue: *mut zkr_queue) {
    boundary::value((), || {
        if queue.is_null() {
            return;
        }
        // SAFETY: not null, and the caller promises a struct that nobody else uses.
        let queue = unsafe { &mut *queue };
        let cached = std::mem::replace(&mut queue.cached_create_path, std::ptr::null_mut());
        // SAFETY: `malloc` of `zkr_queue_init` gave it, or it is null; nobody has it any more.
        unsafe { libc::free(cached.cast()) };
    });
}

/// The queue of a program's struct, on the client of its handle.
///
/// # Safety
/// As for [`zkr_queue_offer`].
unsafe fn open(function: &'static str, queue: *const zkr_queue) -> Result<Queue, Failure> {
    if queue.is_null() {
        return Err(Failure::bad_argument(function, "queue is NULL"));
    }
    // SAFETY: not null, and the caller promises a filled struct.
    if unsafe { &(*queue).pmutex }.is_inherited() {
        return Err(inherited(function, "").into());
    }
    boundary::may_block(function)?;
    // SAFETY: as above.
    let path = unsafe { (*queue).path };
    // SAFETY: the caller promises a NUL-terminated string or null.
    let path = unsafe { boundary::text(function, "the queue's path", path) }?;
    // SAFETY: as for `path`.
    let zh = unsafe { (*queue).zh };
    // SAFETY: the caller promises a live handle or null.
    let client = unsafe { clients::client_for(function, zh) }?;
    let queue = Queue::new(client.clone(), path)?;
    boundary::may_wait_for(function, &client)?;
    Ok(queue)
}

/// The access control list of a program's struct.
///
/// # Safety
/// `queue` was filled by [`zkr_queue_init`], whose promises still hold.
unsafe fn acl_of(function: &'static str, queue: *const zkr_queue) -> Result<Vec<Acl>, Failure> {
    // SAFETY: the caller promises a filled struct.
    let acl = unsafe { (*queue).acl };
    // SAFETY: the caller promises an access control list or null.
    let Some(acl) = (unsafe { acl.as_ref() }) else {
        let message = format!("{function}: the queue has no acl to create znodes with");
        return Err(Failure::new(Code::INVALID_ACL.as_raw(), message));
    };
    // SAFETY: as above.
    unsafe { acl::copy(function, acl) }
}

/// Hands an element to the program: its bytes only on success; its length also when the buffer is
/// too small; -1 otherwise.
///
/// # Safety
/// As for [`zkr_queue_element`].
unsafe fn receive(
    function: &'static str,
    queue: *const zkr_queue,
    buffer: *mut c_char,
    buffer_len: *mut c_int,
    fetch: impl FnOnce(&Queue, usize) -> crate::error::Result<Head>,
) -> c_int {
    let length = Cell::new(-1);
    let code = boundary::status(|| {
        if buffer_len.is_null() {
            return Err(Failure::bad_argument(function, "buffer_len is NULL"));
        }
        // SAFETY: not null, and the caller promises an int.
        let capacity = unsafe { buffer_len.read() };
        let capacity = usize::try_from(capacity)
            .map_err(|_| Failure::bad_argument(function, "*buffer_len is negative"))?;
        if buffer.is_null() && capacity > 0 {
            return Err(Failure::bad_argument(function, "buffer is NULL but has a length"));
        }
        // SAFETY: the caller's promise.
        let open = unsafe { open(function, queue) }?;
        match fetch(&open, capacity)? {
            Head::Element(data) => {
                if !data.is_empty() {
                    // SAFETY: there is room: `capacity` bytes at least, and the data are ours.
                    unsafe {
                        std::ptr::copy_nonoverlapping(data.as_ptr().cast(), buffer, data.len())
                    };
                }
                length.set(c_int::try_from(data.len()).unwrap_or(c_int::MAX));
                Ok(())
            }
            Head::Empty => Ok(()),
            Head::Longer(len) => {
                length.set(c_int::try_from(len).unwrap_or(c_int::MAX));
                let why = format!("{function}: the element has {len} bytes, the buffer {capacity}");
                Err(Failure::new(Code::MARSHALLING_ERROR.as_raw(), why))
            }
        }
    });
    if !buffer_len.is_null() {
        // SAFETY: not null, and the caller promises an int.
        unsafe { buffer_len.write(length.get()) };
    }
    code
}
