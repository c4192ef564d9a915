//! The options structs, which grow at their end: `size` says how much of one the program knows.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use zookeeper_sys as sys;

use crate::capi::acl;
use crate::capi::boundary::{self, Failure};
use crate::lock::{Interop, Strategy};
use crate::znode::Acl;

/// Options of a client. Start from the defaults, then set what differs: `zkl_client_options options =
/// ZKL_CLIENT_OPTIONS_INIT;`.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct zkl_client_options {
    /// `sizeof(zkl_client_options)`.
    pub size: usize,
    /// The session timeout to request, from 500 to 86,400,000. 0: 10 s. A lock outlives a crash of its holder by this
    /// time. The servers may grant another: zkl_client_session_timeout_ms. The guard of a client that is cut off is lost
    /// before this time has passed: after 0.4 of it at the earliest. Not for `zkl_client_adopt`.
    pub session_timeout_ms: c_int,
    /// How long `zkl_client_connect` may take in total. 0: 10 s. Not for `zkl_client_adopt`.
    pub connect_timeout_ms: c_int,
    /// How long one operation may take. Then it ends with ZOPERATIONTIMEOUT and an unknown outcome. 0: 15 s.
    pub operation_timeout_ms: c_int,
    /// The scheme of an identity for every session of the client, such as "digest". NULL: none. Not for
    /// `zkl_client_adopt`, which uses the identities of the handle.
    pub auth_scheme: *const c_char,
    /// The identity, such as "user:password": `auth_secret_len` bytes. Copied.
    pub auth_secret: *const c_void,
    /// Length of `auth_secret` in bytes.
    pub auth_secret_len: usize,
    /// The servers' tickTime, if known. 0: half the session timeout. That is right if the servers' minSessionTimeout is
    /// two ticks or more (the default). If it is less, you must set the tickTime, or a guard may be lost too late.
    /// Never give less than the servers'.
    pub tick_time_ms: c_int,
    /// The limit for path, data and access control list of one request, in bytes. 0: 1 MiB less 1 KiB, which every
    /// server takes. A larger request is refused with ZBADARGUMENTS, because a server closes the connection if a
    /// request exceeds its jute.maxbuffer. (The queue of zoo_queue.h asks the servers instead.)
    pub max_request: usize,
    /// TLS, at the servers' secureClientPort: the PEM file with the authorities of their certificates, and with their
    /// revocation lists if you have any. NULL: no TLS. The linked C client must be built with TLS (zookeeper_init_ssl);
    /// most are not, and connecting fails with ZBADARGUMENTS. In other stores than ZooKeeper (`zkl_store_connect`), zklock
    /// must be built with TLS to them, and revocation lists, the password of the key and tls_any_host_name are refused.
    /// This and the following fields are not for `zkl_client_adopt`.
    pub tls_ca: *const c_char,
    /// TLS: the file with the client's own certificate. NULL: none, if the linked C client is compiled by zklock.
    pub tls_cert: *const c_char,
    /// TLS: the file with the key of that certificate.
    pub tls_key: *const c_char,
    /// TLS: the file with the password of the key in its first line. NULL: no password.
    pub tls_key_password_file: *const c_char,
    /// TLS: if not 0, accepts any certificate of the authorities, whatever the server's name is. The C client of an
    /// installed library verifies no names, so TLS is refused without this.
    pub tls_any_host_name: c_int,
    /// SASL: the user. NULL: none. The linked C client must be built with SASL (zookeeper_init_sasl).
    pub sasl_user: *const c_char,
    /// SASL: the file with the user's password in its first line.
    pub sasl_password_file: *const c_char,
    /// SASL: the mechanism, such as "GSSAPI". NULL: "DIGEST-MD5" if there is a user.
    pub sasl_mechanism: *const c_char,
    /// 1: who waits for a lock with `ZKL_QUEUE` asks the servers once more after each release. 0: it holds by the event
    /// of the release, if the holder's session has an identity of the scheme "digest" that nobody else has. zklock adds
    /// one to each session that it opens, if the servers accept the scheme. Both exclude each other. An adopted handle
    /// gets none.
    pub unannounced_releases: c_int,
}

/// A strategy: a fair queue, in which a release wakes one waiter. The default.
pub const ZKL_QUEUE: c_int = 0;
/// A strategy: watches the holder's znode. Every release wakes every waiter, in no order.
pub const ZKL_WATCH: c_int = 1;
/// A strategy: retries with pauses from 2 ms to 100 ms. Needs no watch.
pub const ZKL_POLL: c_int = 2;

/// How a lock is shared: not at all. The default.
pub const ZKL_EXCLUSIVE: c_int = 0;
/// How a lock is shared: as a reader of a read/write lock. Readers hold together and wait for earlier writers.
/// Curator's read/write lock and this one exclude each other on one path.
pub const ZKL_READ: c_int = 1;
/// How a lock is shared: as a writer of a read/write lock. It holds alone, in one queue with the readers.
pub const ZKL_WRITE: c_int = 2;
/// How a lock is shared: as permits of a semaphore. Others hold the rest.
pub const ZKL_PERMITS: c_int = 3;
/// How a lock is shared: as a reader that zkl_guard_upgrade can turn into a writer. It holds together with readers.
/// Only one at a time is upgradeable.
pub const ZKL_UPGRADEABLE: c_int = 4;

/// Which other libraries wait for a lock on its path: Curator, go-zookeeper, zookeeper-client and ZooKeeper's own
/// recipes, and kazoo with the pattern "-lock-". The default. The lock itself waits for all of them in any case.
pub const ZKL_INTEROP_MOST: c_int = 0;
/// Which other libraries wait for a lock on its path: also kazoo without a setting. A claim is two znodes; one
/// transaction creates them, and another deletes them. Only with `ZKL_QUEUE` and `ZKL_EXCLUSIVE`.
pub const ZKL_INTEROP_ALL: c_int = 1;

/// Options of a lock. Start from the defaults, then set what differs: `zkl_lock_options options =
/// ZKL_LOCK_OPTIONS_INIT;`.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct zkl_lock_options {
    /// `sizeof(zkl_lock_options)`.
    pub size: usize,
    /// `ZKL_QUEUE`, `ZKL_WATCH` or `ZKL_POLL`. All users of one path must use the same strategy.
    pub strategy: c_int,
    /// A name for the owner, shown to people who look at the lock: one line of up to 256 characters. NULL: none.
    /// Copied.
    pub label: *const c_char,
    /// The ACL of the lock's znodes, as the C client takes it, such as `&ZOO_CREATOR_ALL_ACL`. NULL: all clients may do
    /// everything. Copied.
    pub acl: *const sys::ACL_vector,
    /// `ZKL_EXCLUSIVE`, `ZKL_READ`, `ZKL_UPGRADEABLE`, `ZKL_WRITE` or `ZKL_PERMITS`; all but the first only with
    /// `ZKL_QUEUE`.
    pub sharing: c_int,
    /// With `ZKL_PERMITS`: how many permits one acquire takes. 0: one. Otherwise 0.
    pub permits: c_int,
    /// With `ZKL_PERMITS`: the number of permits, at least 1. It counts only if the semaphore's znode has none yet: see
    /// zkl_lock_set_limit. Otherwise 0.
    pub limit: c_int,
    /// `ZKL_INTEROP_MOST` or `ZKL_INTEROP_ALL`. Programs with either exclude each other.
    pub interop: c_int,
}

// A program leaves padding at the end unset, so no later field may lie in it. `zkl_client_options` has some: its next
// field has to be aligned as the struct.
const _: () = assert!(
    std::mem::offset_of!(zkl_lock_options, interop) + size_of::<c_int>()
        == size_of::<zkl_lock_options>()
);

/// An options struct.
///
/// # Safety
/// It is `repr(C)`, begins with its size as a `usize`, and all zeroes are a valid value.
pub(super) unsafe trait Options: Sized {
    /// Its size when it was first published: the offset of the first field that came later.
    const FIRST_SIZE: usize;
}

// SAFETY: `repr(C)`, `size` first, integers and pointers only.
unsafe impl Options for zkl_client_options {
    const FIRST_SIZE: usize = std::mem::offset_of!(zkl_client_options, tick_time_ms);
}

// SAFETY: as above.
unsafe impl Options for zkl_lock_options {
    const FIRST_SIZE: usize = std::mem::offset_of!(zkl_lock_options, sharing);
}

/// Nothing of that size is an options struct of any version: a `size` that was never set.
const ABSURD: usize = 4096;

/// A copy of the program's options; `None` for null.
///
/// # Safety
/// `options` is null, or points to `size` bytes that stay unchanged during the call and begin with `size`.
pub(super) unsafe fn read<T: Options>(
    function: &'static str,
    options: *const T,
) -> Result<Option<T>, Failure> {
    if options.is_null() {
        return Ok(None);
    }
    if !options.is_aligned() {
        return Err(Failure::bad_argument(function, "options are at an odd address"));
    }
    let bytes = options.cast::<u8>();
    // SAFETY: not null and aligned, and `T` begins with its size.
    let size = unsafe { options.cast::<usize>().read() };
    if size < T::FIRST_SIZE || size > ABSURD {
        let why = format!("options of size {size}: set it to the sizeof of the struct");
        return Err(Failure::bad_argument(function, &why));
    }
    // SAFETY: the caller promises that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, size) };
    let known = size.min(size_of::<T>());
    if bytes[known..].iter().any(|&byte| byte != 0) {
        let why = "options that a later version of zklock knows, but this one does not";
        return Err(Failure::bad_argument(function, why));
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    let place = copy.as_mut_ptr().cast::<u8>();
    // SAFETY: `known` bytes are in both, and a fresh copy overlaps nothing.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, known) };
    // SAFETY: zeroes are a valid value, and so is what the program wrote.
    Ok(Some(unsafe { copy.assume_init() }))
}

/// How to contend.
pub(super) struct Contending {
    pub(super) strategy: Strategy,
    pub(super) label: String,
    pub(super) acl: Option<Vec<Acl>>,
    pub(super) sharing: Sharing,
    pub(super) interop: Interop,
}

/// How a lock is shared.
pub(super) enum Sharing {
    Exclusive,
    /// As one of many locks below the path.
    OfKey(Vec<u8>),
    Read,
    Upgradeable,
    Write,
    Permits {
        permits: u32,
        limit: u32,
    },
}

/// # Safety
/// As the header asks: `options` is null or a filled struct whose pointers are null or lead to what
/// they are named for.
pub(super) unsafe fn contending(
    function: &'static str,
    options: *const zkl_lock_options,
) -> Result<Contending, Failure> {
    let mut built = Contending {
        strategy: Strategy::Queue,
        label: String::new(),
        acl: None,
        sharing: Sharing::Exclusive,
        interop: Interop::Most,
    };
    // SAFETY: the caller keeps the promise above.
    let Some(given) = (unsafe { read(function, options) })? else {
        return Ok(built);
    };
    built.strategy = match given.strategy {
        ZKL_QUEUE => Strategy::Queue,
        ZKL_WATCH => Strategy::Watch,
        ZKL_POLL => Strategy::Poll,
        _ => return Err(Failure::bad_argument(function, "there is no such strategy")),
    };
    if !given.label.is_null() {
        // SAFETY: the caller promises a NUL-terminated string.
        let label = unsafe { boundary::text(function, "label", given.label) }?;
        built.label = label.to_owned();
    }
    // SAFETY: null, or the caller promises an ACL vector.
    if let Some(vector) = unsafe { given.acl.as_ref() } {
        // SAFETY: as above, with all its entries.
        built.acl = Some(unsafe { acl::copy(function, vector) }?);
    }
    built.sharing = sharing(function, &given)?;
    built.interop = interop(function, &given)?;
    Ok(built)
}

fn interop(function: &'static str, given: &zkl_lock_options) -> Result<Interop, Failure> {
    let refused = |why| Err(Failure::bad_argument(function, why));
    match (given.interop, given.strategy, given.sharing) {
        (ZKL_INTEROP_MOST, _, _) => Ok(Interop::Most),
        (ZKL_INTEROP_ALL, ZKL_QUEUE, ZKL_EXCLUSIVE) => Ok(Interop::All),
        (ZKL_INTEROP_ALL, _, _) => {
            refused("only ZKL_QUEUE and ZKL_EXCLUSIVE go with ZKL_INTEROP_ALL")
        }
        _ => refused("there is no such interop"),
    }
}

fn sharing(function: &'static str, given: &zkl_lock_options) -> Result<Sharing, Failure> {
    let refused = |why| Err(Failure::bad_argument(function, why));
    let number = |number: c_int| u32::try_from(number).ok();
    let sharing = match (given.sharing, number(given.permits), number(given.limit)) {
        (ZKL_EXCLUSIVE, Some(0), Some(0)) => return Ok(Sharing::Exclusive),
        (ZKL_READ, Some(0), Some(0)) => Sharing::Read,
        (ZKL_UPGRADEABLE, Some(0), Some(0)) => Sharing::Upgradeable,
        (ZKL_WRITE, Some(0), Some(0)) => Sharing::Write,
        (ZKL_PERMITS, Some(permits), Some(limit @ 1..)) => {
            Sharing::Permits { permits: permits.max(1), limit }
        }
        (ZKL_PERMITS, _, _) => {
            return refused("a semaphore has 1 permit or more, and none is negative");
        }
        (ZKL_EXCLUSIVE | ZKL_READ | ZKL_UPGRADEABLE | ZKL_WRITE, _, _) => {
            return refused("only ZKL_PERMITS has permits and a limit");
        }
        _ => return refused("there is no such sharing"),
    };
    if given.strategy != ZKL_QUEUE {
        return refused("only ZKL_QUEUE knows locks that are shared");
    }
    Ok(sharing)
}

/// Bytes of the program's.
///
/// # Safety
/// `data` is null or points to `len` bytes that stay unchanged during the call.
pub(super) unsafe fn bytes<'a>(
    function: &'static str,
    data: *const c_void,
    len: usize,
) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() || isize::try_from(len).is_err() {
        let why = format!("{len} bytes of data at an address that can't have them");
        return Err(Failure::bad_argument(function, &why));
    }
    // SAFETY: not null, and the caller promises `len` bytes.
    Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) })
}
