//! Drives the session of one client: opens it, watches over it, replaces it, and runs the client's tasks.
//!
//! It is the only place that opens or closes a handle. Both can block, so both run on helper threads.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_executor::Executor;
use futures_lite::future::or;

use super::farewell::LeftBehind;
use super::link::LinkOwner as _;
use super::probing::Schedule;
use super::settings::Settings;
use super::state::SessionState;
use super::{ClientInner, Link, handles};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::panics::{catch_panic, catch_panic_of};
use crate::raw::{Adopted, HandleState, at_exit, watch_for_forks};
use crate::runtime::{Timer, Unfinished, machine, now, offload, wait_at_exit};
use crate::scarcity;
use crate::session_key::SessionKey;

/// How often the next server is tried while none is connected. For a new session, each attempt gets twice the time of the
/// last, because the next attempt interrupts it.
const NEXT_SERVER: Duration = Duration::from_secs(1);
/// How often servers are asked whether they know a session that cannot connect.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How often the opening of a handle is tried again (a host name that does not resolve).
const OPEN_AGAIN: Duration = Duration::from_secs(1);
/// How often deletions are tried again before an adopted handle is given back.
const LAST_LOOKS: Duration = Duration::from_millis(100);
/// How long tasks may take to hear that the client is closed.
const LAST_TASKS: usize = 10_000;

struct Session {
    inner: Arc<ClientInner>,
    /// The background tasks of an open client.
    tasks: Arc<Executor<'static>>,
    /// When the next server was last tried, or the connection last seen.
    last_server: Instant,
    /// How long the present attempt of a new session may take.
    patience: Duration,
    /// When a connection was last there.
    connected: Instant,
    /// When servers are asked next whether they know the session, and since when they have said so.
    ask_servers: Instant,
    known_since: Option<Instant>,
    open_after: Instant,
    asking: Schedule,
    opened: bool,
    /// The one to take up, until it is over.
    key: Option<SessionKey>,
}

/// Begins to drive a client's session; on a handle of the program's, if there is one.
///
/// # Errors
/// `SYSTEM_ERROR` when there is no thread to be had; what the C client says of the program's handle.
pub(super) fn start(options: Settings, adopted: Option<Adopted>) -> Result<Arc<ClientInner>> {
    watch_for_forks();
    at_exit(wait_at_exit);
    let op = if adopted.is_some() { "adopt" } else { "connect" };
    machine::start().map_err(|error| {
        Error::with_detail(op, "", Code::SYSTEM_ERROR, scarcity::describe(&error))
    })?;
    let tasks = Arc::new(Executor::new());
    let inner = Arc::new(ClientInner::new(options, Arc::downgrade(&tasks)));
    if let Some(adopted) = adopted {
        // Here, where the program vouches for its handle.
        let link = Link::adopt(&inner, adopted).map_err(|code| {
            let why = "it can't be used: its session is over, or another process has opened it";
            Error::with_detail(op, "", code, why)
        })?;
        inner.set_link(Some(link));
    }
    let session = Session {
        key: inner.options.session,
        inner: Arc::clone(&inner),
        tasks,
        last_server: now(),
        patience: NEXT_SERVER,
        connected: now(),
        ask_servers: now(),
        known_since: None,
        open_after: now(),
        asking: Schedule::new(),
        opened: false,
    };
    machine::drive(session.drive());
    Ok(inner)
}

/// Cleans up after a panic or the end of the client: no caller waits any longer, and no lock is held.
struct End {
    inner: Arc<ClientInner>,
    tasks: Arc<Executor<'static>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.inner.request_close();
        let detail =
            if std::thread::panicking() { "what drives its session has panicked" } else { "" };
        let failure = Error::with_detail("connect", "", Code::INVALID_STATE, detail);
        catch_panic(|| self.inner.fail(failure));
        let (inner, tasks) = (Arc::clone(&self.inner), Arc::clone(&self.tasks));
        offload::run(move || {
            if let Some(link) = inner.status().link {
                catch_panic(|| close(&inner, &link, Code::CLOSING));
            }
            catch_panic(|| inner.set_link(None));
            // Everything that tasks were waiting for has been answered now: let them end.
            for _ in 0..LAST_TASKS {
                if tasks.is_empty() || catch_panic(|| tasks.try_tick()) == Some(false) {
                    break;
                }
            }
            drop(tasks);
            // Earlier sessions with an unconfirmed end may still exist, too.
            let left = std::mem::take(&mut *inner.left_behind.lock());
            let deadline = inner.operation_deadline();
            let ends = left.iter().rev().map(|left| end_session(&inner, left, deadline));
            inner.set_over(ends.fold(Ok(()), Result::and));
        });
    }
}

/// Closes the handle, and notes the session if that leaves it open: before anybody hears of it. Blocks.
fn close(inner: &ClientInner, link: &Link, code: Code) -> Option<LeftBehind> {
    let mut left = link.leaves_behind();
    if link.is_adopted() {
        inner.given_back.store(left.take().is_some(), Ordering::Release);
    }
    inner.left_behind.lock().extend(left.clone());
    link.close(code);
    left
}

/// Makes sure that the session of a closed handle has ended. Blocks, up to the deadline: if nobody waits for it, no longer
/// than the session lives on by itself.
///
/// # Errors
/// `CONNECTION_LOSS`: no server has confirmed it.
fn end_session(inner: &ClientInner, left: &LeftBehind, deadline: Option<Instant>) -> Result<()> {
    let confirm = inner.is_end_awaited();
    let lives_on = left.timeout.filter(|_| !confirm);
    let its_end = lives_on.and_then(|timeout| now().checked_add(timeout));
    let deadline = deadline.into_iter().chain(its_end).min();
    if !handles::has_a_network() || inner.hosts().end_session(left, deadline, confirm) {
        return Ok(());
    }
    let why = "no server has confirmed the end of the session: its locks stay until it times out";
    let session = left.session;
    log!(WARN, ?session, "{why}");
    Err(Error::with_detail("close", "", Code::CONNECTION_LOSS, why))
}

impl Session {
    async fn drive(mut self) {
        let _end = End { inner: Arc::clone(&self.inner), tasks: Arc::clone(&self.tasks) };
        while !self.inner.is_closing() {
            #[cfg(test)]
            self.inner.panic_if_killed();
            let news = self.inner.wakeup();
            let pause = self.look_around().await;
            if self.inner.is_closing() {
                break;
            }
            self.work_until(news, pause).await;
        }
        if let Some(link) = self.inner.status().link.filter(|link| link.is_adopted()) {
            // The session goes on without us, so what we have on it must go first.
            self.finish(&link).await;
        }
    }

    /// Runs the client's tasks until there is news, or for so long.
    async fn work_until(&self, news: impl Future<Output = ()>, pause: Duration) {
        or(self.tasks.run(news), Timer::after(pause)).await;
    }

    /// A turn. A panic in it (a defect of ours) must not cost the client its session.
    async fn look_around(&mut self) -> Duration {
        catch_panic_of(self.turn()).await.unwrap_or(OPEN_AGAIN)
    }

    /// Has a helper thread do what can block, and runs the client's tasks meanwhile. `None` after a panic.
    async fn helped<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.tasks.run(offload::result(job)).await
    }

    /// Waits until the client is to be closed.
    async fn closing(&self) {
        loop {
            let news = self.inner.wakeup();
            if self.inner.is_closing() {
                return;
            }
            news.await;
        }
    }

    /// Waits for what has to be done on a handle that goes back to its program, however long that
    /// takes: the session goes on, and what stayed on it would block others.
    async fn finish(&mut self, link: &Arc<Link>) {
        loop {
            let news = or(self.inner.duties().listen(), self.inner.wakeup());
            if self.inner.duties().are_done()
                || link.session().is_none()
                || link.handle_state().is_none_or(HandleState::is_final)
            {
                return;
            }
            self.look_around().await;
            self.work_until(news, LAST_LOOKS).await;
        }
    }

    /// Looks around once; gives the time until the next look, unless it is woken.
    async fn turn(&mut self) -> Duration {
        let Some(link) = self.inner.status().link else {
            return self.open(None).await;
        };
        link.expire_requests();
        if link.handle.is_overdue() {
            let link = Arc::clone(&link);
            self.helped(move || link.let_go()).await;
        }
        // Asked before the look: an end that comes between the two would go by without its `Lost`.
        let state = link.handle_state();
        self.inner.observe(&link);
        match state {
            Some(HandleState::CONNECTED) => {
                (self.last_server, self.connected) = (now(), now());
                (self.patience, self.known_since) = (NEXT_SERVER, None);
                self.asking.rest();
                link.watch_session_events();
                link.heartbeat();
                link.unconfirmed.retry();
                // Only its end frees what is left on this session. Not while a lock is held on it, which
                // would be lost, or released: its holder would be told that it was lost.
                let is_used = || self.inner.is_holding() || !self.inner.duties().are_done();
                let must_end = link.has_undeletable();
                if must_end && self.inner.options.reopen && !is_used() {
                    return self.replace(&link, Code::SESSION_EXPIRED).await;
                }
            }
            Some(HandleState::EXPIRED) => {
                return self.replace(&link, Code::SESSION_EXPIRED).await;
            }
            Some(HandleState::AUTH_FAILED) if link.identity.is_some() => {
                return self.go_on_without_identity(&link).await;
            }
            Some(HandleState::AUTH_FAILED) => {
                self.close(&link, Code::AUTH_FAILED).await;
                self.inner.request_close();
                return Duration::ZERO;
            }
            Some(HandleState::GONE) => {
                self.inner.request_close();
                return Duration::ZERO;
            }
            _ if !link.is_adopted()
                && link
                    .session_timeout()
                    .is_some_and(|it| link.connection.lock().is_hopeless(it)) =>
            {
                let session = link.session();
                log!(
                    WARN,
                    ?session,
                    "given up: connections end before a server answers, perhaps because it refuses a \
                     request that is repeated on each; more may be watched than it takes in one \
                     request (jute.maxbuffer; see max_request)"
                );
                return self.replace(&link, Code::SESSION_EXPIRED).await;
            }
            _ if !link.is_adopted() => {
                let is_refused = self.is_refused(&link).await;
                if is_refused && link.handle_state() != Some(HandleState::CONNECTED) {
                    let session = link.session();
                    log!(
                        WARN,
                        ?session,
                        "given up: the servers do not know this session, or do not let it connect because they have an \
                         older history than this client has seen"
                    );
                    return self.replace(&link, Code::SESSION_EXPIRED).await;
                }
                self.seek(&link).await;
            }
            _ => {}
        }
        link.next_look_in()
    }

    /// Whether the session can never connect again. A server closes the connection of a client that has seen later
    /// transactions than the server has, and the C client retries for ever. So once the session timeout has passed, this
    /// asks the servers for the session in a handshake that claims to have seen no transaction. Either they do not know the
    /// session, or they know it and it has not connected for another session timeout.
    async fn is_refused(&mut self, link: &Arc<Link>) -> bool {
        let Some((session, timeout)) = link.session().zip(link.session_timeout()) else {
            return false;
        };
        let asked = now();
        if asked < self.ask_servers || !self.inner.hosts().serve_since(self.connected + timeout) {
            return false;
        }
        self.ask_servers = asked + ASK_AGAIN;
        let inner = Arc::clone(&self.inner);
        let is_wanted = {
            let (inner, link) = (Arc::clone(&self.inner), Arc::clone(link));
            move || !inner.is_closing() && link.handle_state() != Some(HandleState::CONNECTED)
        };
        let goes_on = is_wanted.clone();
        let known = self.helped(move || inner.hosts().know(&session, timeout, &goes_on));
        // Names may take long to resolve, and a session that is back needs heartbeats.
        let given_up = async {
            loop {
                let news = self.inner.wakeup();
                if !is_wanted() {
                    return None;
                }
                news.await;
            }
        };
        match or(known, given_up).await.flatten() {
            Some(false) => true,
            Some(true) => asked - *self.known_since.get_or_insert(asked) > timeout,
            None => false,
        }
    }

    /// No server is connected: has the hosts asked, and the C client try those that serve.
    async fn seek(&mut self, link: &Arc<Link>) {
        let was_connected = self.inner.status().was_connected();
        let is_late = link.session_timeout().is_some_and(|it| now() - self.connected > it);
        if !was_connected || is_late || self.inner.hosts().are_several() {
            self.asking.ask_if_due(&self.inner);
        }
        let pause = if was_connected { NEXT_SERVER } else { self.patience };
        if now() - self.last_server < pause {
            return;
        }
        self.last_server = now();
        match self.inner.hosts().in_order() {
            // It stays with a silent host for two thirds of the session timeout, and can't be made to leave
            // it. Where there is no session yet, nothing is lost by beginning anew.
            Some(order) if !was_connected => {
                self.patience = (2 * pause).min(self.inner.options.session_timeout);
                self.inner.set_link(None);
                self.close(link, Code::CONNECTION_LOSS).await;
                self.open(Some(order)).await;
            }
            _ => {
                let inner = Arc::clone(&self.inner);
                link.cycle_next_server(move || inner.hosts().serving());
            }
        }
    }

    /// Opens a handle; with an order of the hosts, if there is one.
    async fn open(&mut self, order: Option<Vec<String>>) -> Duration {
        if self.inner.status().state == SessionState::Closed {
            return OPEN_AGAIN;
        }
        let now = now();
        if now < self.open_after {
            return self.open_after - now;
        }
        self.open_after = now + OPEN_AGAIN;
        self.inner.hosts().resolving(true);
        let (inner, key) = (Arc::clone(&self.inner), self.key);
        let opened = self.helped(move || Link::open(&inner, key, order.as_deref()));
        // Names may take long to resolve. What comes of it after a close is closed on the helper thread.
        let closing = async {
            self.closing().await;
            None
        };
        let opened = or(opened, closing).await;
        self.inner.hosts().resolving(false);
        // Names may have taken long to resolve.
        (self.last_server, self.connected) = (crate::runtime::now(), crate::runtime::now());
        match opened.unwrap_or_else(|| Err(io::Error::other("the client is closed"))) {
            Ok(link) => {
                self.opened = true;
                self.inner.set_link(Some(Arc::clone(&link)));
                // The first event may have come before the link was in place.
                self.inner.observe(&link);
                Duration::from_millis(10)
            }
            // Nobody has the client yet: connecting fails at once.
            Err(error) if !self.opened && scarcity::is_scarcity(&error) => {
                let why = scarcity::describe(&error);
                self.inner.fail(Error::with_detail("connect", "", Code::SYSTEM_ERROR, why));
                self.inner.request_close();
                Duration::ZERO
            }
            Err(_) if self.inner.is_closing() => Duration::ZERO,
            Err(error) => {
                self.asking.ask_if_due(&self.inner);
                let error = scarcity::describe(&error);
                log!(WARN, error, "the C client could not be started; trying again");
                OPEN_AGAIN
            }
        }
    }

    /// The servers have refused an identity. If it was one of the program's, the next session shows that.
    async fn go_on_without_identity(&mut self, link: &Arc<Link>) -> Duration {
        self.inner.give_no_own_identities();
        self.open_after = now();
        if self.inner.status().was_connected() {
            return self.replace(link, Code::AUTH_FAILED).await;
        }
        self.inner.set_link(None);
        self.close(link, Code::CONNECTION_LOSS).await;
        self.open(None).await
    }

    /// The session is over: closes its handle and, if the client is to go on, opens another.
    async fn replace(&mut self, link: &Arc<Link>, code: Code) -> Duration {
        // The caller asked for one session in particular and never got it.
        let never_had_it = self.key.is_some() && !self.inner.status().was_connected();
        let reopen = self.inner.options.reopen && !never_had_it;
        if !reopen {
            self.inner.fail(Error::new("connect", "", code));
            if link.is_adopted() {
                // Its program may never free what it has of us.
                self.inner.request_close();
            }
        }
        self.key = None;
        self.inner.set_link(None);
        self.close(link, link.meaning()(code)).await;
        if reopen { self.open(None).await } else { OPEN_AGAIN }
    }

    /// Closes the handle; its session ends in the background.
    async fn close(&self, link: &Arc<Link>, code: Code) {
        let link = Arc::clone(link);
        let inner = Arc::clone(&self.inner);
        if let Some(left) = self.helped(move || close(&inner, &link, code)).await.flatten() {
            let (inner, unfinished) = (Arc::clone(&self.inner), Unfinished::begin());
            offload::run(move || {
                if end_session(&inner, &left, inner.operation_deadline()).is_ok() {
                    inner.left_behind.lock().retain(|other| other.session != left.session);
                }
                drop(unfinished);
            });
        }
    }
}
