//! Clients: sessions of our own, and handles of the program's.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::Arc;

use zookeeper_sys as sys;

use crate::capi::boundary::{
    Failure, Object, Unfreed, free, given, may_block, number, output, status, text,
};
use crate::capi::zkl::connecting;
use crate::capi::zkl::options::zkl_client_options;
use crate::capi::zkl::present::Present;
use crate::client::{Client, ClientOptions, SessionState};
use crate::raw::Adopted;
use crate::stores::{Capabilities, Store};

/// zkl_client_state: no server has accepted the session yet.
pub const ZKL_CONNECTING: c_int = 1;
/// zkl_client_state: a server is connected, and the session is alive.
pub const ZKL_CONNECTED: c_int = 2;
/// zkl_client_state, zkl_guard_state: the connection is lost, and the session may still be alive. Stop writing under a
/// lock.
pub const ZKL_SUSPENDED: c_int = 3;
/// zkl_client_state: the session is over, or the local clock no longer proves it alive. Its locks are lost.
pub const ZKL_SESSION_LOST: c_int = 4;
/// zkl_client_state: the client has been detached, or cannot continue.
pub const ZKL_CLOSED: c_int = 5;

/// A client with its own session, with an adopted handle of the program, or of another store; see zkl_client_connect,
/// zkl_client_adopt and zkl_store_connect.
#[allow(non_camel_case_types)]
pub struct zkl_client {
    pub(super) present: Arc<Present>,
    /// The same on all of its sessions.
    pub(super) capabilities: Capabilities,
    unfreed: Unfreed,
}

impl Object for zkl_client {
    fn unfreed(&self) -> &Unfreed {
        &self.unfreed
    }
}

impl zkl_client {
    pub(super) fn boxed(store: Store, adopting: Option<ClientOptions>) -> Box<zkl_client> {
        let capabilities = store.capabilities();
        let present = Present::new(store, adopting);
        Box::new(zkl_client { present, capabilities, unfreed: Unfreed::new() })
    }
}

/// Connects with a new session, and waits until a server has accepted it, up to the connect timeout.
///
/// `hosts` is "host[:port][,host[:port]...][/chroot]". The default port is 2181. Put IPv6 addresses in brackets.
/// `options` may be NULL: the defaults. Both are copied.
///
/// After an expiry the client opens a new session. The locks of the old one are lost.
///
/// Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, `hosts` cannot be parsed, or options are invalid. ZOPERATIONTIMEOUT: no
/// server accepted the session in time; zkl_last_error says what is wrong with each host. ZAUTHFAILED: the servers
/// refused the identity. -124: the servers accept only clients that authenticate. ZSYSTEMERROR: no thread or descriptor
/// is available; zkl_last_error names the limit. ZKL_WOULD_DEADLOCK: inside a callback of the C client.
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

/// Works on a live handle of libzookeeper_mt that the program opened, connected or not, and continues to use. zklock
/// never closes the handle, and leaves its global watcher and context alone.
///
/// - The client shares the handle's session, servers, chroot and identities. It ends with that session: to continue on
///   the next handle, call zkl_client_follow.
/// - To prove the session, zklock sends a `sync` every tenth of the session timeout. While a lock is held, it also
///   sends a write that changes nothing every fifth.
/// - A session has one owner. A second handle on it (zookeeper_init with the client id of the first) can end it for
///   both. Guards of the first stay ZKL_HELD until a server closes their connection or refuses a request, usually for
///   milliseconds. If they are cut off, that takes up to 0.95 of the session timeout. zkl_guard_token covers that.
/// - The program may free the client before or after zookeeper_close, from ordinary threads. When it closes the handle,
///   everything on it is lost at once, and zklock no longer touches the handle.
/// - Inside a callback of that handle, zookeeper_close is allowed only after zkl_client_detach, or once the session has
///   expired.
/// - The proofs of the session come through the handle's callbacks. If the program blocks them for longer than four
///   tenths of the session timeout, it may lose its locks.
/// - If a handle is adopted inside one of its own callbacks, a wait there fails with ZKL_WOULD_DEADLOCK after at most 2
///   seconds. If it is adopted before it is connected, do not wait in the callback that reports its first connection:
///   after twice the session timeout and 2 seconds, such a wait ends the use of the handle. The completion of
///   zoo_add_auth runs on a thread that cannot be recognised: wait for nothing there.
///
/// `zh` must be live until this returns. `options` may be NULL: the defaults. Of its times only operation_timeout_ms
/// and tick_time_ms apply. Leave out the others and auth_scheme.
///
/// Any thread, callbacks of the handle included; does not block: acquires wait for the connection. On success `*client`
/// is the program's: free it with zkl_client_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, or options are invalid. ZINVALIDSTATE: the handle's session is over.
/// ZSYSTEMERROR: no thread is available; zkl_last_error names the limit.
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

/// Continues on another handle of the program, for example after an expiry: adopts `zh` with the same options as in
/// zkl_client_adopt. The client's locks contend there from now on.
///
/// Existing objects stay on their handle. If its session is over, guards stay lost and waits end; free them as usual.
/// If it still lives, guards stay held and pending acquires continue there. The old handle is given back once they are
/// gone.
///
/// `zh` must be live until this returns. The old handle may be closed before or after this.
///
/// Any thread, callbacks of either handle included; does not block: acquires wait for the connection.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, or the client has its own session, which it replaces itself. Otherwise as
/// zkl_client_adopt. After an error the client is unchanged.
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

/// Detaches at once from the adopted handle and earlier ones, or ends the client's own session. Its guards are lost,
/// pending acquires end with ZINVALIDSTATE or ZCLOSING, and its state is ZKL_CLOSED. It must still be freed.
///
/// When this returns, zklock is not inside an adopted handle and will not touch it again. The znodes of locks that were
/// held on it, and of acquires that waited, stay in ZooKeeper until the handle's session ends, and block others: release
/// guards and cancel attempts first. A second call does nothing.
///
/// Any thread, callbacks included. If the client has its own session, this waits until a server has confirmed the end,
/// up to the operation timeout. Inside a callback of the C client the session ends in the background.
///
/// ZOK: an adopted handle is free of zklock. With the client's own session, no lock is left (inside a callback of the C
/// client this is not known yet). ZCONNECTIONLOSS: no server has confirmed the end of the session, so its locks may
/// stay until it times out. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_detach(client: Option<&zkl_client>) -> c_int {
    const NAME: &str = "zkl_client_detach";
    status(|| {
        let present = &given(NAME, "client", client)?.present;
        if present.is_adopted() {
            present.detach();
            return Ok(());
        }
        let closed = present.shared().store.close();
        if may_block(NAME).is_ok() {
            closed.wait()?;
        }
        Ok(())
    })
}

/// The client's state by the local clock at this moment: ZKL_CONNECTING, ZKL_CONNECTED, ZKL_SUSPENDED, ZKL_SESSION_LOST
/// or ZKL_CLOSED. Costs no request.
///
/// Any thread. ZBADARGUMENTS: NULL.
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

/// The session's id, which servers print in hexadecimal. 0 if there is no session, for another store than ZooKeeper,
/// and for NULL.
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

/// The session timeout that the server granted or the store was asked for, in milliseconds. 0 while there is no
/// session, and for `local:`.
///
/// Any thread. ZBADARGUMENTS: NULL.
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

/// Frees the client. Its locks, guards, attempts and recipes may be freed before or after it: each keeps what it needs.
///
/// When the last of them is freed, the client's own session ends. An adopted handle is given back once the released
/// claims on it are gone. The call that frees the last object waits for this, up to a second; the rest happens in the
/// background. To learn whether the session has ended, call zkl_client_detach first. A handle may be adopted any number
/// of times.
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
