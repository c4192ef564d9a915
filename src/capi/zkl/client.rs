//! Clients: sessions of our own, and handles of the program's.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;

use zookeeper_sys as sys;

use crate::capi::boundary::{
    Failure, Object, free, given, may_block, number, output, status, text,
};
use crate::capi::zkl::connecting;
use crate::capi::zkl::options::zkl_client_options;
use crate::capi::zkl::present::Present;
use crate::client::{Client, ClientOptions, SessionState};
use crate::raw::Adopted;
use crate::stores::{Capabilities, Store};

/// zkl_client_state: no server has taken the session yet.
pub const ZKL_CONNECTING: c_int = 1;
/// zkl_client_state: a server is connected and the session lives.
pub const ZKL_CONNECTED: c_int = 2;
/// zkl_client_state, zkl_guard_state: the connection is lost, the session may still be alive. Stop
/// writing under a lock.
pub const ZKL_SUSPENDED: c_int = 3;
/// zkl_client_state: the session is over, or can't be trusted any more by the local clock. Its
/// locks are lost.
pub const ZKL_SESSION_LOST: c_int = 4;
/// zkl_client_state: the client has been detached, or can't go on.
pub const ZKL_CLOSED: c_int = 5;

/// A session of its own, a handle of the program's that was adopted, or another store than ZooKeeper; see
/// zkl_client_connect, zkl_client_adopt and zkl_store_connect.
#[allow(non_camel_case_types)]
pub struct zkl_client {
    pub(super) present: Arc<Present>,
    /// The same on all of its sessions.
    pub(super) capabilities: Capabilities,
}

impl Object for zkl_client {
    fn is_inherited(&self) -> bool {
        self.present.is_inherited()
    }
}

impl zkl_client {
    pub(super) fn boxed(store: Store, adopting: Option<ClientOptions>) -> Box<zkl_client> {
        let capabilities = store.capabilities();
        Box::new(zkl_client { present: Present::new(store, adopting), capabilities })
    }
}

/// Connects a session of its own and waits until a server has taken it, up to the connect timeout.
///
/// `hosts` reads "host[:port][,host[:port]...][/chroot]"; the port defaults to 2181, IPv6 addresses
/// stand in brackets. `options` may be NULL: the defaults. Both are copied.
///
/// After an expiry the client opens a new session by itself; the locks of the old one are lost.
///
/// Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, hosts that can't be parsed, or bad options; ZOPERATIONTIMEOUT when
/// no server took the session in time, with what is wrong with each host in zkl_last_error; ZAUTHFAILED when
/// the identity was refused, -124 when the servers take only clients with one; ZSYSTEMERROR when there is no
/// thread or no descriptor to be had, with the limit in zkl_last_error; ZKL_WOULD_DEADLOCK inside a callback
/// of the C client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_client_connect(
    hosts: *const c_char,
    options: *const zkl_client_options,
    client: Option<&mut MaybeUninit<*mut zkl_client>>,
) -> c_int {
    const NAME: &str = "zkl_client_connect";
    status(|| {
        let client = output(NAME, "client", client)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let hosts = unsafe { text(NAME, "hosts", hosts) }?;
        // SAFETY: the header asks for a filled struct.
        let options = unsafe { connecting::connecting(NAME, options) }?;
        may_block(NAME)?;
        let connected = options.connect(hosts).wait()?;
        client.write(Box::into_raw(zkl_client::boxed(connected.into(), None)));
        Ok(())
    })
}

/// Works on a live handle of libzookeeper_mt that the program opened, connected or not, and goes on
/// using. The handle stays the program's: it is never closed by zklock, and its global watcher and
/// context stay as they are.
///
/// - The client shares the handle's session, servers, chroot and identities. When that session is
///   over, so is the client: zkl_client_follow takes it to the next handle.
/// - A `sync` goes to the server every tenth of the session timeout, to know that the session lives; and
///   while a lock is held, a write that changes nothing every fifth.
/// - A session has one owner. A second handle on it (zookeeper_init with the client id of the first) can
///   end it for both. Guards of the first say ZKL_HELD until a server closes their connection or refuses a
///   request, usually for milliseconds; while they are cut off, for up to 0.95 of the session timeout.
///   zkl_guard_token covers that.
/// - The program may free the client before or after zookeeper_close, in any order, from ordinary
///   threads. When it closes the handle, everything on it is lost at once, and nothing of zklock
///   touches it any more.
/// - Inside a callback of that handle zookeeper_close is allowed only after zkl_client_detach, or
///   once the session has expired.
/// - What proves that the session lives comes through the handle's callbacks: a program that blocks
///   them for longer than four tenths of the session timeout may lose its locks.
/// - A handle that is adopted inside one of its own callbacks is recognised after at most 2 seconds of
///   waiting there (ZKL_WOULD_DEADLOCK). The completion of zoo_add_auth runs on a thread that can't
///   be recognised: wait for nothing there.
///
/// `zh` must be live until this returns. `options` may be NULL: the defaults; of its times only
/// operation_timeout_ms and tick_time_ms count here, and the others and auth_scheme have to be left out.
///
/// Any thread, callbacks of the handle included; does not block: acquires wait for the connection. On
/// success `*client` is the program's: free it with zkl_client_free.
///
/// ZOK; ZBADARGUMENTS for a NULL or bad options; ZINVALIDSTATE when the handle's session is over;
/// ZSYSTEMERROR when there is no thread to be had, with the limit in zkl_last_error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_client_adopt(
    zh: *mut sys::zhandle_t,
    options: *const zkl_client_options,
    client: Option<&mut MaybeUninit<*mut zkl_client>>,
) -> c_int {
    const NAME: &str = "zkl_client_adopt";
    status(|| {
        let client = output(NAME, "client", client)?;
        // SAFETY: the header asks for a filled struct.
        let options = unsafe { connecting::adopting(NAME, options) }?;
        // SAFETY: the header asks for a live handle, which is closed inside its own callbacks only
        // after a detach or an expiry.
        let adopted = unsafe { Adopted::new(zh) };
        let adopted = adopted.ok_or_else(|| Failure::bad_argument(NAME, "zh is NULL"))?;
        let adopted = options.adopt(adopted)?;
        client.write(Box::into_raw(zkl_client::boxed(adopted.into(), Some(options))));
        Ok(())
    })
}

/// Goes on with another handle of the program's, after an expiry say: what zkl_client_adopt did is done
/// again for `zh`, with the options that it was given, and the client's locks contend there from now on.
///
/// What was made before stays where it was made. Guards of a session that is over stay lost, and what is
/// under way on it ends; free them as ever. Where the session before still lives, its guards stay held,
/// acquires under way go on there, and the handle is given back once those are gone.
///
/// `zh` must be live until this returns. The handle before may be closed before or after this.
///
/// Any thread, callbacks of either handle included; does not block: acquires wait for the connection.
///
/// ZOK; ZBADARGUMENTS for a NULL, or a client with sessions of its own, which opens the next one by itself;
/// otherwise as zkl_client_adopt. On a failure the client stays as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_client_follow(
    client: Option<&zkl_client>,
    zh: *mut sys::zhandle_t,
) -> c_int {
    const NAME: &str = "zkl_client_follow";
    status(|| {
        let present = &given(NAME, "client", client)?.present;
        // SAFETY: the header asks for what zkl_client_adopt asks for.
        let next = unsafe { Adopted::new(zh) };
        let next = next.ok_or_else(|| Failure::bad_argument(NAME, "zh is NULL"))?;
        present.follow(NAME, next)
    })
}

/// Lets go of an adopted handle, and of those before it, at once; or ends the client's own session. Its guards are lost,
/// acquires under way end with ZINVALIDSTATE or ZCLOSING, and its state is ZKL_CLOSED. It must still be freed.
///
/// When this returns, nothing of zklock is inside an adopted handle or will touch it. What was held
/// on it stays in ZooKeeper until the handle's session ends: release guards first. Detaching again
/// does nothing.
///
/// Any thread, callbacks included. If the client has its own session, this waits until a server has confirmed the end, up
/// to the operation timeout. Inside a callback of the C client the session ends in the background.
///
/// ZOK: an adopted handle is free of zklock; of the client's own session, no lock is left (inside a callback of the C
/// client this is not known yet). ZCONNECTIONLOSS: no server has confirmed the end of the session, so its locks may stay
/// until it times out. ZBADARGUMENTS for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_detach(client: Option<&zkl_client>) -> c_int {
    const NAME: &str = "zkl_client_detach";
    status(|| {
        let present = &given(NAME, "client", client)?.present;
        if present.is_adopted() {
            for shared in present.all() {
                shared.client(NAME)?.detach();
            }
            return Ok(());
        }
        let closed = present.shared().store.close();
        if may_block(NAME).is_ok() {
            closed.wait()?;
        }
        Ok(())
    })
}

/// ZKL_CONNECTING, ZKL_CONNECTED, ZKL_SUSPENDED, ZKL_SESSION_LOST or ZKL_CLOSED, looked at now by the
/// local clock. Costs no request.
///
/// Any thread. ZBADARGUMENTS for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_state(client: Option<&zkl_client>) -> c_int {
    let state = || {
        let shared = given("zkl_client_state", "client", client)?.present.shared();
        let Some(client) = shared.store.client() else {
            return Ok(if shared.store.is_closed() { ZKL_CLOSED } else { ZKL_CONNECTED });
        };
        Ok(match client.state() {
            SessionState::Connecting => ZKL_CONNECTING,
            SessionState::Connected => ZKL_CONNECTED,
            SessionState::Suspended => ZKL_SUSPENDED,
            SessionState::Lost => ZKL_SESSION_LOST,
            SessionState::Closed => ZKL_CLOSED,
        })
    };
    number(crate::capi::codes::ZKL_PANIC, state, |code| code)
}

/// The session's id, as servers print it in hexadecimal; 0 while there is none, of a store other than ZooKeeper, and
/// for NULL.
///
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_session_id(client: Option<&zkl_client>) -> i64 {
    let id = || {
        let shared = given("zkl_client_session_id", "client", client)?.present.shared();
        let session = shared.store.client().and_then(Client::session);
        Ok(session.map_or(0, |key| key.id()))
    };
    number(0, id, |_| 0)
}

/// The session timeout that the server granted, or that the store was asked for, in milliseconds; 0 while there is no
/// session, and of `local:`.
///
/// Any thread. ZBADARGUMENTS for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_session_timeout_ms(client: Option<&zkl_client>) -> c_int {
    let timeout = || {
        let shared = given("zkl_client_session_timeout_ms", "client", client)?.present.shared();
        // Before the first connection the C client knows only what was asked for.
        let is_granted = shared.store.client().is_none_or(|client| client.session().is_some());
        let timeout = shared.store.session_timeout().filter(|_| is_granted).unwrap_or_default();
        Ok(c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX))
    };
    number(crate::capi::codes::ZKL_PANIC, timeout, |code| code)
}

/// Frees the client. Locks, guards, attempts and recipes that were made of it may be freed before or after it: each keeps
/// what it needs. When the last of them is freed, the client's own session ends; an adopted handle is given back once the
/// claims that were released on it are gone. The call that frees the last waits for this, up to a second; the rest happens
/// in the background. To learn whether the session has ended, call zkl_client_detach first. A handle may be adopted any
/// number of times.
///
/// Any thread, callbacks included. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_free(client: Option<Box<zkl_client>>) {
    free(client);
}

const _: () = {
    const fn usable_by_several_threads<T: Send + Sync>() {}
    usable_by_several_threads::<zkl_client>();
};
