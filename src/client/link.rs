//! One handle of the C client and the session on it: its requests, its watches, and what the
//! server has proved of it.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::farewell::LeftBehind;
use super::identity::OwnIdentity;
use super::lease::{Lease, Proof, is_server_decision};
use super::registry::Registry;
use super::settings::Settings;
use super::unconfirmed::Unconfirmed;
use super::watch::{WatchRoom, WatchTable};
use super::{Duties, handles};
use crate::error::{Code, Error};
use crate::logging::log;
use crate::raw::{self, Credentials, Event, EventKind, Handle, HandleState, Sink, Turn, Zhandle};
use crate::runtime::{BootInstant, machine, now};
use crate::session_key::SessionKey;

/// When the servers were last asked to renew the lease.
struct Asked {
    sync: BootInstant,
    write: BootInstant,
}

/// What was last seen of the connection.
struct Connection {
    /// When there was none.
    without: BootInstant,
    /// When the handshake of the present or the next one had not been sent yet; `None` for a handle
    /// that was connected before it was ours.
    before_handshake: Option<BootInstant>,
    /// Whether the lease knows of the present one.
    noted: bool,
    /// How many there were since a server last answered on one, and since when.
    unproven: u32,
    proven_at: BootInstant,
}

/// How many connections in a row bring no answer before a session is given up.
const HOPELESS: u32 = 8;

/// One session's handle. What was submitted here can never act on a later session.
/// Whose session it is.
pub(super) trait LinkOwner: Send + Sync {
    fn options(&self) -> &Settings;

    fn duties(&self) -> &Arc<Duties>;

    /// Something may have changed.
    fn observe(&self, link: &Arc<Link>);

    /// Has its session looked after soon.
    fn wake(&self);

    /// The session can't be trusted any more, whatever its lease says.
    fn lose_trust(&self, link: &Arc<Link>);

    /// The servers will never take a session of its.
    fn refused(&self, error: Error);

    /// What it identifies itself by.
    fn credentials(&self) -> Vec<Credentials>;
}

pub(crate) struct Link {
    /// Empty only while the handle is being opened.
    pub(super) handle: OnceLock<Box<dyn Handle>>,
    pub(super) owner: Weak<dyn LinkOwner>,
    pub(super) watches: Arc<WatchTable>,
    pub(super) watch_room: Arc<WatchRoom>,
    pub(super) lease: Arc<Lease>,
    /// What is known of its session.
    pub(crate) registry: Registry,
    asked: Mutex<Asked>,
    connection: Mutex<Connection>,
    /// How many events of the session there were.
    session_events: AtomicU64,
    /// The session's key: one link has one session.
    key: OnceLock<SessionKey>,
    /// Whether another handle had the session before.
    taken_up: bool,
    /// Whether a thread is on its way to the next server.
    cycling: AtomicBool,
    /// Whether the C client has our identities; it repeats them at each reconnection.
    credentials_sent: AtomicBool,
    /// What the session alone may do is allowed to this.
    identity: Option<OwnIdentity>,
    /// Whether there is a watch that makes an adopted handle tell of its session.
    session_watched: Arc<AtomicBool>,
    pub(super) operation_timeout: Duration,
    pub(super) max_request: usize,
    pub(super) unconfirmed: Unconfirmed,
    pub(super) duties: Arc<Duties>,
    /// See [`has_left`](Link::has_left).
    pub(super) has_left: AtomicBool,
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
        let has_identity = options.announces_releases && session.is_none();
        let identity = has_identity.then(OwnIdentity::new);
        let link = Link::new(owner, session.is_some(), identity);
        let chroot = options.hosts.find('/').map_or("", |at| &options.hosts[at..]);
        let config = raw::Config {
            hosts: order.map_or_else(|| options.hosts.clone(), |hosts| hosts.join(",") + chroot),
            in_order: order.is_some(),
            session_timeout: options.session_timeout,
            session,
            tls: options.tls.clone(),
            sasl: options.sasl.clone(),
        };
        let events = Arc::downgrade(&link);
        let handle = handles::open(&config, move |event| {
            if let Some(link) = events.upgrade() {
                link.on_event(&event);
            }
        })?;
        let _ = link.handle.set(handle);
        // Before the connection is up, so that they go ahead of every request.
        link.send_credentials(&**owner);
        Ok(link)
    }

    /// Works on a handle that the program owns.
    pub(super) fn adopt(
        owner: &Arc<impl LinkOwner + 'static>,
        adopted: raw::Adopted,
    ) -> Result<Arc<Link>, Code> {
        let link = Link::new(owner, false, None);
        link.connection.lock().before_handshake = None;
        let events = Arc::downgrade(&link);
        let handle = Zhandle::adopt(adopted, move |event| {
            if let Some(link) = events.upgrade() {
                link.on_event(&event);
            }
        })?;
        let _ = link.handle.set(Box::new(handle));
        Ok(link)
    }

    fn new(
        owner: &Arc<impl LinkOwner + 'static>,
        taken_up: bool,
        identity: Option<OwnIdentity>,
    ) -> Arc<Link> {
        let options = owner.options();
        Arc::new(Link {
            handle: OnceLock::new(),
            owner: Arc::downgrade(owner) as _,
            watches: Arc::default(),
            watch_room: WatchRoom::new(options.max_request, options.chroot().len()),
            lease: Arc::default(),
            registry: Registry::default(),
            asked: Mutex::new(Asked {
                sync: BootInstant::from_nanos(0),
                write: BootInstant::from_nanos(0),
            }),
            connection: Mutex::new(Connection {
                without: BootInstant::now(),
                before_handshake: Some(BootInstant::now()),
                noted: false,
                unproven: 0,
                proven_at: BootInstant::now(),
            }),
            session_events: AtomicU64::new(0),
            key: OnceLock::new(),
            taken_up,
            cycling: AtomicBool::new(false),
            credentials_sent: AtomicBool::new(false),
            identity,
            session_watched: Arc::default(),
            operation_timeout: options.operation_timeout,
            max_request: options.max_request,
            unconfirmed: Unconfirmed::default(),
            duties: Arc::clone(owner.duties()),
            has_left: AtomicBool::new(false),
        })
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
                self.send_credentials(&*owner);
                self.send_sync(BootInstant::now());
            }
            owner.observe(self);
            owner.wake();
        }
        // Here, on the completion thread: the program may close its handle as soon as it knows.
        if state.is_some_and(HandleState::is_final) && self.is_adopted() {
            if let Some(handle) = self.handle.get() {
                handle.close_for(state);
            }
        }
    }

    /// Makes sure that an adopted handle tells of its session; our own does by itself.
    pub(super) fn watch_session_events(self: &Arc<Self>) {
        let Some(handle) = self.handle.get().filter(|handle| handle.is_adopted()) else { return };
        if !self.session_watched.swap(true, Ordering::AcqRel) {
            let session_watched = Arc::clone(&self.session_watched);
            let unwatched = move || session_watched.store(false, Ordering::Release);
            handle.watch_session_events(Box::new(unwatched));
        }
    }

    /// Whether the program owns the handle.
    pub(crate) fn is_adopted(&self) -> bool {
        self.handle.get().is_some_and(|handle| handle.is_adopted())
    }

    /// Whether another handle had the session before.
    pub(crate) fn was_taken_up(&self) -> bool {
        self.taken_up
    }

    /// Whether this thread may wait for answers: not where they would come through it.
    pub(super) fn can_be_waited_for(&self) -> bool {
        self.handle.get().is_none_or(|handle| handle.can_be_waited_for())
    }

    /// Whether an adopted handle has not shown in time that it can be worked on.
    pub(super) fn is_overdue(&self) -> bool {
        self.handle.get().is_some_and(|handle| handle.is_overdue())
    }

    /// Lets go of the handle at once: on return nothing of ours is inside it.
    pub(super) fn let_go(&self) {
        if let Some(handle) = self.handle.get() {
            handle.close_for(Some(HandleState::GONE));
        }
    }

    /// Tells the C client our identities, unless it has them. Between two attempts to connect it
    /// takes none.
    fn send_credentials(self: &Arc<Self>, owner: &dyn LinkOwner) {
        let Some(handle) = self.handle.get() else { return };
        if self.credentials_sent.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.identity.as_ref().map(OwnIdentity::credentials).cloned();
        let (others, own) = (owner.credentials().into_iter(), own.into_iter());
        for (credentials, is_own) in others.map(|it| (it, false)).chain(own.map(|it| (it, true))) {
            let link = Arc::downgrade(self);
            let sink: Sink<()> = Box::new(move |reply| {
                let Some(link) = link.upgrade() else { return };
                match (reply, &link.identity) {
                    (Err(Code::INVALID_STATE), _) => {
                        link.credentials_sent.store(false, Ordering::Release);
                    }
                    (Ok(()), Some(identity)) if is_own => identity.accept(),
                    _ => {}
                }
            });
            handle.add_auth(None, &credentials, sink);
        }
    }

    /// What stands in an ACL, in the scheme `digest`, for this session and nobody else, where it has such an identity.
    pub(crate) fn own_identity(&self) -> Option<&str> {
        self.identity.as_ref()?.id()
    }

    /// When to look again at the latest: when the session can't be trusted any more if no server
    /// answers, and often while that is near.
    pub(super) fn next_look_in(&self, usual: Duration, timeout: Duration) -> Duration {
        let now = BootInstant::now();
        let pause = if self.lease.is_short_at(now) { usual.min(timeout / 100) } else { usual };
        match self.lease.ends_in(now) {
            Duration::ZERO => usual,
            ends_in => pause.min(ends_in + Duration::from_millis(1)),
        }
    }

    /// Has the servers renew the lease, if that is due.
    pub(super) fn heartbeat(self: &Arc<Self>) {
        let now = BootInstant::now();
        let (sync, write) = {
            let asked = self.asked.lock();
            (asked.sync.max(asked.write), asked.write)
        };
        if self.lease.is_write_due(write, now) {
            self.send_write(now);
        } else if self.lease.is_sync_due(sync, now) {
            self.send_sync(now);
        }
    }

    fn send_sync(self: &Arc<Self>, now: BootInstant) {
        let Some(handle) = self.handle.get() else { return };
        self.asked.lock().sync = now;
        handle.sync(self.terms(Turn::Ahead), "/", self.renewal(now, Proof::Sync));
    }

    /// Sends a write that changes nothing: it is refused, and a quorum has to commit that.
    fn send_write(self: &Arc<Self>, now: BootInstant) {
        let Some(handle) = self.handle.get() else { return };
        self.asked.lock().write = now;
        let renewal = self.renewal(now, Proof::Write);
        handle.delete(self.terms(Turn::Ahead), NO_ZNODE, NO_VERSION, renewal);
    }

    fn renewal(self: &Arc<Self>, submitted: BootInstant, proof: Proof) -> Sink<()> {
        let link = Arc::downgrade(self);
        Box::new(move |reply| {
            let Some(link) = link.upgrade() else { return };
            let Some(owner) = link.owner.upgrade() else { return };
            link.learn(&reply, submitted, proof);
            match reply {
                // Another handle has taken the session up, and may end it at any time.
                Err(Code::SESSION_MOVED) => owner.lose_trust(&link),
                // It would be so with every session that follows.
                Err(code @ Code::SESSION_CLOSED_REQUIRE_SASL_AUTH) => {
                    owner.refused(Error::answered("connect", "", code));
                }
                // The first answer after a connection is what makes it count.
                reply if is_server_decision(&reply) => owner.observe(&link),
                _ => {}
            }
        })
    }

    /// Renews the lease by a reply, if it is the servers'.
    pub(super) fn learn<T>(
        &self,
        reply: &std::result::Result<T, Code>,
        submitted: BootInstant,
        proof: Proof,
    ) {
        if is_server_decision(reply) {
            self.lease.answered(submitted, BootInstant::now(), proof);
        }
    }

    /// Which connection this is: two replies between which this has not changed came on one connection, and so did all
    /// events between them. Not of an adopted handle, which may keep events of its session to itself.
    pub(crate) fn connection(&self) -> u64 {
        self.session_events.load(Ordering::Acquire)
    }

    pub(super) fn handle_state(&self) -> Option<HandleState> {
        self.handle.get()?.state()
    }

    /// The session's id and password; asked for while connected, and known from then on. The C
    /// client writes them during a handshake, so they are read from it once only.
    pub(super) fn session(&self) -> Option<SessionKey> {
        if let Some(key) = self.key.get() {
            return Some(*key);
        }
        let handle = self.handle.get()?;
        if handle.state()? != HandleState::CONNECTED {
            return None;
        }
        let key = handle.session().filter(|key| key.id() != 0)?;
        Some(*self.key.get_or_init(|| key))
    }

    pub(super) fn saw_unconnected(&self, state: Option<HandleState>, now: BootInstant) {
        let mut connection = self.connection.lock();
        connection.without = now;
        connection.noted = false;
        if state != Some(HandleState::HANDSHAKE) {
            connection.before_handshake = Some(now);
        }
    }

    /// The lease learns of the present connection, by these terms.
    pub(super) fn saw_connected(
        &self,
        timeout: Duration,
        tick: Option<Duration>,
        now: BootInstant,
    ) {
        self.lease.set_terms(timeout, tick);
        let mut connection = self.connection.lock();
        if !std::mem::replace(&mut connection.noted, true) {
            connection.unproven += 1;
            match connection.before_handshake {
                Some(before) => self.lease.connected(before, now),
                None => self.lease.adopted(now),
            }
        }
    }

    /// Whether a server has answered on the present connection, and lately.
    pub(super) fn is_usable(&self, now: BootInstant) -> bool {
        let mut connection = self.connection.lock();
        let usable = self.lease.is_alive_at(now) && self.lease.latest() >= connection.without;
        if usable {
            connection.unproven = 0;
            connection.proven_at = now;
        }
        usable
    }

    /// Whether connections come and go without an answer on any of them, for so long that nothing is
    /// held on the session any more: each of them renews it, and so keeps from others what is claimed.
    pub(super) fn is_hopeless(&self, timeout: Duration) -> bool {
        let connection = self.connection.lock();
        connection.unproven >= HOPELESS && BootInstant::now() - connection.proven_at > 3 * timeout
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        self.handle.get()?.session_timeout()
    }

    /// Turns to the next server, or has one of those that serve follow, if any is known to. On a helper
    /// thread, for the C client holds a lock while it resolves host names; where there is no thread to be
    /// had it is left for the next turn.
    pub(super) fn cycle_next_server(
        self: &Arc<Self>,
        serving: impl FnOnce() -> Vec<SocketAddr> + Send + 'static,
    ) {
        if self.cycling.swap(true, Ordering::AcqRel) {
            return;
        }
        let link = Arc::clone(self);
        let cycle = move || {
            if let Some(handle) = link.handle.get() {
                handle.cycle_next_server(&serving());
            }
            link.cycling.store(false, Ordering::Release);
        };
        if !machine::try_run(cycle) {
            self.cycling.store(false, Ordering::Release);
        }
    }

    /// Has the requests answered whose deadline has passed: on a helper thread, for their wakers are code of
    /// others.
    pub(super) fn expire_requests(self: &Arc<Self>) {
        let now = now();
        if self.handle.get().is_some_and(|handle| handle.is_any_late(now)) {
            let link = Arc::clone(self);
            machine::run(move || {
                if let Some(handle) = link.handle.get() {
                    handle.expire(now);
                }
            });
        }
    }

    /// Closes the handle, and answers everything that waits, watches with `code`. Gives the session, unless that is known
    /// to be over or was never begun: `zookeeper_close` may have ended it, or not. Blocks.
    pub(super) fn close(&self, code: Code) -> Option<LeftBehind> {
        let is_over = self.is_adopted() || self.handle_state() == Some(HandleState::EXPIRED);
        let session = self.session().filter(|_| !is_over);
        let server = self.handle.get().and_then(|handle| handle.server());
        if let Some(handle) = self.handle.get() {
            handle.close();
        }
        self.watches.close(code);
        self.unconfirmed.end(code);
        session.map(|session| LeftBehind { session, server })
    }
}

/// What a heartbeat asks the servers to delete, and what they refuse: no data has that version.
const NO_ZNODE: &str = "/zklock/heartbeat";
const NO_VERSION: i32 = i32::MAX;
