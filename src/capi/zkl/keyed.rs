//! Locks by key.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, given, output, status, text};
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::options::{self, Sharing, zkl_lock_options};
use crate::lock::Strategy;
use crate::path;

/// Makes the lock of a key, of which there may be very many below one path: an order or a user each. It is a lock as one of
/// zkl_lock_new, but nothing is left of it on the servers when nobody holds it or waits for it: its znode (`key-` and the
/// key, below `path`) is made and deleted each time, which costs some requests more. Sends nothing.
///
/// `key` is `len` bytes of any kind (NULL only with 0). `path` is absolute, under the client's chroot, and has nothing but
/// such locks below it. `options` may be NULL; strategy and sharing have to be the defaults. All are copied.
///
/// Any thread; does not block. On success `*lock` is the program's: free it with zkl_lock_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, a path that ZooKeeper does not allow, or bad options; ZINVALIDACL for an ACL that is empty
/// or malformed; ZINVALIDSTATE in the child of a fork. A path and a key that make more than a request takes are refused
/// when the lock is acquired, with ZBADARGUMENTS.
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
        path::validate(path).map_err(|why| Failure::bad_argument(NAME, why))?;
        how.sharing = Sharing::OfKey(key.to_vec());
        place.write(Box::into_raw(zkl_lock::boxed(client, path, how)));
        Ok(())
    })
}
