//! One client for each handle on which programs written against the C recipes work.
//!
//! The recipes' structs have no room for a client, and their programs may never call destroy. So a
//! client lives from the first use of its handle until the program closes that handle, or its
//! session is over.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::{Mutex, MutexGuard};
use zookeeper_sys as sys;

use crate::capi::boundary::Failure;
use crate::capi::callbacks::{CallbackThread, Line};
use crate::client::{Client, ClientOptions};
use crate::error::Code;
use crate::raw::Adopted;
use crate::sync::per_process;

per_process! {
    /// By the handle's address. A client that works notices the end of its handle before the memory can
    /// become another handle's; of one that does not work yet, nobody knows, so it is not found again.
    static CLIENTS: Mutex<HashMap<usize, Served>> = Mutex::default();
}

struct Served {
    client: Client,
    callbacks: CallbackThread,
}

/// The client on a handle. Requests must wait for its [`trusted_session`](crate::client::ClientInner::trusted_session):
/// a handle that has just been adopted takes none for a moment.
///
/// # Safety
/// `zh` is null, or as [`Adopted::new`] demands.
pub(super) unsafe fn client_for(
    function: &'static str,
    zh: *mut sys::zhandle_t,
) -> Result<Client, Failure> {
    // SAFETY: the caller keeps that promise.
    unsafe { serve(function, zh, |served| Ok(served.client.clone())) }
}

/// As [`client_for`], with where completions run for programs on that handle.
///
/// # Safety
/// As [`client_for`].
pub(super) unsafe fn client_and_line_for(
    function: &'static str,
    zh: *mut sys::zhandle_t,
) -> Result<(Client, Line), Failure> {
    let both = |served: &Served| Ok((served.client.clone(), served.callbacks.line(function)?));
    // SAFETY: the caller keeps that promise.
    unsafe { serve(function, zh, both) }
}

/// The clients that are still attached to their handles.
fn attached() -> MutexGuard<'static, HashMap<usize, Served>> {
    let mut clients = CLIENTS.lock();
    clients.retain(|_, served| served.client.is_attached());
    clients
}

/// The result of `take` for the client on a handle. `take` must get everything in one call: another
/// thread's look-up removes a client from the table if it does not work yet.
///
/// # Safety
/// As [`client_for`].
unsafe fn serve<T>(
    function: &'static str,
    zh: *mut sys::zhandle_t,
    take: impl FnOnce(&Served) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut clients = attached();
    match clients.entry(zh.addr()) {
        Entry::Occupied(served) => take(served.get()),
        Entry::Vacant(vacant) => {
            // SAFETY: the caller keeps that promise.
            let adopted = unsafe { Adopted::new(zh) };
            adopt(function, adopted).and_then(|client| {
                let callbacks = CallbackThread::default();
                take(vacant.insert(Served { client, callbacks }))
            })
        }
    }
}

/// How many handles there are on which programs still work.
pub(in crate::capi) fn count() -> usize {
    let mut clients = attached();
    clients.shrink_to_fit();
    clients.len()
}

/// The recipes leave it to the servers what is too large. This is what the C client can put together.
const MOST: usize = 1 << 29;

fn adopt(function: &'static str, adopted: Option<Adopted>) -> Result<Client, Failure> {
    let adopted = adopted.ok_or_else(|| {
        Failure::new(Code::BAD_ARGUMENTS.as_raw(), format!("{function}: the handle is NULL"))
    })?;
    Ok(ClientOptions::new().max_request(MOST).adopt(adopted)?)
}
