//! How results come to the program's callbacks.

use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::capi::boundary::Failure;
use crate::capi::callbacks::{Line, Userdata};
use crate::capi::zkl::shared::Shared;
use crate::error::Code;
use crate::runtime::Pending;

/// The result of an operation, delivered when this is dropped: also where the operation is dropped because its
/// client is closed.
struct Reply<T: Send + 'static> {
    result: Result<T, Failure>,
    delivery: Option<Delivery<T>>,
}

pub(super) struct Delivery<T> {
    pub(super) line: Line,
    pub(super) userdata: Userdata,
    /// Runs on the callback thread.
    pub(super) done: Box<dyn FnOnce(Result<T, Failure>, *mut c_void) + Send>,
}

impl<T: Send + 'static> Drop for Reply<T> {
    fn drop(&mut self) {
        let Some(Delivery { line, userdata, done }) = self.delivery.take() else { return };
        let taken = Failure::new(Code::NOTHING.as_raw(), String::new());
        let result = mem::replace(&mut self.result, Err(taken));
        line.run(move || {
            done(result, userdata.pointer());
            userdata.finish();
        });
    }
}

/// Has what an operation gives delivered.
pub(super) fn deliver<T: Send + 'static, E: Send + 'static>(
    name: &str,
    shared: &Arc<Shared>,
    mut pending: Pending<T, E>,
    delivery: Delivery<T>,
) where
    Failure: From<E>,
{
    // Whatever was on its way may have been done.
    let closed = Failure::new(Code::CLOSING.as_raw(), format!("{name}: the client was closed"));
    let mut reply = Reply { result: Err(closed), delivery: Some(delivery) };
    // What ends at once is delivered so, also where the client is closed and runs nothing any more.
    let mut nobody = Context::from_waker(Waker::noop());
    if let Poll::Ready(result) = Pin::new(&mut pending).poll(&mut nobody) {
        reply.result = result.map_err(Failure::from);
        return;
    }
    // An adopted handle is detached from all that is on it, also after its client has gone on with another.
    let kept = Arc::clone(shared);
    shared.spawn(async move {
        reply.result = pending.await.map_err(Failure::from);
        drop(kept);
        drop(reply);
    });
}

/// The code for the program, and what it gets with ZOK.
pub(super) fn code<T>(result: Result<T, Failure>) -> (c_int, Option<T>) {
    match result {
        Ok(value) => (Code::OK.as_raw(), Some(value)),
        Err(failure) => (failure.tell(), None),
    }
}

pub(super) fn no_done(name: &'static str) -> Failure {
    Failure::bad_argument(name, "done is NULL")
}

/// Calls the program's function with the code alone.
pub(super) fn with_code<T>(
    done: unsafe extern "C" fn(c_int, *mut c_void),
    shared: &Arc<Shared>,
) -> impl FnOnce(Result<T, Failure>, *mut c_void) + Send + use<T> {
    let shared = Arc::clone(shared);
    move |result, userdata| {
        let (rc, _) = code(result);
        // The last of a client ends its session.
        drop(shared);
        // SAFETY: the program gave the function for these arguments, to be called on this thread; this is consumed, so
        // it is called once.
        unsafe { done(rc, userdata) };
    }
}
