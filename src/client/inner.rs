//! The state that the clones of a client share, and its driver's wake-up.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_executor::Executor;
use event_listener::{Event, EventListener};
use futures_util::FutureExt as _;
use parking_lot::Mutex;

use super::farewell::LeftBehind;
use super::history::History;
use super::link::LinkOwner;
use super::probe::Hosts;
use super::registry::Registry;
use super::settings::Settings;
use super::state::SessionState;
use super::status::Status;
use super::{Duties, Link, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::measures;
use crate::panics::catch_panic_of;
use crate::process::{Process, inherited};
use crate::raw::Credentials;
use crate::runtime::{BootInstant, Latest, Unfinished, now};
use crate::znode::Acl;

pub(crate) struct ClientInner {
    /// A number that no other client has.
    id: u64,
    /// Where it was made. In a child of that process nothing drives it, and its locks may be held for ever: it is
    /// closed there, and nothing of it is touched.
    process: Process,
    pub(super) options: Arc<Settings>,
    pub(super) status: Latest<Status>,
    wakeup: Event,
    pub(super) closing: AtomicBool,
    /// Cloned by each that wants to know that its end is committed.
    pub(super) awaits_end: Arc<()>,
    /// From the request for its end until then.
    pub(super) ending: Mutex<Option<Unfinished>>,
    #[cfg(test)]
    killed: AtomicBool,
    /// Owned by what drives the session, so that tasks go when that ends.
    tasks: Weak<Executor<'static>>,
    pub(super) credentials: Mutex<Vec<Credentials>>,
    /// Whether servers have refused the identity that a session gets of us.
    pub(super) identity_refused: AtomicBool,
    hosts: Hosts,
    pub(crate) registry: Registry,
    /// The ACL of most locks: everyone may do everything.
    pub(crate) open_acl: Arc<[Acl]>,
    duties: Arc<Duties>,
    history: Arc<History>,
    /// Earlier sessions that may live on.
    pub(super) left_behind: Mutex<Vec<LeftBehind>>,
    /// Whether a handle of the program's went back to it with a session that goes on.
    pub(super) given_back: AtomicBool,
}

impl ClientInner {
    pub(super) fn new(options: Settings, tasks: Weak<Executor<'static>>) -> ClientInner {
        ClientInner {
            id: uuid::Uuid::new_v4().as_u64_pair().0,
            process: Process::this(),
            status: Latest::new(Status::new()),
            wakeup: Event::new(),
            closing: AtomicBool::new(false),
            awaits_end: Arc::default(),
            ending: Mutex::default(),
            #[cfg(test)]
            killed: AtomicBool::new(false),
            tasks,
            credentials: Mutex::new(options.credentials.clone()),
            identity_refused: AtomicBool::new(false),
            hosts: Hosts::new(&options.hosts, options.tls.clone()),
            registry: Registry::default(),
            open_acl: Acl::open().into(),
            duties: Arc::default(),
            history: Arc::default(),
            left_behind: Mutex::default(),
            given_back: AtomicBool::new(false),
            options: Arc::new(options),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a parent process has made it.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.process.is_this()
    }

    /// Whether releases are announced to waiters.
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

    /// When an operation that begins now has to end.
    pub(crate) fn operation_deadline(&self) -> Option<Instant> {
        now().checked_add(self.options.operation_timeout)
    }

    /// Work that must be finished before the client ends.
    pub(crate) fn duties(&self) -> &Arc<Duties> {
        &self.duties
    }

    /// Runs `task` on the driver's thread, until it ends or the client is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.is_inherited() {
            return std::mem::forget(task);
        }
        if let Some(tasks) = self.tasks.upgrade() {
            // A task may wake code of other programs; what drives the session must outlive its panic.
            tasks.spawn(catch_panic_of(task).map(Option::unwrap_or_default)).detach();
        }
    }

    /// As [`spawn`](ClientInner::spawn), for what has to be done before the client ends.
    pub(crate) fn spawn_duty(&self, task: impl Future<Output = ()> + Send + 'static) {
        let duty = self.duties.begin();
        self.spawn(async move {
            task.await;
            drop(duty);
        });
    }

    /// Has the driver look after the session now.
    pub(super) fn wake(&self) {
        if !self.is_inherited() {
            self.wakeup.notify(usize::MAX);
        }
    }

    pub(super) fn wakeup(&self) -> EventListener {
        self.wakeup.listen()
    }

    pub(super) fn status(&self) -> Status {
        if self.is_inherited() { Status::inherited() } else { self.status.get() }
    }

    pub(crate) fn listen(&self) -> EventListener {
        if self.is_inherited() { Event::new().listen() } else { self.status.listen() }
    }

    /// The state by the local clock, and how often the session was lost: a period of trust that ran out unseen is lost
    /// now.
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

    /// Whether the connection is up, as far as was heard; see [`TrustPeriod`](super::TrustPeriod) for whether to believe it.
    pub(crate) fn is_connected(&self) -> bool {
        self.status().state == SessionState::Connected
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        let status = self.status();
        status.link.filter(|_| status.failure.is_none())?.session_timeout()
    }

    /// Whether anything is held on the present session.
    pub(super) fn is_holding(&self) -> bool {
        self.status().trust.is_some_and(|trust| trust.is_held())
    }

    /// The present link.
    pub(crate) fn link(&self, op: &'static str, path: &str) -> Result<Arc<Link>> {
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

    /// Changes the status, and announces the end of a period of trust that was lost by it.
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

    pub(super) fn fail(&self, failure: Error) {
        self.change(|status| {
            status.fail(failure);
            true
        });
    }
}

impl LinkOwner for ClientInner {
    fn options(&self) -> &Arc<Settings> {
        &self.options
    }

    fn duties(&self) -> &Arc<Duties> {
        &self.duties
    }

    fn history(&self) -> &Arc<History> {
        &self.history
    }

    fn credentials(&self) -> Vec<Credentials> {
        self.credentials.lock().clone()
    }

    /// Not if a certificate may be the only other identity: only the servers know of that, and so whether an ACL for the
    /// creator would mean ours alone.
    fn gives_identities(&self) -> bool {
        let options = &self.options;
        let has_certificate = options.tls.as_ref().is_some_and(|tls| tls.own.is_some());
        let is_known =
            !has_certificate || options.sasl.is_some() || !options.credentials.is_empty();
        options.announces_releases && is_known && !self.identity_refused.load(Ordering::Acquire)
    }

    /// Called on every session event and on every turn of the driver; looking twice does no harm.
    fn observe(&self, link: &Arc<Link>) {
        // Read before the C client is asked: a freeze in between must count against the sight.
        let now = BootInstant::now();
        let mut news = None;
        self.change(|status| {
            // A closed client stays so, though its handle lives until a worker has closed it, and may connect meanwhile.
            let is_closed = status.state == SessionState::Closed;
            if is_closed || !status.has(link) {
                return false;
            }
            let before = (status.state, status.losses);
            status.follow(link, &self.options, now);
            // A session that was lost and is back within one look changes only the count.
            let changed = (status.state, status.losses) != before;
            news = changed.then_some((before.0, status.state));
            changed
        });
        // Outside the lock: a subscriber that blocks must not hold up those who look at the state.
        if let Some((before, state)) = news {
            let session = link.session();
            measures::count("zklock_session_states_total", "state", state.name());
            log!(DEBUG, ?before, ?state, ?session, "session");
        }
    }

    fn wake(&self) {
        ClientInner::wake(self);
    }

    fn lose_trust(&self, link: &Arc<Link>) {
        self.change(|status| {
            let present = status.has(link);
            if present {
                status.lose();
            }
            present
        });
    }

    fn refused(&self, error: Error) {
        self.fail(error);
        self.request_close();
    }
}

#[cfg(test)]
impl ClientInner {
    /// Has what drives the session panic.
    pub(crate) fn kill_driver(&self) {
        self.killed.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn panic_if_killed(&self) {
        assert!(!self.killed.load(Ordering::Acquire), "as intended");
    }

    /// Whether its session is trusted, what is wanted of it is proven, and nothing has to be done.
    pub(crate) fn is_settled(&self) -> bool {
        let status = self.status();
        let is_proven = |link: &Link| link.lease.proves_what_is_wanted(BootInstant::now());
        status.state == SessionState::Connected
            && status.trust.is_some_and(|trust| trust.is_trusted_at(BootInstant::now()))
            && status.link.is_some_and(|link| is_proven(&link))
            && self.duties.are_done()
    }

    /// Whether somebody waits for the event of a watch on that path.
    pub(crate) fn waits_for_event(&self, path: &str) -> bool {
        self.status().link.is_some_and(|link| link.watches.waits_for(path))
    }

    /// Whether anything runs in the background.
    pub(crate) fn has_tasks(&self) -> bool {
        self.tasks.upgrade().is_some_and(|tasks| !tasks.is_empty())
    }
}
