//! Requests on a session. Their replies renew its lease where they can.

use std::sync::Arc;

use super::Link;
use super::lease::Proof;
use crate::error::{Code, Error};
use crate::raw::{Handle, Sink, Terms, Turn};
use crate::runtime::{BootInstant, Pending, now, wake};

impl Link {
    /// As [`request`](Link::request), for requests that renew the lease when they are answered.
    pub(super) fn renewing_request<T: 'static, U: Send + 'static>(
        &self,
        proof: Proof,
        op: &'static str,
        path: impl Into<Arc<str>>,
        read: impl FnOnce(T) -> std::result::Result<U, Code> + Send + 'static,
        submit: impl FnOnce(&dyn Handle, Terms, Sink<T>),
    ) -> Pending<U> {
        let (lease, submitted) = (Arc::clone(&self.lease), BootInstant::now());
        let learn = move |reply: &_| lease.learn(reply, submitted, proof);
        self.submit(op, path, learn, read, submit)
    }

    /// Submits a request and gives the receiver of its reply. `read` turns the reply into what the
    /// caller wants; it runs on the completion thread.
    pub(super) fn request<T: 'static, U: Send + 'static>(
        &self,
        op: &'static str,
        path: impl Into<Arc<str>>,
        read: impl FnOnce(T) -> std::result::Result<U, Code> + Send + 'static,
        submit: impl FnOnce(&dyn Handle, Terms, Sink<T>),
    ) -> Pending<U> {
        self.submit(op, path, |_| (), read, submit)
    }

    /// `learn` sees the reply before anybody else does.
    fn submit<T: 'static, U: Send + 'static>(
        &self,
        op: &'static str,
        path: impl Into<Arc<str>>,
        learn: impl FnOnce(&std::result::Result<T, Code>) + Send + 'static,
        read: impl FnOnce(T) -> std::result::Result<U, Code> + Send + 'static,
        submit: impl FnOnce(&dyn Handle, Terms, Sink<T>),
    ) -> Pending<U> {
        let path = path.into();
        let (send, reply) = oneshot::async_channel();
        let meant = self.meaning();
        let named = Arc::clone(&path);
        let sink: Sink<T> = Box::new(move |reply| {
            let reply = reply.map_err(meant);
            learn(&reply);
            let result = reply.and_then(read).map_err(|code| Error::answered(op, &named, code));
            // Nobody may be waiting any more; what the reply carried is dropped then.
            wake::answer(send, result);
        });
        submit(&*self.handle, self.terms(Turn::InOrder), sink);
        Pending::reply(op, path, reply)
    }

    /// Translates error codes of this session. If the servers refuse the session's own identity, the session has ended,
    /// and the client opens another.
    pub(super) fn meaning(&self) -> impl Fn(Code) -> Code + Send + 'static {
        let goes_on = self.identity.is_some();
        move |code| if goes_on && code == Code::AUTH_FAILED { Code::SESSION_EXPIRED } else { code }
    }

    /// Terms by which a request that is submitted now is answered in time.
    pub(super) fn terms(&self, turn: Turn) -> Terms {
        Terms { deadline: now().checked_add(self.options.operation_timeout), turn }
    }
}
