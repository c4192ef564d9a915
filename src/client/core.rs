//! What the clones of a client share: the present link, the session's state, the keeper's bell.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_executor::Executor;
use event_listener::{Event, EventListener};
use futures_lite::FutureExt as _;
use parking_lot::Mutex;

use super::clock::Moment;
use super::settings::Settings;
use super::state::SessionState;
use super::{Epoch, Latest, Link, Pending};
use crate::error::{Code, Error, Result};
use crate::raw::{Credentials, HandleState};
use crate::session_key::SessionKey;

pub(crate) struct Core {
    options: Settings,
    status: Latest<Status>,
    bell: Event,
    closing: AtomicBool,
    /// Owned by the keeper, so that tasks go when it goes.
    tasks: Weak<Executor<'static>>,
    credentials: Mutex<Vec<Credentials>>,
}

#[derive(Clone)]
pub(super) struct Status {
    pub(super) state: SessionState,
    /// How often the session was lost.
    losses: u64,
    pub(super) link: Option<Arc<Link>>,
    epoch: Option<Arc<Epoch>>,
    /// Why the client can't go on, once `state` is `Closed`.
    failure: Option<Error>,
    /// The keeper is done: no thread of ours is left.
    over: bool,
}

/// A session that could be trusted a moment ago, and the link to use it by.
#[derive(Clone)]
pub(crate) struct Footing {
    pub(crate) link: Arc<Link>,
    pub(crate) epoch: Arc<Epoch>,
}

/// How long to wait after a connection turned out to be gone.
const ADD_AUTH_AGAIN: Duration = Duration::from_millis(10);

impl Core {
    pub(super) fn new(options: Settings, tasks: Weak<Executor<'static>>) -> Core {
        let credentials = Mutex::new(options.credentials.clone());
        let status = Latest::new(Status {
            state: SessionState::Connecting,
            losses: 0,
            link: None,
            epoch: None,
            failure: None,
            over: false,
        });
        let closing = AtomicBool::new(false);
        Core { options, status, bell: Event::new(), closing, tasks, credentials }
    }

    pub(super) fn options(&self) -> &Settings {
        &self.options
    }

    /// Runs `task` on the keeper's thread, until it ends or the client is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = self.tasks.upgrade() {
            // A task may wake code that is not ours; the keeper must outlive its panic.
            let task = AssertUnwindSafe(task).catch_unwind();
            let shielded = async {
                if task.await.is_err() {
                    tracing::error!("a panic in a task was caught");
                }
            };
            tasks.spawn(shielded).detach();
        }
    }

    /// Makes the keeper look around now.
    pub(super) fn wake(&self) {
        self.bell.notify(usize::MAX);
    }

    pub(super) fn bell(&self) -> EventListener {
        self.bell.listen()
    }

    pub(super) fn request_close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Waits until the keeper is done.
    pub(super) fn closed(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let core = Arc::clone(self);
        async move { core.status.wait_for(|status| status.over.then_some(())).await }
    }

    pub(super) fn status(&self) -> Status {
        self.status.get()
    }

    pub(crate) fn listen(&self) -> EventListener {
        self.status.listen()
    }

    /// The state by the local clock, and how often the session was lost: an epoch that ran out
    /// unseen is lost now.
    pub(super) fn look(&self) -> (SessionState, u64) {
        let status = self.status.get();
        match (&status.epoch, status.state) {
            (Some(epoch), SessionState::Connected | SessionState::Suspended)
                if !epoch.is_trusted() =>
            {
                // The keeper makes it official.
                self.wake();
                (SessionState::Lost, status.losses + 1)
            }
            (_, state) => (state, status.losses),
        }
    }

    /// Whether a borrowed handle was closed by its program, or let go of.
    pub(super) fn is_let_go(&self) -> bool {
        let status = self.status.get();
        let state = status.link.and_then(|link| link.handle_state());
        state == Some(HandleState::GONE)
            || status.failure.is_some_and(|failure| failure.code() == Code::INVALID_STATE)
    }

    pub(super) fn session_key(&self) -> Option<SessionKey> {
        let status = self.status.get();
        // Before the first connection the C client may be writing it at this moment.
        status.epoch?;
        status.link.filter(|_| status.failure.is_none())?.session()
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        let status = self.status.get();
        status.link.filter(|_| status.failure.is_none())?.session_timeout()
    }

    /// Whether the connection is up, as far as was heard; see [`Epoch`] for whether to believe it.
    pub(crate) fn is_connected(&self) -> bool {
        self.status.get().state == SessionState::Connected
    }

    /// The present link.
    pub(super) fn link(&self, op: &'static str, path: &str) -> Result<Arc<Link>> {
        let status = self.status.get();
        match (status.failure, status.link) {
            (Some(failure), _) => {
                Err(Error::with_detail(op, path, failure.code(), "the client is closed"))
            }
            (None, Some(link)) => Ok(link),
            // Between two sessions. Nothing was sent.
            (None, None) => Err(Error::new(op, path, Code::SESSION_EXPIRED)),
        }
    }

    /// Waits until a session is connected and trusted.
    ///
    /// # Errors
    /// The reason why the client is closed.
    pub(crate) async fn footing(&self) -> Result<Footing> {
        self.status
            .wait_for(|status| {
                if let Some(failure) = &status.failure {
                    return Some(Err(failure.clone()));
                }
                match (status.state, &status.link, &status.epoch) {
                    // Tells nobody of a loss: that is for the keeper, and for those who wait for it.
                    (SessionState::Connected, Some(link), Some(epoch))
                        if epoch.is_trusted_at(Moment::now()) =>
                    {
                        Some(Ok(Footing { link: Arc::clone(link), epoch: Arc::clone(epoch) }))
                    }
                    _ => None,
                }
            })
            .await
    }

    pub(super) fn credentials(&self) -> Vec<Credentials> {
        self.credentials.lock().clone()
    }

    /// Adds an identity to this session, as soon as there is one, and to later ones.
    pub(super) fn add_auth(self: &Arc<Self>, credentials: Credentials) -> Pending<()> {
        let deadline = self.operation_deadline();
        self.credentials.lock().push(credentials.clone());
        // Submitted now if possible: it goes ahead of what is submitted after it.
        let status = self.status();
        let mut submitted = status
            .link
            .filter(|_| status.state == SessionState::Connected)
            .map(|link| link.add_auth(&credentials));
        let core = Arc::clone(self);
        let added = async move {
            loop {
                let pending = match submitted.take() {
                    Some(pending) => pending,
                    None => core.footing().await?.link.add_auth(&credentials),
                };
                match pending.await {
                    // The connection was lost before the C client took it: again on the next one.
                    Err(error) if error.code() == Code::INVALID_STATE => core.wake(),
                    result => return result,
                }
                async_io::Timer::after(ADD_AUTH_AGAIN).await;
            }
        };
        let too_late = async move {
            match deadline {
                Some(deadline) => drop(async_io::Timer::at(deadline).await),
                None => std::future::pending().await,
            }
            let detail = "no connection; it is added to the next one";
            Err(Error::with_detail("add_auth", "", Code::OPERATION_TIMEOUT, detail))
        };
        Pending::run("add_auth", "", futures_lite::future::or(added, too_late))
    }

    /// Changes the status, and tells of an epoch that was lost by it.
    fn change(&self, change: impl FnOnce(&mut Status) -> bool) {
        let mut before = None;
        self.status.update(|status| {
            before.clone_from(&status.epoch);
            change(status)
        });
        if let Some(epoch) = before {
            epoch.announce();
        }
    }

    /// Looks at the C client's state and draws the conclusions. Called on every session event and
    /// on every turn of the keeper; looking twice does no harm.
    pub(super) fn observe(&self, link: &Arc<Link>) {
        // Read before the C client is asked: a freeze in between must count against the sight.
        let now = Moment::now();
        let mut news = None;
        self.change(|status| {
            if status.link.as_ref().is_none_or(|present| !Arc::ptr_eq(present, link)) {
                return false;
            }
            let before = (status.state, status.losses);
            match link.handle_state() {
                Some(HandleState::CONNECTED) => self.saw_connected(status, link, now),
                Some(HandleState::EXPIRED) => status.lose(),
                Some(HandleState::AUTH_FAILED) => {
                    status.lose();
                    status.fail(Error::new("connect", "", Code::AUTH_FAILED));
                }
                Some(HandleState::GONE) => {
                    status.lose();
                    let detail = "the program has closed the handle, or let go of it";
                    status.fail(Error::with_detail("connect", "", Code::INVALID_STATE, detail));
                }
                _ => {
                    link.saw_unconnected(now);
                    if status.epoch.as_ref().is_some_and(|epoch| !epoch.is_trusted_at(now)) {
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
            tracing::debug!(?before, ?state, session = ?link.session(), "session");
        }
    }

    /// A connection counts once the server has proved that the session lives.
    fn saw_connected(&self, status: &mut Status, link: &Arc<Link>, now: Moment) {
        let (Some(session), Some(timeout)) = (link.session(), link.session_timeout()) else {
            return;
        };
        link.proof.set_session_timeout(timeout);
        if status.epoch.as_ref().is_some_and(|epoch| !epoch.is_trusted_at(now)) {
            status.lose();
        }
        if !link.is_proven(now) {
            return;
        }
        if status.epoch.as_ref().is_none_or(|epoch| !epoch.is_trusted_at(now)) {
            status.epoch = Some(Arc::new(Epoch::begin(session.id(), Arc::clone(&link.proof))));
        }
        status.state = SessionState::Connected;
    }

    /// Puts a new link in place, or takes the old one away.
    pub(super) fn set_link(&self, link: Option<Arc<Link>>) {
        self.change(|status| {
            if status.link.is_some() {
                status.lose();
                status.epoch = None;
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

    pub(super) fn set_over(&self) {
        self.status.update(|status| {
            status.over = true;
            true
        });
    }

    /// When an operation that begins now has to end.
    pub(crate) fn operation_deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.options.operation_timeout)
    }
}

impl Status {
    /// Whether the present link has been connected.
    pub(super) fn was_connected(&self) -> bool {
        self.epoch.is_some()
    }

    fn lose(&mut self) {
        if let Some(epoch) = &self.epoch {
            epoch.declare_lost();
        }
        if !matches!(self.state, SessionState::Lost | SessionState::Closed) {
            self.state = SessionState::Lost;
            self.losses += 1;
        }
    }

    fn fail(&mut self, failure: Error) {
        if let Some(epoch) = &self.epoch {
            epoch.declare_lost();
        }
        self.state = SessionState::Closed;
        self.failure.get_or_insert(failure);
    }
}
