//! A handle of the C client, and the session on it, for the layer above. The simulation has another kind.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::multi::{RawOp, RawOpResult};
use super::sys;
use crate::error::Code;
use crate::sasl::Sasl;
use crate::session_key::SessionKey;
use crate::tls::Tls;
use crate::znode::{Acl, CreateMode, Stat};

/// The settings of a handle.
pub(crate) struct Config {
    /// `host:port,host:port/chroot`, checked by the caller: the C client's own parser can't be
    /// trusted with arbitrary text.
    pub(crate) hosts: String,
    /// Whether they are tried in this order at first, instead of one that nobody knows.
    pub(crate) in_order: bool,
    pub(crate) session_timeout: Duration,
    /// The session to take up again, if it still lives.
    pub(crate) session: Option<SessionKey>,
    pub(crate) tls: Option<Tls>,
    pub(crate) sasl: Option<Sasl>,
}

/// An identity to add to the session.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) scheme: String,
    pub(crate) secret: Vec<u8>,
}

/// The connection's state, by the C client's number: an open set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleState(pub(crate) i32);

impl HandleState {
    pub(crate) const EXPIRED: HandleState = HandleState(-112);
    pub(crate) const AUTH_FAILED: HandleState = HandleState(-113);
    #[cfg(test)]
    pub(crate) const CONNECTING: HandleState = HandleState(1);
    /// A connection is there, and the handshake on it was sent.
    pub(crate) const HANDSHAKE: HandleState = HandleState(2);
    pub(crate) const CONNECTED: HandleState = HandleState(3);
    pub(super) const NOT_CONNECTED: HandleState = HandleState(999);
    /// Of our own making: the program has closed the handle that we adopted.
    pub(crate) const GONE: HandleState = HandleState(i32::MIN);

    /// Whether an attempt to connect is in progress.
    pub(super) fn is_attempt(self) -> bool {
        matches!(self, HandleState(1) | HandleState::HANDSHAKE | HandleState(7))
    }

    /// Whether the handle will never be connected again.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, HandleState::EXPIRED | HandleState::AUTH_FAILED | HandleState::GONE)
    }
}

/// When a request is sent, and by when it is answered at the latest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) deadline: Option<Instant>,
    pub(crate) turn: Turn,
}

/// Takes the one answer to a request. Runs on a thread of the C client: it must not block.
pub(crate) type Sink<T> = Box<dyn FnOnce(Result<T, Code>) + Send>;

/// Whether a read leaves a watch on what it read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchOn {
    No,
    Yes,
}

/// When a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// After those that were submitted before it; refused with `THROTTLED_OP` when too many wait.
    InOrder,
    /// After those that were submitted before it, however many these are.
    InOrderAlways,
    /// Before those that wait.
    Ahead,
}

/// The requests. Each is answered exactly once; none blocks.
pub(crate) trait Requests: Send + Sync {
    fn create(
        &self,
        terms: Terms,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
        sink: Sink<(String, Stat)>,
    );
    fn delete(&self, terms: Terms, path: &str, version: i32, sink: Sink<()>);
    fn exists(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<Stat>);
    fn get(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<u8>, Stat)>);
    fn set(&self, terms: Terms, path: &str, data: &[u8], version: i32, sink: Sink<Stat>);
    fn children(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<String>, Stat)>);
    fn get_acl(&self, terms: Terms, path: &str, sink: Sink<(Vec<Acl>, Stat)>);
    fn set_acl(&self, terms: Terms, path: &str, acl: &[Acl], version: i32, sink: Sink<()>);
    /// Changes who belongs to the ensemble: who joins, who leaves, or who are the members.
    fn reconfigure(
        &self,
        terms: Terms,
        lists: [Option<String>; 3],
        version: i64,
        sink: Sink<(Vec<u8>, Stat)>,
    );
    /// Waits until the connected server has caught up with the leader.
    fn sync(&self, terms: Terms, path: &str, sink: Sink<()>);
    /// Goes ahead of all that waits. The sink runs on the C client's IO thread, perhaps under one of
    /// its locks: it may do no more than signal.
    fn add_auth(&self, deadline: Option<Instant>, credentials: &Credentials, sink: Sink<()>);
    /// All or nothing. The sink gets one result for each operation, also when the server refused
    /// the whole; then one of them has the reason.
    fn multi(&self, terms: Terms, ops: &[RawOp<'_>], sink: Sink<Vec<RawOpResult>>);
}

/// One handle.
///
/// After [`close`](Handle::close) has returned on an ordinary thread, no callback of an owned handle runs
/// or will run. Every request that the handle accepted has been answered.
pub(crate) trait Handle: Requests {
    /// Whether the program owns the handle.
    fn is_adopted(&self) -> bool;
    /// Whether the C client owes the answers that open an adopted handle for too long.
    fn is_overdue(&self) -> bool;
    /// Whether this thread may wait for answers. On a handle that was connected when it was
    /// adopted, the first two take no time, unless this is the thread that they come on: that is
    /// not known yet then.
    fn can_be_waited_for(&self) -> bool;
    /// Leaves a watch on the root, so that the completion thread tells of session events, and runs
    /// `unwatched` if that failed. The watch goes when the root is changed.
    fn watch_session_events(&self, unwatched: Box<dyn FnOnce() + Send>);
    /// `None` once the handle is closed; of an adopted one, why it can't be used any more.
    fn state(&self) -> Option<HandleState>;
    /// Runs `body` if the handle is open. A close waits for its end.
    fn while_open(&self, body: &mut dyn FnMut(*mut sys::zhandle_t));
    /// The session that the handle last had; its id is 0 before the first connection.
    fn session(&self) -> Option<SessionKey>;
    /// The session timeout that the server granted; before the first connection, the one asked for.
    fn session_timeout(&self) -> Option<Duration>;
    /// The server that the handle is connected to, or tries next.
    fn server(&self) -> Option<SocketAddr>;
    /// Makes the next attempt to connect go to the next server. With two or four addresses the C
    /// client alone can skip half of them for ever.
    ///
    /// It goes to one of `wanted`, if there are any and the C client knows them.
    fn cycle_next_server(&self, wanted: &[SocketAddr]);
    /// Whether a request has not been answered by its deadline.
    fn is_any_late(&self, now: Instant) -> bool;
    /// Answers each request that is past its deadline at `now` with `OPERATION_TIMEOUT`.
    fn expire(&self, now: Instant);
    /// Ends the session if the handle is connected, and frees the handle. Blocks for up to some
    /// seconds when the server is silent. Closing again does nothing.
    ///
    /// A callback can't join the handle's threads, so inside a callback another thread does it.
    ///
    /// An adopted handle is only detached: when this returns, no call of ours is inside it, and
    /// none will be.
    fn close(&self) {
        self.close_for(None);
    }
    /// As [`close`](Handle::close); `why` is what [`state`](Handle::state) gives from then on.
    fn close_for(&self, why: Option<HandleState>);
}
