//! Locks by key.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, given, output, status, text};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::options::{self, Sharing, zkl_lock_options};
use crate::lock::{Interop, Strategy};
use crate::path;

/// Makes the lock of a key: for many short-lived locks below one path, such as one for each order or user. It works as
/// a lock of zkl_lock_new, but leaves nothing on the servers when no client holds it or waits for it. Its znode (`key-`
/// and the key, below `path`) is created and deleted each time, which costs some more requests. Sends nothing.
///
/// `key` is any `len` bytes (NULL only with 0). `path` is absolute, under the client's chroot. Keep other znodes away
/// from it. `options` may be NULL; strategy, sharing and interop must be the defaults. All are copied.
///
/// Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, ZooKeeper does not allow the path, or options are invalid. ZINVALIDACL: the
/// ACL is empty or malformed. ZINVALIDSTATE: in the child of a fork. If path and key together exceed a request, the
/// acquire fails with ZBADARGUMENTS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_lock_of_key(
    client: Option<&zkl_client>,
    path: *const c_char,
    key: *const c_void,
    len: usize,
    options: *const zkl_lock_options,
    lock: Option<&mut MaybeUninit<*mut zkl_lock>>,
) -> c_int {
    const NAME: &str = "zkl_lock_of_key";
    status(|| {
        let client = given(NAME, "client", client)?;
        let place = output(NAME, "lock", lock)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let path = unsafe { text(NAME, "path", path) }?;
        // SAFETY: the header asks for `len` bytes.
        let key = unsafe { options::bytes(NAME, key, len) }?;
        // SAFETY: the header asks for a filled struct.
        let mut how = unsafe { options::contending(NAME, options) }?;
        if how.strategy != Strategy::Queue || !matches!(how.sharing, Sharing::Exclusive) {
            return Err(Failure::bad_argument(NAME, "the lock of a key is an exclusive queue"));
        }
        if how.interop != Interop::Most {
            let why = "the lock of a key has no ZKL_INTEROP_ALL";
            return Err(Failure::bad_argument(NAME, why));
        }
        path::validate(path).map_err(|why| Failure::bad_path(NAME, path, why))?;
        how.sharing = Sharing::OfKey(key.to_vec());
        place.write(Box::into_raw(zkl_lock::boxed(client, path, how)));
        Ok(())
    })
}
