//! One handle of the C client and the session on it: its watches, its epochs of trust, and the
//! znodes that must go.

use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::watch::WatchTable;
use super::{Core, Pending};
use crate::error::{Code, Error, Result};
use crate::raw::{self, Event, EventKind, Handle, HandleState, Sink, WatchOn};
use crate::session_key::SessionKey;
use crate::znode::Stat;

/// One session's handle. What was submitted here can never act on a later session.
pub(crate) struct Link {
    /// Empty only while the handle is being opened.
    handle: OnceLock<Handle>,
    core: Weak<Core>,
    pub(super) watches: Arc<WatchTable>,
    operation_timeout: Duration,
    pub(super) max_request: usize,
    doomed: Mutex<Doomed>,
}

/// Deletions with an unknown outcome: tried again by the keeper while connected.
#[derive(Default)]
struct Doomed {
    disposals: Vec<Disposal>,
    /// Set once the session is over and nothing can be tried any more.
    over: bool,
}

/// A znode that must go.
struct Disposal {
    path: String,
    czxid: Option<i64>,
    /// Whether no deletion was tried before: after one, a missing znode is how success looks.
    first: bool,
    done: oneshot::Sender<Result<bool>>,
}

impl Disposal {
    fn end(self, reply: std::result::Result<(), Code>) {
        let result = match reply {
            Ok(()) => Ok(true),
            Err(Code::NO_NODE) => Ok(!self.first),
            Err(code) => Err(Error::new("delete", &self.path, code)),
        };
        let _ = self.done.send(result);
    }

    fn end_or_try_later(mut self, code: Code, link: Option<&Link>) {
        let Some(link) = link else {
            return self.end(Err(code));
        };
        if !code.is_outcome_unknown() && !code.is_retryable() {
            return self.end(Err(code));
        }
        self.first = false;
        let mut doomed = link.doomed.lock();
        if doomed.over {
            drop(doomed);
            return self.end(Err(Code::SESSION_EXPIRED));
        }
        // The keeper looks here on its every turn; waking it now would only try in a loop what a
        // broken connection can't do.
        doomed.disposals.push(self);
    }
}

impl Link {
    /// Starts to connect. Can block for as long as the resolution of host names does.
    pub(super) fn open(core: &Arc<Core>, session: Option<SessionKey>) -> io::Result<Arc<Link>> {
        let options = core.options();
        let link = Arc::new(Link {
            handle: OnceLock::new(),
            core: Arc::downgrade(core),
            watches: Arc::default(),
            operation_timeout: options.operation_timeout,
            max_request: options.max_request,
            doomed: Mutex::default(),
        });
        let config = raw::Config {
            hosts: options.hosts.clone(),
            session_timeout: options.session_timeout,
            session,
        };
        let events = Arc::downgrade(&link);
        let handle = Handle::open(&config, move |event| {
            if let Some(link) = events.upgrade() {
                link.on_event(&event);
            }
        })?;
        let _ = link.handle.set(handle);
        Ok(link)
    }

    /// Runs on the completion thread.
    fn on_event(self: &Arc<Self>, event: &Event) {
        tracing::trace!(?event, "event");
        if event.kind != EventKind::SESSION {
            self.watches.fire(event);
        } else if let Some(core) = self.core.upgrade() {
            core.observe(self);
            core.wake();
        }
    }

    pub(super) fn handle_state(&self) -> Option<HandleState> {
        self.handle.get()?.state()
    }

    pub(super) fn session(&self) -> Option<SessionKey> {
        self.handle.get()?.session().filter(|key| key.id() != 0)
    }

    pub(super) fn session_timeout(&self) -> Option<Duration> {
        self.handle.get()?.session_timeout()
    }

    pub(super) fn cycle_next_server(&self) {
        if let Some(handle) = self.handle.get() {
            handle.cycle_next_server();
        }
    }

    /// Answers the requests whose deadline has passed.
    pub(super) fn expire_requests(&self) {
        if let Some(handle) = self.handle.get() {
            handle.expire(Instant::now());
        }
    }

    pub(super) fn add_auth(&self, credentials: &raw::Credentials) -> Pending<()> {
        self.request("add_auth", "", Ok, |handle, deadline, sink| {
            handle.add_auth(deadline, credentials, sink);
        })
    }

    /// Submits a request and gives the receiver of its reply. `read` turns the reply into what the
    /// caller wants; it runs on the completion thread.
    pub(super) fn request<T: 'static, U: Send + 'static>(
        &self,
        op: &'static str,
        path: &str,
        read: impl FnOnce(T) -> std::result::Result<U, Code> + Send + 'static,
        submit: impl FnOnce(&Handle, Option<Instant>, Sink<T>),
    ) -> Pending<U> {
        let Some(handle) = self.handle.get() else {
            return Pending::ready(Err(Error::new(op, path, Code::INVALID_STATE)));
        };
        let (send, reply) = oneshot::async_channel();
        let path = path.to_owned();
        let sink: Sink<T> = Box::new(move |reply| {
            let result = reply.and_then(read).map_err(|code| Error::new(op, &path, code));
            // Nobody may be waiting any more; what the reply carried is dropped then.
            let _ = send.send(result);
        });
        submit(handle, Instant::now().checked_add(self.operation_timeout), sink);
        Pending::reply(op, reply)
    }

    /// Deletes a znode of this session for certain: the deletion is submitted now, and as often as
    /// its outcome is unknown, until the znode or the session is gone. Whether the result is
    /// awaited makes no difference to that.
    ///
    /// With a czxid, a look comes first, and only the znode that was created by that transaction
    /// is deleted. Gives `false` if the first try found no such znode.
    pub(crate) fn dispose(self: &Arc<Self>, path: &str, czxid: Option<i64>) -> Pending<bool> {
        let (send, done) = oneshot::async_channel();
        self.try_to_dispose(Disposal { path: path.to_owned(), czxid, first: true, done: send });
        Pending::reply("delete", done)
    }

    fn try_to_dispose(self: &Arc<Self>, disposal: Disposal) {
        let Some(handle) = self.handle.get() else {
            return;
        };
        let Some(czxid) = disposal.czxid else {
            return self.delete_for(disposal);
        };
        let link = Arc::downgrade(self);
        let path = disposal.path.clone();
        let sink: Sink<(Vec<u8>, Stat)> = Box::new(move |reply| match (reply, link.upgrade()) {
            (Ok((_, stat)), Some(link)) if stat.czxid == czxid => link.delete_for(disposal),
            // Somebody else's by now.
            (Ok(_), _) => disposal.end(Err(Code::NO_NODE)),
            (Err(code), link) => disposal.end_or_try_later(code, link.as_deref()),
        });
        handle.get(self.deadline(), &path, WatchOn::No, sink);
    }

    fn delete_for(self: &Arc<Self>, disposal: Disposal) {
        let Some(handle) = self.handle.get() else {
            return;
        };
        let link = Arc::downgrade(self);
        let path = disposal.path.clone();
        let sink: Sink<()> = Box::new(move |reply| match reply {
            Ok(()) => disposal.end(Ok(())),
            Err(code) => disposal.end_or_try_later(code, link.upgrade().as_deref()),
        });
        handle.delete(self.deadline(), &path, -1, sink);
    }

    /// Tries the deletions again whose outcome is unknown. Called while connected.
    pub(super) fn retry_disposals(self: &Arc<Self>) {
        let disposals = std::mem::take(&mut self.doomed.lock().disposals);
        for disposal in disposals {
            self.try_to_dispose(disposal);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.operation_timeout)
    }

    /// Ends the session if it can still be reached, and answers everything that waits, watches
    /// with `code`. Blocks.
    pub(super) fn close(&self, code: Code) {
        if let Some(handle) = self.handle.get() {
            handle.close();
        }
        self.watches.close(code);
        let disposals = {
            let mut doomed = self.doomed.lock();
            doomed.over = true;
            std::mem::take(&mut doomed.disposals)
        };
        for disposal in disposals {
            disposal.end(Err(code));
        }
    }
}
