//! The holder of a lock and its waiters, as a list that the program owns.

use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::time::SystemTime;

use crate::capi::boundary::{Failure, c_string, given, output, status, text, value};
use crate::capi::zkl::lock::zkl_lock;
use crate::capi::zkl::present::OnASession;
use crate::lock::Contender;

/// A client that holds a lock or waits for it. The list owns its strings, which are never NULL.
///
/// Any client may have written this data. Host, thread and label are single lines of up to 256 characters that are safe
/// to show on a terminal: spaces replace unprintable characters and those that change the writing direction. The path
/// is as in ZooKeeper.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct zkl_contender {
    /// The claim's znode.
    pub path: *const c_char,
    /// The session of the claim.
    pub session_id: i64,
    /// The fencing token, once it holds the lock.
    pub token: i64,
    /// When the claim was made, by the servers' clocks: milliseconds since the epoch. A holder that had to wait has
    /// held for less: see `held_since_ms`.
    pub since_ms: i64,
    /// The host name; empty if the claim is another library's.
    pub host: *const c_char,
    /// The process id; 0 if the claim is another library's.
    pub pid: u32,
    /// The name of the thread, or else its id (the kernel's, on Linux); empty if the claim is another library's.
    pub thread: *const c_char,
    /// The owner's label. If the claim is another library's, the beginning of its data.
    pub label: *const c_char,
    /// The earliest time at which the hold can have begun, by the servers' clocks: milliseconds since the epoch. 0 for
    /// a waiter.
    pub held_since_ms: i64,
    /// The latest time at which the hold can have begun. 0 for a waiter. It is the time of the call if claims have left
    /// the queue since.
    pub held_since_latest_ms: i64,
}

/// A list of contenders; see zkl_lock_holder and zkl_lock_contenders.
#[allow(non_camel_case_types)]
pub struct zkl_contenders {
    list: Vec<zkl_contender>,
    /// The memory that `list` points into.
    _strings: Vec<CString>,
}

// SAFETY: the pointers in `list` lead only into `_strings`, which is never changed; nothing here is
// tied to a thread.
unsafe impl Send for zkl_contenders {}
// SAFETY: as above.
unsafe impl Sync for zkl_contenders {}

impl zkl_contenders {
    pub(super) fn boxed(contenders: Vec<Contender>) -> Box<zkl_contenders> {
        let mut strings = Vec::with_capacity(contenders.len() * 4);
        let mut keep = |text: &str| {
            // The text of a CString stays where it is when the CString moves.
            strings.push(c_string(text));
            strings.last().map_or(std::ptr::null(), |text| text.as_ptr())
        };
        let list = contenders
            .into_iter()
            .map(|contender| zkl_contender {
                path: keep(&contender.path),
                session_id: contender.session,
                token: contender.token,
                since_ms: millis(contender.since),
                host: keep(&contender.host),
                pid: contender.pid,
                thread: keep(&contender.thread),
                label: keep(&contender.label),
                held_since_ms: contender.held_since.map_or(0, |held| millis(held.earliest)),
                held_since_latest_ms: contender.held_since.map_or(0, |held| millis(held.latest)),
            })
            .collect();
        Box::new(zkl_contenders { list, _strings: strings })
    }
}

/// Since the epoch.
fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A program's description of a contender.
///
/// # Safety
/// The path is NULL or a string.
pub(super) unsafe fn meant(
    function: &'static str,
    name: &str,
    who: Option<&zkl_contender>,
) -> Result<Contender, Failure> {
    let null = || Failure::bad_argument(function, &format!("{name} is NULL"));
    let who = who.ok_or_else(null)?;
    // SAFETY: the caller's promise.
    let path = unsafe { text(function, &format!("{name}->path"), who.path) }?;
    Ok(Contender::new(path, who.token))
}

fn list(
    function: &'static str,
    lock: Option<&zkl_lock>,
    place: Option<&mut MaybeUninit<*mut zkl_contenders>>,
    most: usize,
) -> Result<(), Failure> {
    let lock = given(function, "lock", lock)?;
    let place = output(function, "contenders", place)?;
    let OnASession { lock, shared, .. } = lock.at_present();
    shared.may_wait(function)?;
    let contenders = lock.first_contenders(most).wait()?;
    place.write(Box::into_raw(zkl_contenders::boxed(contenders)));
    Ok(())
}

/// The holder: a list of one entry, or an empty one.
///
/// Any thread, `done` and `lost` callbacks of zklock included; blocks up to the operation timeout. On success
/// `*contenders` is the program's: free it with zkl_contenders_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL. ZOPERATIONTIMEOUT or ZCONNECTIONLOSS: no server answers. ZNOAUTH.
/// ZINVALIDSTATE, ZSESSIONEXPIRED or ZAUTHFAILED: the client is closed. ZKL_WOULD_DEADLOCK: inside a callback of the C
/// client.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_holder(
    lock: Option<&zkl_lock>,
    contenders: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_lock_holder", lock, contenders, 1))
}

/// The contenders in their order: holders first, then waiters. Waiters are known only in a queue, because waiters of
/// the other strategies have no znode.
///
/// Threads, ownership and codes: as zkl_lock_holder.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_lock_contenders(
    lock: Option<&zkl_lock>,
    contenders: Option<&mut MaybeUninit<*mut zkl_contenders>>,
) -> c_int {
    status(|| list("zkl_lock_contenders", lock, contenders, usize::MAX))
}

/// The number of entries; 0 for NULL.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_contenders_count(contenders: Option<&zkl_contenders>) -> usize {
    contenders.map_or(0, |contenders| contenders.list.len())
}

/// The entry at `index`, from 0. NULL beyond the end and for NULL. The list owns it.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_contenders_get(
    contenders: Option<&zkl_contenders>,
    index: usize,
) -> Option<&zkl_contender> {
    contenders?.list.get(index)
}

/// Frees the list, with its entries and their strings.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_contenders_free(contenders: Option<Box<zkl_contenders>>) {
    value((), || drop(contenders));
}
