//! The client's own thread: opens sessions, watches over them, and runs what must not be lost.
//!
//! It is the only place that opens or closes a handle, so neither can happen inside a callback.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_executor::Executor;

use super::probe::Schedule;
use super::settings::Settings;
use super::state::SessionState;
use super::timer;
use super::{Core, Link, block_on, duty, wake};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::raw::{Borrowed, HandleState, at_exit, watch_for_forks};
use crate::scarcity;
use crate::session_key::SessionKey;

thread_local! {
    static THIS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the keeper of some client: it must not wait for a keeper.
pub(super) fn is_this_thread() -> bool {
    THIS.get()
}

/// How often the next server is tried while none is connected.
const NEXT_SERVER: Duration = Duration::from_secs(1);
/// How often the opening of a handle is tried again (a host name that does not resolve).
const OPEN_AGAIN: Duration = Duration::from_secs(1);
/// How often deletions are tried again before a borrowed handle is given back.
const LAST_LOOKS: Duration = Duration::from_millis(100);
/// How long tasks may take to hear that the client is closed.
const LAST_TASKS: usize = 10_000;

struct Keeper {
    core: Arc<Core>,
    /// When the next server was last tried, or the connection last seen.
    last_server: Instant,
    open_after: Instant,
    asking: Schedule,
    opened: bool,
    /// The session to take up, until it is over.
    session: Option<SessionKey>,
}

/// Starts a client's thread; on a handle of the program's, if there is one.
///
/// # Errors
/// `SYSTEM_ERROR` when there is no thread to be had; what the C client says of the program's handle.
pub(super) fn start(options: Settings, borrowed: Option<Borrowed>) -> Result<Arc<Core>> {
    watch_for_forks();
    at_exit(duty::wait_at_exit);
    let op = if borrowed.is_some() { "adopt" } else { "connect" };
    let missing = |error: io::Error| {
        Error::with_detail(op, "", Code::SYSTEM_ERROR, scarcity::describe(&error))
    };
    timer::start().map_err(missing)?;
    let tasks = Arc::new(Executor::new());
    let core = Arc::new(Core::new(options, Arc::downgrade(&tasks)));
    if let Some(borrowed) = borrowed {
        // Here, where the program vouches for its handle.
        let link = Link::adopt(&core, borrowed).map_err(|code| {
            let why = "it can't be used: its session is over, or another process has opened it";
            Error::with_detail(op, "", code, why)
        })?;
        core.set_link(Some(link));
    }
    let session = core.options().session;
    let keeper = Keeper {
        session,
        core: Arc::clone(&core),
        last_server: Instant::now(),
        open_after: Instant::now(),
        asking: Schedule::new(),
        opened: false,
    };
    let thread = std::thread::Builder::new().name("zklock-client".into());
    thread.spawn(move || keeper.run(&tasks)).map_err(missing)?;
    Ok(core)
}

/// The end of a client's thread, whatever it comes by: nobody is left waiting, and nothing is held.
struct End<'a> {
    core: Arc<Core>,
    tasks: &'a Executor<'static>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let Self { core, tasks } = self;
        core.request_close();
        let detail = if std::thread::panicking() { "the client's thread has panicked" } else { "" };
        let failure = Error::with_detail("connect", "", Code::INVALID_STATE, detail);
        wake::shielded(|| core.fail(failure));
        if let Some(link) = core.status().link {
            wake::shielded(|| link.close(Code::CLOSING));
        }
        wake::shielded(|| core.set_link(None));
        // Everything that tasks were waiting for has been answered now: let them end.
        for _ in 0..LAST_TASKS {
            if tasks.is_empty() || wake::shielded(|| tasks.try_tick()) == Some(false) {
                break;
            }
        }
        core.set_over();
    }
}

impl Keeper {
    fn run(mut self, tasks: &Executor<'static>) {
        THIS.set(true);
        let _end = End { core: Arc::clone(&self.core), tasks };
        while !self.core.is_closing() {
            #[cfg(test)]
            self.core.panic_if_killed();
            let woken = self.core.bell();
            // A panic (a waker's, say) must not cost the client its thread.
            let pause = wake::shielded(|| self.turn()).unwrap_or(OPEN_AGAIN);
            if self.core.is_closing() {
                break;
            }
            block_on(tasks.run(woken), Some(Instant::now() + pause));
        }
        if let Some(link) = self.core.status().link.filter(|link| link.is_borrowed()) {
            // The session goes on without us, so what we have on it must go first.
            self.finish(&link, tasks);
        }
    }

    /// Waits for what has to be done on a handle that goes back to its program, however long that
    /// takes: the session goes on, and what stayed on it would block others.
    fn finish(&mut self, link: &Arc<Link>, tasks: &Executor<'static>) {
        loop {
            let news = futures_lite::future::or(self.core.duties().listen(), self.core.bell());
            if self.core.duties().are_done()
                || link.session().is_none()
                || link.handle_state().is_none_or(HandleState::is_final)
            {
                return;
            }
            wake::shielded(|| self.turn());
            block_on(tasks.run(news), Some(Instant::now() + LAST_LOOKS));
        }
    }

    /// Looks around once; gives the time until the next look, unless the bell rings.
    fn turn(&mut self) -> Duration {
        let Some(link) = self.core.status().link else {
            return self.open();
        };
        link.expire_requests();
        if link.is_overdue() {
            link.let_go();
        }
        // Asked before the look: an end that comes between the two would go by without its `Lost`.
        let state = link.handle_state();
        self.core.observe(&link);
        match state {
            Some(HandleState::CONNECTED) => {
                self.last_server = Instant::now();
                self.asking.rest();
                link.attend();
                link.heartbeat();
                link.retry_disposals();
                // Only its end frees what is left on this session. Not while a lock is held on it, which
                // would be lost.
                if link.has_left() && self.core.options().reopen && !self.core.is_holding() {
                    return self.replace(&link, Code::SESSION_EXPIRED);
                }
            }
            Some(HandleState::EXPIRED) => return self.replace(&link, Code::SESSION_EXPIRED),
            Some(HandleState::AUTH_FAILED) => {
                link.close(Code::AUTH_FAILED);
                self.core.request_close();
                return Duration::ZERO;
            }
            Some(HandleState::GONE) => {
                self.core.request_close();
                return Duration::ZERO;
            }
            _ if !link.is_borrowed()
                && link.session_timeout().is_some_and(|timeout| link.is_hopeless(timeout)) =>
            {
                let session = link.session();
                log!(
                    WARN,
                    ?session,
                    "given up: connections end before a server answers, perhaps because it refuses a \
                     request that is repeated on each; more may be watched than it takes in one \
                     request (jute.maxbuffer; see max_request)"
                );
                return self.replace(&link, Code::SESSION_EXPIRED);
            }
            _ if !link.is_borrowed() => self.seek(&link),
            _ => {}
        }
        // Often enough that a loss is told when it happens, seldom enough to cost nothing.
        let timeout = link.session_timeout().unwrap_or_default();
        let usual = (timeout / 30).clamp(Duration::from_millis(10), Duration::from_millis(200));
        link.next_look_in(usual, timeout)
    }

    /// No server is connected: has the hosts asked, and the C client try those that serve.
    fn seek(&mut self, link: &Arc<Link>) {
        let was_connected = self.core.status().was_connected();
        if !was_connected || self.core.hosts().are_several() {
            self.asking.ask_if_due(&self.core);
        }
        if self.last_server.elapsed() < NEXT_SERVER {
            return;
        }
        self.last_server = Instant::now();
        match self.core.hosts().in_order() {
            // It stays with a silent host for two thirds of the session timeout, and can't be made to leave
            // it. Where there is no session yet, nothing is lost by beginning anew.
            Some(order) if !was_connected => {
                self.core.set_link(None);
                link.close(Code::CONNECTION_LOSS);
                self.open_in(Some(&order));
            }
            _ => link.cycle_next_server(&self.core),
        }
    }

    fn open(&mut self) -> Duration {
        self.open_in(None)
    }

    /// Opens a handle; with an order of the hosts, if there is one.
    fn open_in(&mut self, order: Option<&[String]>) -> Duration {
        if self.core.status().state == SessionState::Closed {
            return OPEN_AGAIN;
        }
        let now = Instant::now();
        if now < self.open_after {
            return self.open_after - now;
        }
        self.open_after = now + OPEN_AGAIN;
        self.last_server = now;
        self.core.hosts().resolving(true);
        let opened = Link::open(&self.core, self.session, order);
        self.core.hosts().resolving(false);
        match opened {
            Ok(link) => {
                self.opened = true;
                self.core.set_link(Some(Arc::clone(&link)));
                // The first event may have come before the link was in place.
                self.core.observe(&link);
                Duration::from_millis(10)
            }
            // Nobody has the client yet: connecting fails at once.
            Err(error) if !self.opened && scarcity::is_scarcity(&error) => {
                let why = scarcity::describe(&error);
                self.core.fail(Error::with_detail("connect", "", Code::SYSTEM_ERROR, why));
                self.core.request_close();
                Duration::ZERO
            }
            Err(error) => {
                self.asking.ask_if_due(&self.core);
                let error = scarcity::describe(&error);
                log!(WARN, error, "the C client could not be started; trying again");
                OPEN_AGAIN
            }
        }
    }

    /// The session is over: closes its handle and, if the client is to go on, opens another.
    fn replace(&mut self, link: &Arc<Link>, code: Code) -> Duration {
        let options = self.core.options();
        // The caller asked for one session in particular and never got it.
        let never_had_it = self.session.is_some() && !self.core.status().was_connected();
        if !options.reopen || never_had_it {
            self.core.fail(Error::new("connect", "", code));
            if link.is_borrowed() {
                // Its program may never free what it has of us.
                self.core.request_close();
            }
        }
        self.session = None;
        self.core.set_link(None);
        link.close(code);
        if options.reopen && !never_had_it { self.open() } else { OPEN_AGAIN }
    }
}
