//! Descriptors that a program polls: for the loss of a guard, for changes of its state, for the end of an attempt.

use std::ffi::c_int;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::capi::boundary::Failure;
use crate::error::Code;
use crate::scarcity;

/// A descriptor that becomes readable when it is signalled.
pub(super) struct SignalFd {
    /// The program's end and ours; `None` after the program has released or freed the owner.
    ends: Mutex<Option<(UnixStream, UnixStream)>>,
}

impl SignalFd {
    fn new() -> io::Result<SignalFd> {
        let (theirs, ours) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        ours.set_nonblocking(true)?;
        Ok(SignalFd { ends: Mutex::new(Some((theirs, ours))) })
    }

    fn number(&self) -> Option<RawFd> {
        self.ends.lock().as_ref().map(|(theirs, _)| theirs.as_raw_fd())
    }

    pub(super) fn signal(&self) {
        if let Some((_, ours)) = &mut *self.ends.lock() {
            // It can only be full if it was signalled before.
            let _ = ours.write(&[1]);
        }
    }

    fn clear(&self) {
        if let Some((theirs, _)) = &mut *self.ends.lock() {
            while theirs.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        }
    }
}

/// The descriptor of an object, made when the program first asks for it.
#[derive(Default)]
pub(super) struct OptionalFd(Mutex<Option<Arc<SignalFd>>>);

impl OptionalFd {
    /// Its number, the same at every call. `begin` arranges that a new one is signalled.
    pub(super) fn number(
        &self,
        function: &'static str,
        begin: impl FnOnce(&Arc<SignalFd>),
    ) -> Result<c_int, Failure> {
        let system_error =
            |why: String| Failure::new(Code::SYSTEM_ERROR.as_raw(), format!("{function}: {why}"));
        let mut place = self.0.lock();
        if place.is_none() {
            let made = SignalFd::new().map_err(|error| system_error(scarcity::describe(&error)))?;
            begin(place.insert(Arc::new(made)));
        }
        let number = place.as_ref().and_then(|fd| fd.number());
        number.ok_or_else(|| system_error("the guard is given up".to_owned()))
    }

    fn get(&self) -> Option<Arc<SignalFd>> {
        self.0.lock().clone()
    }

    pub(super) fn signal(&self) {
        if let Some(fd) = self.get() {
            fd.signal();
        }
    }

    /// It is not readable any more, until it is signalled again.
    pub(super) fn clear(&self) {
        if let Some(fd) = self.get() {
            fd.clear();
        }
    }

    /// Closes both ends: after this the number may be another file's.
    pub(super) fn close(&self) {
        if let Some(fd) = self.get() {
            fd.ends.lock().take();
        }
    }
}
