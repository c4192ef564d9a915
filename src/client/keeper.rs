//! The client's own thread: opens sessions, watches over them, and runs what must not be lost.
//!
//! It is the only place that opens or closes a handle, so neither can happen inside a callback.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_executor::Executor;

use super::settings::Settings;
use super::state::SessionState;
use super::timer::{self, Timer};
use super::{Core, Link, block_on, duty, wake};
use crate::error::{Code, Error, Result};
use crate::raw::{Borrowed, HandleState, at_exit, watch_for_forks};

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
    /// The session to take up is asked for once.
    opened: bool,
}

/// Starts a client's thread; on a handle of the program's, if there is one.
pub(super) fn start(options: Settings, borrowed: Option<Borrowed>) -> Result<Arc<Core>> {
    watch_for_forks();
    at_exit(duty::wait_at_exit);
    timer::start().map_err(|error| no_thread(&error))?;
    let tasks = Arc::new(Executor::new());
    let core = Arc::new(Core::new(options, Arc::downgrade(&tasks)));
    if let Some(borrowed) = borrowed {
        // Here, where the program vouches for its handle.
        let link = Link::adopt(&core, borrowed).map_err(|code| {
            Error::with_detail(
                "adopt",
                "",
                code,
                "it can't be used: its session is over, or another process has opened it",
            )
        })?;
        core.set_link(Some(link));
    }
    let keeper = Keeper {
        core: Arc::clone(&core),
        last_server: Instant::now(),
        open_after: Instant::now(),
        opened: false,
    };
    let thread = std::thread::Builder::new().name("zklock-keeper".into());
    thread.spawn(move || keeper.keep(&tasks)).map_err(|error| no_thread(&error))?;
    Ok(core)
}

fn no_thread(error: &std::io::Error) -> Error {
    Error::with_detail("connect", "", Code::SYSTEM_ERROR, format!("no thread: {error}"))
}

impl Keeper {
    fn keep(mut self, tasks: &Executor<'static>) {
        THIS.set(true);
        let rounds = async {
            while !self.core.is_closing() {
                let bell = self.core.bell();
                // A panic (a log subscriber's, say) must not cost the client its keeper.
                let pause = wake::shielded(|| self.turn()).unwrap_or(OPEN_AGAIN);
                if self.core.is_closing() {
                    break;
                }
                let timer = async {
                    Timer::after(pause).await;
                };
                futures_lite::future::or(bell, timer).await;
            }
        };
        block_on(tasks.run(rounds), None);
        if let Some(link) = self.core.status().link.filter(|link| link.is_borrowed()) {
            // The session goes on without us, so what we have on it must go first.
            block_on(tasks.run(self.finish(&link)), None);
        }
        self.core.fail(Error::new("connect", "", Code::INVALID_STATE));
        if let Some(link) = self.core.status().link {
            link.close(Code::CLOSING);
        }
        self.core.set_link(None);
        // Everything that tasks were waiting for has been answered now: let them end.
        for _ in 0..LAST_TASKS {
            if tasks.is_empty() || !tasks.try_tick() {
                break;
            }
        }
        self.core.set_over();
    }

    /// Waits for what has to be done on a handle that goes back to its program, however long that
    /// takes: the session goes on, and what stayed on it would block others.
    async fn finish(&mut self, link: &Arc<Link>) {
        loop {
            let news = futures_lite::future::or(self.core.duties().listen(), self.core.bell());
            if self.core.duties().are_done()
                || link.session().is_none()
                || link.handle_state().is_none_or(HandleState::is_final)
            {
                return;
            }
            wake::shielded(|| self.turn());
            futures_lite::future::or(news, Timer::after(LAST_LOOKS)).await;
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
            _ if self.last_server.elapsed() >= NEXT_SERVER && !link.is_borrowed() => {
                self.last_server = Instant::now();
                link.cycle_next_server();
            }
            _ => {}
        }
        // Often enough that a loss is told when it happens, seldom enough to cost nothing.
        let timeout = link.session_timeout().unwrap_or_default();
        let usual = (timeout / 30).clamp(Duration::from_millis(10), Duration::from_millis(200));
        link.next_look_in(usual, timeout)
    }

    fn open(&mut self) -> Duration {
        if self.core.status().state == SessionState::Closed {
            return OPEN_AGAIN;
        }
        let now = Instant::now();
        if now < self.open_after {
            return self.open_after - now;
        }
        self.open_after = now + OPEN_AGAIN;
        self.last_server = now;
        let session = self.core.options().session.filter(|_| !self.opened);
        match Link::open(&self.core, session) {
            Ok(link) => {
                self.opened = true;
                self.core.set_link(Some(Arc::clone(&link)));
                // The first event may have come before the link was in place.
                self.core.observe(&link);
                Duration::from_millis(10)
            }
            Err(error) => {
                tracing::warn!(%error, "the C client could not be started; trying again");
                OPEN_AGAIN
            }
        }
    }

    /// The session is over: closes its handle and, if the client is to go on, opens another.
    fn replace(&mut self, link: &Arc<Link>, code: Code) -> Duration {
        let options = self.core.options();
        // The caller asked for one session in particular and never got it.
        let never_had_it = options.session.is_some() && !self.core.status().was_connected();
        if !options.reopen || never_had_it {
            self.core.fail(Error::new("connect", "", code));
            if link.is_borrowed() {
                // Its program may never free what it has of us.
                self.core.request_close();
            }
        }
        self.core.set_link(None);
        link.close(code);
        if options.reopen && !never_had_it { self.open() } else { OPEN_AGAIN }
    }
}
