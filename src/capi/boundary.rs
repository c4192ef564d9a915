//! What every exported function passes through: panics become a code, errors leave a message.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::codes;
use crate::error::{Code, Error};

/// What an exported function ends with when it does not succeed.
pub(super) struct Failure {
    code: c_int,
    message: String,
}

impl Failure {
    /// One of the program's own making: `function` and `why` tell it which.
    pub(super) fn bad_argument(function: &'static str, why: &str) -> Failure {
        Failure::new(Code::BAD_ARGUMENTS.as_raw(), format!("{function}: {why}"))
    }

    pub(super) fn new(code: c_int, message: String) -> Failure {
        Failure { code, message }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error.code().as_raw(), error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of an exported function and gives the code to return.
pub(super) fn status(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match caught(body) {
        Some(Ok(())) => Code::OK.as_raw(),
        Some(Err(failure)) => {
            remember(failure.message);
            failure.code
        }
        None => codes::PANIC,
    }
}

/// Runs the body of an exported function that can't fail; `otherwise` is for a defect of ours.
pub(super) fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(otherwise)
}

fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(body));
    if result.is_err() {
        remember("a panic inside zklock was caught; please report it".to_owned());
    }
    result.ok()
}

fn remember(message: String) {
    // Paths are escaped in messages, so that no NUL is left; if one is, the text ends there.
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no place left for it.
    let _ = LAST.try_with(|last| last.replace(message));
}

/// The message of the last failure on this thread; the pointer is good until the next one.
pub(super) fn last_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
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
