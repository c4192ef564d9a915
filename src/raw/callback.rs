//! The functions that the C client calls when a request is done.
//!
//! Each decodes C's arguments into Rust values, takes the slot that the context names, answers it
//! and returns.

use std::ffi::{c_char, c_int, c_void};

use super::on_the_way::OnTheWay;
use super::slots::{self, Receiver, Slot};
use super::{callback_thread, convert, sys};
use crate::error::Code;
use crate::panics::catch_panic;

/// Answers the request that the context names, by a reply of about so many bytes.
fn answer(context: *const c_void, reply: usize, deliver: impl FnOnce(Slot)) {
    callback_thread::run(|| {
        let Some(slot) = slots::take(context.addr()) else { return };
        let traffic = slot.on_the_way.as_ref().map(OnTheWay::traffic);
        // Counted as in flight while it is answered. Its panic must not keep others from being sent.
        catch_panic(|| deliver(slot));
        if let Some(traffic) = traffic {
            traffic.answered(reply);
        }
    });
}

/// As [`answer`], by a completion of one shape. Runs `decode` only for a success: with an error the C client passes
/// null pointers. A success that it had no memory to decode is a `SYSTEM_ERROR`: the servers have executed the request.
macro_rules! answer {
    ($context:ident, $reply:expr, $rc:ident, $shape:ident, $decode:expr) => {
        answer($context, $reply, |mut slot| match slot.receiver.take() {
            Some(Receiver::$shape(sink)) => sink(match Code::from_raw($rc) {
                Code::OK => $decode().ok_or(Code::SYSTEM_ERROR),
                code => Err(meant(code)),
            }),
            other => mismatch(other),
        })
    };
}

/// When the servers refuse an identity, the C client ends all requests with that code, also those that they have executed
/// or may yet execute.
fn meant(code: Code) -> Code {
    if code == Code::AUTH_FAILED { Code::CONNECTION_LOSS } else { code }
}

/// Of a request to accept an identity.
pub(super) unsafe extern "C" fn accepted(rc: c_int, context: *const c_void) {
    answer(context, 0, |mut slot| match slot.receiver.take() {
        Some(Receiver::Void(sink)) => sink(match Code::from_raw(rc) {
            Code::OK => Ok(()),
            code => Err(code),
        }),
        other => mismatch(other),
    });
}

pub(super) unsafe extern "C" fn void(rc: c_int, context: *const c_void) {
    answer!(context, 0, rc, Void, || Some(()));
}

pub(super) unsafe extern "C" fn stat(rc: c_int, stat: *const sys::Stat, context: *const c_void) {
    answer!(context, 0, rc, Stat, || {
        // SAFETY: the C client keeps its arguments alive until the callback returns.
        unsafe { convert::stat(stat) }
    });
}

pub(super) unsafe extern "C" fn data(
    rc: c_int,
    value: *const c_char,
    len: c_int,
    stat: *const sys::Stat,
    context: *const c_void,
) {
    answer!(context, usize::try_from(len).unwrap_or(0), rc, Data, || {
        // SAFETY: null, or `len` bytes until the callback returns; the C client keeps it.
        let bytes = unsafe { convert::bytes(value, len) }?;
        // SAFETY: as above, for `stat`.
        let stat = unsafe { convert::stat(stat) }?;
        Some((bytes, stat))
    });
}

/// How long a child's name is in a reply, about.
const NAME: usize = 32;

pub(super) unsafe extern "C" fn children(
    rc: c_int,
    strings: *const sys::String_vector,
    stat: *const sys::Stat,
    context: *const c_void,
) {
    // SAFETY: null, or the C client keeps it until the callback returns.
    let names = unsafe { strings.as_ref() }.map_or(0, |names| names.count);
    let reply = usize::try_from(names).unwrap_or(0).saturating_mul(NAME);
    answer!(context, reply, rc, Children, || {
        // SAFETY: the C client keeps the vector and its strings until the callback returns.
        let names = unsafe { convert::strings(strings) }?;
        // SAFETY: as above, for `stat`.
        let stat = unsafe { convert::stat(stat) }?;
        Some((names, stat))
    });
}

pub(super) unsafe extern "C" fn created(
    rc: c_int,
    path: *const c_char,
    stat: *const sys::Stat,
    context: *const c_void,
) {
    answer!(context, 0, rc, Created, || {
        // SAFETY: the C client keeps the string until the callback returns.
        let path = unsafe { convert::string(path) }?;
        // SAFETY: as above, for `stat`.
        let stat = unsafe { convert::stat(stat) }?;
        Some((path, stat))
    });
}

pub(super) unsafe extern "C" fn acl(
    rc: c_int,
    acl: *mut sys::ACL_vector,
    stat: *mut sys::Stat,
    context: *const c_void,
) {
    answer!(context, 0, rc, Acl, || {
        // SAFETY: the C client keeps the vector and its strings until the callback returns.
        let acl = unsafe { convert::acl(acl) }?;
        // SAFETY: as above, for `stat`.
        let stat = unsafe { convert::stat(stat) }?;
        Some((acl, stat))
    });
}

/// The string is the path that was synced: nobody needs it.
pub(super) unsafe extern "C" fn synced(rc: c_int, _path: *const c_char, context: *const c_void) {
    answer!(context, 0, rc, Void, || Some(()));
}

pub(super) unsafe extern "C" fn multi(rc: c_int, context: *const c_void) {
    answer(context, 0, |mut slot| {
        match (slot.receiver.take(), slot.memory.take()) {
            // The C client has filled the memory before it runs the completion.
            (Some(Receiver::Multi(sink)), Some(memory)) => {
                sink(memory.results(meant(Code::from_raw(rc))))
            }
            (other, _) => mismatch(other),
        }
    });
}

/// An empty receiver was answered by its deadline. Another shape can't happen, since request and
/// completion are named side by side in `request.rs`; the caller must still get an answer.
fn mismatch(receiver: Option<Receiver>) {
    if let Some(receiver) = receiver {
        receiver.fail(Code::MARSHALLING_ERROR);
    }
}
