//! What the clones of a client share: the present link, the session's state, and what wakes its driver.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_executor::Executor;
use event_listener::{Event, EventListener};
use futures_util::FutureExt as _;
use parking_lot::Mutex;

use super::link::LinkOwner;
use super::probe::Hosts;
use super::registry::Registry;
use super::settings::Settings;
use super::state::SessionState;
use super::status::Status;
use super::{Duties, Duty, Link, TrustPeriod, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::panics::catch_panic_of;
use crate::process::{Process, inherited};
use crate::raw::{Credentials, HandleState};
use crate::runtime::{BootInstant, Latest, Unfinished, now};
use crate::session_key::SessionKey;
use crate::znode::Acl;

pub(crate) struct ClientInner {
    /// A number of this client's alone.
    id: u64,
    /// Where it was made. In a child of that nothing drives it, and its locks may be held for ever: it
    /// is closed there, and nothing of it is touched.
    process: Process,
    options: Settings,
    status: Latest<Status>,
    wakeup: Event,
    closing: AtomicBool,
    /// Cloned by each that wants to know that its end is committed.
    awaits_end: Arc<()>,
    /// From the request for its end on, until that has come.
    ending: Mutex<Option<Unfinished>>,
    #[cfg(test)]
    killed: AtomicBool,
    /// Owned by what drives the session, so that tasks go when that ends.
    tasks: Weak<Executor<'static>>,
    pub(super) credentials: Mutex<Vec<Credentials>>,
    hosts: Hosts,
    pub(crate) registry: Registry,
    /// By which everyone may do everything: that of most locks.
    pub(crate) open_acl: Arc<[Acl]>,
    duties: Arc<Duties>,
}

impl ClientInner {
    pub(super) fn new(options: Settings, tasks: Weak<Executor<'static>>) -> ClientInner {
        let credentials = Mutex::new(options.credentials.clone());
        let status = Latest::new(Status {
            state: SessionState::Connecting,
            losses: 0,
            link: None,
            trust: None,
            failure: None,
            over: None,
        });
        let closing = AtomicBool::new(false);
        ClientInner {
            id: uuid::Uuid::new_v4().as_u64_pair().0,
            process: Process::this(),
            hosts: Hosts::new(&options.hosts, options.tls.clone()),
            options,
            status,
            wakeup: Event::new(),
            closing,
            awaits_end: Arc::default(),
            ending: Mutex::default(),
            #[cfg(test)]
            killed: AtomicBool::new(false),
            tasks,
            credentials,
            registry: Registry::default(),
            open_acl: Acl::open().into(),
            duties: Arc::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether another process has made it, of which this is a child.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.process.is_this()
    }

    pub(super) fn options(&self) -> &Settings {
        &self.options
    }

    /// Whether releases are to be announced to who waits.
    pub(crate) fn announces_releases(&self) -> bool {
        self.options.announces_releases
    }

    /// Whether a lock may skip the listing when the client already knows that it holds.
    pub(crate) fn takes_shortcuts(&self) -> bool {
        self.options.takes_shortcuts
    }

    /// The servers that it connects to, as text.
    pub(crate) fn hosts_string(&self) -> &str {
        &self.options.hosts
    }

    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Runs `task` on the driver's thread, until it ends or the client is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.is_inherited() {
            return std::mem::forget(task);
        }
        if let Some(tasks) = self.tasks.upgrade() {
            // A task may wake code that is not ours; what drives the session must outlive its panic.
            tasks.spawn(catch_panic_of(task).map(Option::unwrap_or_default)).detach();
        }
    }

    /// What has to be done before the client ends.
    pub(crate) fn duties(&self) -> &Arc<Duties> {
        &self.duties
    }

    /// As [`spawn`](ClientInner::spawn), for what has to be done before the client ends.
    pub(crate) fn spawn_duty(&self, task: impl Future<Output = ()> + Send + 'static) {
        let duty: Duty = self.duties.begin();
        self.spawn(async move {
            task.await;
            drop(duty);
        });
    }

    /// Has what drives the session panic.
    #[cfg(test)]
    pub(crate) fn kill_driver(&self) {
        self.killed.store(true, Ordering::Release);
        self.wake();
    }

    #[cfg(test)]
    pub(super) fn panic_if_killed(&self) {
        assert!(!self.killed.load(Ordering::Acquire), "as intended");
    }

    /// Whether its session is trusted, what is wanted of it is proven, and nothing has to be done.
    #[cfg(test)]
    pub(crate) fn is_settled(&self) -> bool {
        let status = self.status();
        let is_proven = |link: &Link| link.lease.proves_what_is_wanted(BootInstant::now());
        status.state == SessionState::Connected
            && status.trust.is_some_and(|trust| trust.is_trusted_at(BootInstant::now()))
            && status.link.is_some_and(|link| is_proven(&link))
            && self.duties.are_done()
    }

    /// Whether somebody waits for the event of a watch on that path.
    #[cfg(test)]
    pub(crate) fn waits_for_event(&self, path: &str) -> bool {
        self.status().link.is_some_and(|link| link.watches.waits_for(path))
    }

    /// Whether anything runs in the background.
    #[cfg(test)]
    pub(crate) fn has_tasks(&self) -> bool {
        self.tasks.upgrade().is_some_and(|tasks| !tasks.is_empty())
    }

    /// Has the session looked after now.
    pub(super) fn wake(&self) {
        if !self.is_inherited() {
            self.wakeup.notify(usize::MAX);
        }
    }

    pub(super) fn wakeup(&self) -> EventListener {
        self.wakeup.listen()
    }

    pub(super) fn request_close(&self) {
        if !self.closing.swap(true, Ordering::AcqRel) && !self.is_inherited() {
            *self.ending.lock() = Some(Unfinished::begin());
        }
        self.wake();
    }

    /// As [`request_close`](ClientInner::request_close), and waits as [`closed`](ClientInner::closed) does.
    pub(super) fn close(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send + use<> {
        let (awaits, closed) = (Arc::clone(&self.awaits_end), self.closed());
        self.request_close();
        async move {
            let _awaits = awaits;
            closed.await
        }
    }

    /// Whether somebody has asked for the end of the client.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits until the client is closed, and its session has ended.
    ///
    /// # Errors
    /// `CONNECTION_LOSS`: no server has confirmed that in time.
    pub(crate) fn closed(self: &Arc<Self>) -> impl Future<Output = Result<()>> + Send + use<> {
        let inner = Arc::clone(self);
        async move {
            if inner.is_inherited() {
                return Ok(());
            }
            inner.status.wait_for(|status| status.over.clone()).await
        }
    }

    /// Whether somebody wants to know that its end is committed.
    pub(super) fn is_end_awaited(&self) -> bool {
        Arc::strong_count(&self.awaits_end) > 1
    }

    pub(super) fn status(&self) -> Status {
        if self.is_inherited() { Status::inherited() } else { self.status.get() }
    }

    pub(crate) fn listen(&self) -> EventListener {
        if self.is_inherited() { Event::new().listen() } else { self.status.listen() }
    }

    /// The state by the local clock, and how often the session was lost: a period of trust that ran out
    /// unseen is lost now.
    pub(super) fn look(&self) -> (SessionState, u64) {
        let status = self.status();
        match (&status.trust, status.state) {
            (Some(trust), SessionState::Connected | SessionState::Suspended)
                if !trust.is_trusted() =>
            {
                // Its driver makes it official.
                self.wake();
                (SessionState::Lost, status.losses + 1)
            }
            (_, state) => (state, status.losses),
        }
    }

    /// Whether an adopted handle was closed by its program, or detached.
    pub(super) fn is_let_go(&self) -> bool {
        let status = self.status();
        let state = status.link.and_then(|link| link.handle_state());
        state == Some(HandleState::GONE)
            || status.failure.is_some_and(|failure| failure.code() == Code::INVALID_STATE)
    }

    /// Why the client can't be used any more, if it can't; of an adopted handle this is known before
    /// the client's thread has looked.
    #[cfg(feature = "capi")]
    pub(super) fn failure(&self) -> Option<Error> {
        let status = self.status();
        let state = status.link.and_then(|link| link.handle_state());
        let code = state.and_then(|state| match state {
            HandleState::EXPIRED => Some(Code::SESSION_EXPIRED),
            HandleState::AUTH_FAILED => Some(Code::AUTH_FAILED),
            HandleState::GONE => Some(Code::INVALID_STATE),
            _ => None,
        });
        status.failure.or_else(|| code.map(|code| Error::new("connect", "", code)))
    }

    pub(super) fn session_key(&self) -> Option<SessionKey> {
        let status = self.status();
        // Before the first connection the C client may be writing it at this moment.
        status.trust?;
        status.link.filter(|_| status.failure.is_none())?.session()
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        let status = self.status();
        status.link.filter(|_| status.failure.is_none())?.session_timeout()
    }

    /// Whether the connection is up, as far as was heard; see [`TrustPeriod`] for whether to believe it.
    pub(crate) fn is_connected(&self) -> bool {
        self.status().state == SessionState::Connected
    }

    /// The present link.
    pub(super) fn link(&self, op: &'static str, path: &str) -> Result<Arc<Link>> {
        let status = self.status();
        match (status.failure, status.link) {
            _ if self.is_inherited() => Err(inherited(op, path)),
            (Some(failure), _) => {
                let why = failure.detail_or("the client is closed");
                Err(Error::with_detail(op, path, failure.code(), why))
            }
            (None, Some(link)) => Ok(link),
            // Before the first session, or between two. Nothing was sent.
            (None, None) => {
                let detail = "there is no session yet";
                Err(Error::with_detail(op, path, Code::SESSION_EXPIRED, detail))
            }
        }
    }

    /// Waits until a session is connected and trusted.
    ///
    /// # Errors
    /// The reason why the client is closed.
    pub(crate) async fn trusted_session(&self) -> Result<TrustedSession> {
        if self.is_inherited() {
            return Err(inherited("connect", ""));
        }
        self.status
            .wait_for(|status| {
                if let Some(failure) = &status.failure {
                    return Some(Err(failure.clone()));
                }
                match (status.state, &status.link, &status.trust) {
                    // Tells nobody of a loss: that is for the driver, and for those who wait for it.
                    (SessionState::Connected, Some(link), Some(trust))
                        if trust.is_trusted_at(BootInstant::now()) =>
                    {
                        Some(Ok(TrustedSession::new(link, trust)))
                    }
                    _ => None,
                }
            })
            .await
    }

    /// Whether anything is held on the present session.
    pub(super) fn is_holding(&self) -> bool {
        self.status().trust.is_some_and(|trust| trust.is_held())
    }

    /// Changes the status, and tells of a period of trust that was lost by it.
    fn change(&self, change: impl FnOnce(&mut Status) -> bool) {
        if self.is_inherited() {
            return;
        }
        let mut before = None;
        self.status.update(|status| {
            before.clone_from(&status.trust);
            change(status)
        });
        if let Some(trust) = before {
            trust.announce();
        }
    }

    /// Looks at the C client's state and draws the conclusions. Called on every session event and
    /// on every turn of the driver; looking twice does no harm.
    pub(super) fn observe(&self, link: &Arc<Link>) {
        // Read before the C client is asked: a freeze in between must count against the sight.
        let now = BootInstant::now();
        let mut news = None;
        self.change(|status| {
            // A closed client stays so, though its handle lives until a helper thread has closed it, and may
            // connect meanwhile.
            let is_closed = status.state == SessionState::Closed;
            if is_closed || status.link.as_ref().is_none_or(|present| !Arc::ptr_eq(present, link)) {
                return false;
            }
            let before = (status.state, status.losses);
            let state = link.handle_state();
            match state {
                Some(HandleState::CONNECTED) => self.saw_connected(status, link, now),
                Some(HandleState::EXPIRED) => status.lose(),
                Some(HandleState::AUTH_FAILED) => {
                    status.lose();
                    status.fail(self.options.auth_failed());
                }
                Some(HandleState::GONE) => {
                    status.lose();
                    let detail = "the program has closed the handle, or let go of it";
                    status.fail(Error::with_detail("connect", "", Code::INVALID_STATE, detail));
                }
                _ => {
                    link.saw_unconnected(state, now);
                    if status.trust.as_ref().is_some_and(|trust| !trust.is_trusted_at(now)) {
                        status.lose();
                    } else if status.state == SessionState::Connected {
                        status.state = SessionState::Suspended;
                    }
                }
            }
            // A session that was lost and is back within one look changes only the count.
            let changed = (status.state, status.losses) != before;
            news = changed.then_some((before.0, status.state));
            changed
        });
        // Outside the lock: a subscriber that blocks must not hold up who looks at the state.
        if let Some((before, state)) = news {
            let session = link.session();
            log!(DEBUG, ?before, ?state, ?session, "session");
        }
    }

    /// A connection counts once a server has answered on it.
    fn saw_connected(&self, status: &mut Status, link: &Arc<Link>, now: BootInstant) {
        let (Some(session), Some(timeout)) = (link.session(), link.session_timeout()) else {
            return;
        };
        link.saw_connected(timeout, self.options.tick_time, now);
        if status.trust.as_ref().is_some_and(|trust| !trust.is_trusted_at(now)) {
            status.lose();
        }
        if !link.is_usable(now) {
            return;
        }
        if status.trust.as_ref().is_none_or(|trust| !trust.is_trusted_at(now)) {
            let lease = Arc::clone(&link.lease);
            status.trust = Some(Arc::new(TrustPeriod::begin(session.id(), lease)));
        }
        status.state = SessionState::Connected;
    }

    /// Puts a new link in place, or takes the old one away.
    pub(super) fn set_link(&self, link: Option<Arc<Link>>) {
        self.change(|status| {
            if status.was_connected() {
                status.lose();
                status.trust = None;
            }
            status.link = link;
            true
        });
    }

    /// The session of this link may end without our hearing of it.
    pub(super) fn lose_trust(&self, link: &Arc<Link>) {
        self.change(|status| {
            let present = status.link.as_ref().is_some_and(|present| Arc::ptr_eq(present, link));
            if present {
                status.lose();
            }
            present
        });
    }

    pub(super) fn fail(&self, failure: Error) {
        self.change(|status| {
            status.fail(failure);
            true
        });
    }

    pub(super) fn set_over(&self, ended: Result<()>) {
        self.status.update(|status| {
            status.over = Some(ended);
            true
        });
        drop(self.ending.lock().take());
    }

    /// When an operation that begins now has to end.
    pub(crate) fn operation_deadline(&self) -> Option<Instant> {
        now().checked_add(self.options.operation_timeout)
    }
}

impl LinkOwner for ClientInner {
    fn options(&self) -> &Settings {
        &self.options
    }

    fn duties(&self) -> &Arc<Duties> {
        &self.duties
    }

    fn observe(&self, link: &Arc<Link>) {
        ClientInner::observe(self, link);
    }

    fn wake(&self) {
        ClientInner::wake(self);
    }

    fn lose_trust(&self, link: &Arc<Link>) {
        ClientInner::lose_trust(self, link);
    }

    fn refused(&self, error: Error) {
        self.fail(error);
        self.request_close();
    }

    fn credentials(&self) -> Vec<Credentials> {
        self.credentials.lock().clone()
    }
}
