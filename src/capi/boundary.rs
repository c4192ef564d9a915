//! The frame around every exported function: panics become a code, errors leave a message, and the thread can't be
//! cancelled meanwhile.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cancellation::Uncancelled;
use super::codes;
use crate::client::Client;
use crate::error::{Code, Error};
use crate::lock::LockError;
use crate::process::{Process, inherited};
use crate::sync::per_process;

/// The failure of an exported function.
#[derive(Clone)]
pub(super) struct Failure {
    code: c_int,
    message: String,
}

impl Failure {
    /// One of the program's own making: `function` and `why` tell it which.
    pub(super) fn bad_argument(function: &'static str, why: &str) -> Failure {
        Failure::new(Code::BAD_ARGUMENTS.as_raw(), format!("{function}: {why}"))
    }

    /// A path that can have no lock.
    pub(super) fn bad_path(function: &'static str, path: &str, why: &str) -> Failure {
        Failure::bad_argument(function, &format!("path {path:?}: {why}"))
    }

    pub(super) fn new(code: c_int, message: String) -> Failure {
        Failure { code, message }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Leaves the message on this thread and gives the code to return.
    pub(super) fn tell(self) -> c_int {
        remember(self.message);
        self.code
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error.code().as_raw(), error.to_string())
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        let code = match &error {
            LockError::NotHeld { .. } => codes::ZKL_NOT_HELD,
            error => error.code().as_raw(),
        };
        Failure::new(code, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of an exported function and gives the code to return.
pub(super) fn status(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    number(codes::ZKL_PANIC, || body().map(|()| Code::OK.as_raw()), |code| code)
}

/// As [`status`], for a function that returns either a number or a code.
pub(super) fn number<T>(
    panicked: T,
    body: impl FnOnce() -> Result<T, Failure>,
    from_code: impl FnOnce(c_int) -> T,
) -> T {
    match caught(body) {
        Some(Ok(number)) => number,
        Some(Err(failure)) => from_code(failure.tell()),
        None => panicked,
    }
}

/// Runs the body of an exported function that can't fail; `otherwise` is for a defect of ours.
pub(super) fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(otherwise)
}

fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    let _uncancelled = Uncancelled::begin();
    let result = catch_unwind(AssertUnwindSafe(body));
    if result.is_err() {
        panicked().tell();
    }
    result.ok()
}

/// A defect of ours.
pub(super) fn panicked() -> Failure {
    let message = "a panic inside zklock was caught; please report it";
    Failure::new(codes::ZKL_PANIC, message.to_owned())
}

fn remember(message: String) {
    let message = c_string(&message);
    // A thread that is ending has no place left for it.
    let _ = LAST.try_with(|last| last.replace(message));
}

/// The message of the last failure on this thread; the pointer is good until the next one.
pub(super) fn last_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// A string for C. A NUL inside, which no path has, becomes a space.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// A string argument.
///
/// # Safety
/// `text` is null or a NUL-terminated string that stays unchanged during the call.
pub(super) unsafe fn text<'a>(
    function: &'static str,
    name: &str,
    text: *const c_char,
) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::bad_argument(function, &format!("{name} is NULL")));
    }
    // SAFETY: not null, and the caller promises the terminator.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::bad_argument(function, &format!("{name} is not valid UTF-8")))
}

per_process! {
    static UNFREED: AtomicUsize = AtomicUsize::new(0);
}

/// How many objects the program has not freed.
pub(super) fn unfreed() -> usize {
    UNFREED.load(Ordering::Acquire)
}

/// Counts an object of the program's, until that is dropped in the process that has made it.
pub(super) struct Unfreed(Process);

impl Unfreed {
    pub(super) fn new() -> Unfreed {
        UNFREED.fetch_add(1, Ordering::AcqRel);
        Unfreed(Process::this())
    }
}

impl Drop for Unfreed {
    fn drop(&mut self) {
        if self.0.is_this() {
            UNFREED.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// An object that a program has from us.
pub(super) trait Object {
    fn unfreed(&self) -> &Unfreed;

    /// Whether a parent process has made it.
    fn is_inherited(&self) -> bool {
        !self.unfreed().0.is_this()
    }
}

/// An object of ours that the program hands in.
pub(super) fn given<'a, T: Object>(
    function: &'static str,
    name: &str,
    object: Option<&'a T>,
) -> Result<&'a T, Failure> {
    let object =
        object.ok_or_else(|| Failure::bad_argument(function, &format!("{name} is NULL")))?;
    if object.is_inherited() { Err(inherited(function, "").into()) } else { Ok(object) }
}

/// The program gives an object up. Of one that another process has made nothing but its own memory is
/// freed: what is behind it is not ours.
pub(super) fn free<T: Object>(object: Option<Box<T>>) {
    value((), || match object {
        Some(object) if object.is_inherited() => std::mem::forget(*object),
        object => drop(object),
    });
}

/// Where to put a result: asked for before the work begins, written when it has succeeded.
pub(super) fn output<'a, T>(
    function: &'static str,
    name: &str,
    place: Option<&'a mut MaybeUninit<T>>,
) -> Result<&'a mut MaybeUninit<T>, Failure> {
    place.ok_or_else(|| Failure::bad_argument(function, &format!("{name} is NULL")))
}

/// Refuses to block a thread of the C client that is running a callback: the answer that is waited
/// for would have to come through it.
pub(super) fn may_block(function: &'static str) -> Result<(), Failure> {
    if crate::raw::inside_callback() { Err(would_deadlock(function)) } else { Ok(()) }
}

/// As [`may_block`], also for a handle with threads that are not known yet.
pub(super) fn may_wait_for(function: &'static str, client: &Client) -> Result<(), Failure> {
    if client.can_be_waited_for() {
        return Ok(());
    }
    may_block(function)?;
    let message = format!(
        "{function}: the handle has answered nothing since it was adopted: called inside one of its \
         callbacks, which holds the answer up?"
    );
    Err(Failure::new(codes::ZKL_WOULD_DEADLOCK, message))
}

fn would_deadlock(function: &'static str) -> Failure {
    let message = format!("{function}: called inside a callback of the C client that it waits for");
    Failure::new(codes::ZKL_WOULD_DEADLOCK, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the message is this thread's and stays until the next failure.
        unsafe { CStr::from_ptr(last_message()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_message() {
        assert_eq!(status(|| panic!("as intended")), codes::ZKL_PANIC);
        assert!(last().contains("panic"), "{}", last());
        assert_eq!(number(-5_i64, || panic!("as intended"), i64::from), -5);
        assert_eq!(value(7, || panic!("as intended")), 7);
    }

    #[test]
    fn the_last_failure_stays_until_the_next_one_and_on_its_own_thread() {
        assert_eq!(status(|| Err(Failure::bad_argument("zkl_f", "x\0y"))), -8);
        assert_eq!(status(|| Ok(())), 0);
        assert_eq!(last(), "zkl_f: x y");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
    }
}
