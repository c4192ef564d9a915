//! One handle of the C client, the session on it, and what is known of that session.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::connection::Connection;
use super::farewell::LeftBehind;
use super::history::{History, SessionHistory};
use super::identity::OwnIdentity;
use super::lease::Lease;
use super::registry::Registry;
use super::settings::Settings;
use super::unconfirmed::Unconfirmed;
use super::watch::{WatchRoom, WatchTable};
use super::{Duties, handles};
use crate::error::{Code, Error};
use crate::logging::log;
use crate::raw::{self, Credentials, Event, EventKind, Handle, HandleState, Zhandle};
use crate::runtime::{BootInstant, now, offload};
use crate::session_key::SessionKey;

/// The client that a session belongs to.
pub(super) trait LinkOwner: Send + Sync {
    fn options(&self) -> &Arc<Settings>;

    fn duties(&self) -> &Arc<Duties>;

    fn history(&self) -> &Arc<History>;

    /// The identities of the program.
    fn credentials(&self) -> Vec<Credentials>;

    /// Whether each session gets its own identity.
    fn gives_identities(&self) -> bool;

    /// Something may have changed: looks at the handle's state and draws the conclusions.
    fn observe(&self, link: &Arc<Link>);

    /// Has the driver look after the session soon.
    fn wake(&self);

    /// The session may end unnoticed, even though its lease still stands.
    fn lose_trust(&self, link: &Arc<Link>);

    /// The servers will never accept a session of this client.
    fn refused(&self, error: Error);
}

/// When the servers were last asked to renew the lease.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) sync: BootInstant,
    pub(super) write: BootInstant,
}

/// One session on its handle. A request that is submitted here can never act on a later session.
pub(crate) struct Link {
    pub(super) handle: Box<dyn Handle>,
    pub(super) owner: Weak<dyn LinkOwner>,
    pub(super) options: Arc<Settings>,
    pub(super) watches: Arc<WatchTable>,
    pub(super) watch_room: Arc<WatchRoom>,
    pub(super) lease: Arc<Lease>,
    pub(super) history: Arc<SessionHistory>,
    /// Facts about its session.
    pub(crate) registry: Registry,
    pub(super) asked: Mutex<Asked>,
    pub(super) connection: Mutex<Connection>,
    /// How many events of the session there were.
    session_events: AtomicU64,
    key: OnceLock<SessionKey>,
    /// Whether another handle had the session before.
    was_taken_up: bool,
    /// Whether a worker makes the C client go to the next server.
    cycling: AtomicBool,
    /// Whether the C client has the session's identities.
    pub(super) credentials_sent: AtomicBool,
    /// An identity that no other session has.
    pub(super) identity: Option<OwnIdentity>,
    /// Whether there is a watch that makes an adopted handle report the events of its session.
    pub(super) session_watched: Arc<AtomicBool>,
    pub(super) unconfirmed: Unconfirmed,
    pub(super) duties: Arc<Duties>,
    /// Whether a znode has to go that only the session's end can delete.
    pub(super) has_undeletable: AtomicBool,
}

/// Passes a handle's events to its link. Events that arrive before the link exists are lost: the client reads the state
/// after it has created the link.
#[derive(Default)]
struct Events(Arc<OnceLock<Weak<Link>>>);

impl Events {
    fn listener(&self) -> impl Fn(Event) + Send + Sync + use<> {
        let link = Arc::clone(&self.0);
        move |event| {
            if let Some(link) = link.get().and_then(Weak::upgrade) {
                link.on_event(&event);
            }
        }
    }
}

impl Link {
    /// Starts to connect. Can block for as long as the resolution of host names does.
    /// With an order of its hosts, they are tried in that order at first.
    pub(super) fn open(
        owner: &Arc<impl LinkOwner + 'static>,
        session: Option<SessionKey>,
        order: Option<&[String]>,
    ) -> io::Result<Arc<Link>> {
        let options = owner.options();
        let chroot = options.chroot();
        let config = raw::Config {
            hosts: order.map_or_else(|| options.hosts.clone(), |hosts| hosts.join(",") + chroot),
            in_order: order.is_some(),
            session_timeout: options.session_timeout,
            session,
            tls: options.tls.clone(),
            sasl: options.sasl.clone(),
        };
        // Before the handle is opened, and so before its handshake is sent.
        let connection = Connection::new(BootInstant::now(), false);
        let events = Events::default();
        let handle = handles::open(&config, events.listener())?;
        let link = Link::new(owner, handle, connection, &events, session.is_some());
        // Before the connection is up, so that they go ahead of every request.
        link.send_credentials(owner.credentials());
        Ok(link)
    }

    /// Works on a handle that the program owns.
    pub(super) fn adopt(
        owner: &Arc<impl LinkOwner + 'static>,
        adopted: raw::Adopted,
    ) -> Result<Arc<Link>, Code> {
        let connection = Connection::new(BootInstant::now(), true);
        let events = Events::default();
        let handle = Zhandle::adopt(adopted, events.listener())?;
        Ok(Link::new(owner, Box::new(handle), connection, &events, false))
    }

    fn new(
        owner: &Arc<impl LinkOwner + 'static>,
        handle: Box<dyn Handle>,
        connection: Connection,
        events: &Events,
        was_taken_up: bool,
    ) -> Arc<Link> {
        let options = owner.options();
        let has_identity = owner.gives_identities() && !was_taken_up && !handle.is_adopted();
        let link = Arc::new(Link {
            handle,
            owner: Arc::downgrade(owner) as _,
            options: Arc::clone(options),
            watches: Arc::default(),
            watch_room: WatchRoom::new(options.max_request, options.chroot().len()),
            lease: Arc::default(),
            history: Arc::new(SessionHistory::begin(owner.history())),
            registry: Registry::default(),
            asked: Mutex::default(),
            connection: Mutex::new(connection),
            session_events: AtomicU64::new(0),
            key: OnceLock::new(),
            was_taken_up,
            cycling: AtomicBool::new(false),
            credentials_sent: AtomicBool::new(false),
            identity: has_identity.then(OwnIdentity::new),
            session_watched: Arc::default(),
            unconfirmed: Unconfirmed::default(),
            duties: Arc::clone(owner.duties()),
            has_undeletable: AtomicBool::new(false),
        });
        let _ = events.0.set(Arc::downgrade(&link));
        link
    }

    /// Runs on the completion thread.
    fn on_event(self: &Arc<Self>, event: &Event) {
        let line = event.clone();
        log!(TRACE, event = ?line, "event");
        if event.kind != EventKind::SESSION {
            if event.path == "/" {
                self.session_watched.store(false, Ordering::Release);
                self.watch_session_events();
            }
            self.watch_room.fired(event);
            return self.watches.fire(event);
        }
        self.session_events.fetch_add(1, Ordering::AcqRel);
        let state = self.handle_state();
        if let Some(owner) = self.owner.upgrade() {
            if state == Some(HandleState::CONNECTED) {
                self.watch_session_events();
                self.send_credentials(owner.credentials());
                self.send_sync();
            }
            owner.observe(self);
            owner.wake();
        }
        // Here, on the completion thread: the program may close its handle as soon as it knows.
        if state.is_some_and(HandleState::is_final) && self.is_adopted() {
            self.handle.close_for(state);
        }
    }

    /// Which connection this is: two replies between which this has not changed came on one connection, and so did all
    /// events between them. Not of an adopted handle, which may keep events of its session to itself.
    pub(crate) fn connection(&self) -> u64 {
        self.session_events.load(Ordering::Acquire)
    }

    /// Whether another handle had the session before.
    pub(crate) fn was_taken_up(&self) -> bool {
        self.was_taken_up
    }

    pub(super) fn handle_state(&self) -> Option<HandleState> {
        self.handle.state()
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        self.handle.session_timeout()
    }

    /// The session's id and password; asked for while connected, and known from then on. The C client writes them
    /// during a handshake, so they are read from it only once.
    pub(super) fn session(&self) -> Option<SessionKey> {
        if let Some(key) = self.key.get() {
            return Some(*key);
        }
        if self.handle_state()? != HandleState::CONNECTED {
            return None;
        }
        let key = self.handle.session().filter(|key| key.id() != 0)?;
        Some(*self.key.get_or_init(|| key))
    }

    /// Makes the C client go to the next server, or to one of those that serve, if any is known. On a worker, because
    /// the C client holds a lock while it resolves host names. If no thread can be started, the next turn tries again.
    pub(super) fn cycle_next_server(
        self: &Arc<Self>,
        serving: impl FnOnce() -> Vec<SocketAddr> + Send + 'static,
    ) {
        if self.cycling.swap(true, Ordering::AcqRel) {
            return;
        }
        let link = Arc::clone(self);
        let cycle = move || {
            link.handle.cycle_next_server(&serving());
            link.cycling.store(false, Ordering::Release);
        };
        if !offload::try_run(cycle) {
            self.cycling.store(false, Ordering::Release);
        }
    }

    /// Ends the requests that are late. On a worker, because their wakers are code of other programs.
    pub(super) fn expire_requests(self: &Arc<Self>) {
        let now = now();
        if self.handle.is_any_late(now) {
            let link = Arc::clone(self);
            offload::run(move || link.handle.expire(now));
        }
    }

    /// The session, if it may live on after the handle is closed.
    pub(super) fn leaves_behind(&self) -> Option<LeftBehind> {
        let is_over = self.handle_state() == Some(HandleState::EXPIRED);
        let session = self.session().filter(|_| !is_over)?;
        let (server, timeout) = (self.handle.server(), self.session_timeout());
        Some(LeftBehind { session, server, timeout })
    }

    /// Closes the handle, and answers everything that waits, watches with `code`. Blocks.
    pub(super) fn close(&self, code: Code) {
        self.handle.close();
        self.watches.close(code);
        self.unconfirmed.end(code);
    }
}
