//! What the functions are called on: a client that is connected, one that never will be, and what
//! comes back from a call.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use zklock_testing::Server;
use zookeeper_sys as sys;

use super::arguments::{Verdict, no_options};
use crate::capi::codes;
use crate::capi::zkl::client::{zkl_client, zkl_client_adopt, zkl_client_connect, zkl_client_free};
use crate::capi::zkl::errors::{zkl_last_error, zkl_strerror};
use crate::capi::zkl::options::zkl_client_options;
use crate::error::Code;

/// No pause of a busy machine comes near it.
const SESSION_MS: c_int = 30_000;

/// A handle of the program's.
pub(super) struct Handle(pub(super) *mut sys::zhandle_t);

impl Handle {
    pub(super) fn open(hosts: &str) -> Handle {
        let hosts = CString::new(hosts).unwrap();
        let (no_id, no_context) = (std::ptr::null(), std::ptr::null_mut());
        // It would write to the terminal.
        unsafe extern "C" fn say_nothing(_: *const c_char) {}
        let log: sys::log_callback_fn = Some(say_nothing);
        // SAFETY: the host string is copied; there is no watcher and no context.
        let zh = unsafe {
            sys::zookeeper_init2(hosts.as_ptr(), None, SESSION_MS, no_id, no_context, 0, log)
        };
        assert!(!zh.is_null());
        Handle(zh)
    }

    /// One that nobody answers, on this machine.
    pub(super) fn unanswered() -> Handle {
        Handle::open("127.0.0.1:1")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened above, closed once, and on no thread of its own.
        unsafe { sys::zookeeper_close(self.0) };
    }
}

pub(super) struct Scene {
    pub(super) connected: Box<zkl_client>,
    pub(super) unanswered: Box<zkl_client>,
    // In the order of their end: the clients before what they work on.
    _handle: Handle,
    _server: Server,
}

impl Scene {
    pub(super) fn new() -> Scene {
        let server = Server::start().unwrap();
        let hosts = CString::new(server.hosts()).unwrap();
        let options = zkl_client_options {
            session_timeout_ms: SESSION_MS,
            connect_timeout_ms: SESSION_MS,
            ..no_options()
        };
        let connected = given(true, |client| {
            // SAFETY: a string, filled options, and a place for the client.
            unsafe { zkl_client_connect(hosts.as_ptr(), &options, client) }
        });
        let handle = Handle::unanswered();
        let options = zkl_client_options { operation_timeout_ms: 10, ..no_options() };
        let unanswered = given(true, |client| {
            // SAFETY: a live handle, filled options, and a place for the client.
            unsafe { zkl_client_adopt(handle.0, &options, client) }
        });
        Scene {
            connected: connected.unwrap().unwrap(),
            unanswered: unanswered.unwrap().unwrap(),
            _handle: handle,
            _server: server,
        }
    }

    /// The first client for 1, the second for 2, none for anything else.
    pub(super) fn client(&self, which: u8) -> Option<&zkl_client> {
        match which {
            1 => Some(&self.connected),
            2 => Some(&self.unanswered),
            _ => None,
        }
    }

    pub(super) fn end(self) {
        zkl_client_free(Some(self.connected));
        zkl_client_free(Some(self.unanswered));
    }
}

/// What a call said, which is a code that there is, and a reason if it is one of a failure.
pub(super) fn told(code: c_int) -> Verdict {
    assert!(code <= 0, "{code}");
    assert!(code != codes::ZKL_PANIC && code != codes::ZKL_WOULD_DEADLOCK, "{code}: {}", reason());
    if code == 0 {
        return Ok(());
    }
    assert!(!reason().is_empty());
    // SAFETY: a string that lives as long as the program.
    let meaning = unsafe { CStr::from_ptr(zkl_strerror(code)) };
    assert_ne!(meaning, c"unknown code", "{code}");
    Err(Code::from_raw(code))
}

fn reason() -> String {
    // SAFETY: a string that stays until the next failure on this thread.
    unsafe { CStr::from_ptr(zkl_last_error()) }.to_string_lossy().into_owned()
}

/// What a call said and gave: something exactly when it succeeded.
pub(super) fn given<T>(
    has_place: bool,
    call: impl FnOnce(Option<&mut MaybeUninit<*mut T>>) -> c_int,
) -> Result<Option<Box<T>>, Code> {
    let untouched = std::ptr::without_provenance_mut(64);
    let mut place = MaybeUninit::new(untouched);
    let verdict = told(call(has_place.then_some(&mut place)));
    // SAFETY: it was written above, or by the call.
    let written = unsafe { place.assume_init() };
    assert_eq!(written != untouched, verdict.is_ok() && has_place);
    verdict?;
    // SAFETY: what a call gives is a box that it has let go of.
    Ok((written != untouched).then(|| unsafe { Box::from_raw(written) }))
}

/// Runs a property on arguments of a kind, a quarter as often as those that call nothing.
pub(super) fn check<S: Strategy>(
    arguments: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = Config::default().cases.div_ceil(4);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    if let Err(error) = TestRunner::new(config).run(&arguments, property) {
        panic!("{error}");
    }
}
