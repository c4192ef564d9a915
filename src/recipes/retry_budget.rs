//! How long a recipe's operation puts up with trouble: lost connections, servers that do not answer.

use std::time::{Duration, Instant};

use crate::client::{Client, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::retry;
use crate::runtime::{Timer, within};

/// The client's operation timeout and the session's timeout after it, in which the session either
/// comes back or ends. (A server that is just starting can take a connection and never answer; the
/// C client leaves it only after two thirds of the session timeout.)
pub(super) struct RetryBudget<'a> {
    client: &'a Client,
    op: &'static str,
    path: &'a str,
    /// When it is over; `None` until it begins, `Some(None)` for never.
    deadline: Option<Option<Instant>>,
}

impl<'a> RetryBudget<'a> {
    pub(super) fn new(client: &'a Client, op: &'static str, path: &'a str) -> RetryBudget<'a> {
        RetryBudget { client, op, path, deadline: None }
    }

    /// Waits for a session that is connected and trusted.
    ///
    /// # Errors
    /// `OPERATION_TIMEOUT` when there was none in time, or the servers gave no answer in time.
    /// Otherwise why there will never be one: `SESSION_EXPIRED`, `AUTH_FAILED`, `INVALID_STATE`.
    pub(super) async fn session(&mut self) -> Result<TrustedSession> {
        let inner = self.client.inner();
        let deadline = *self.deadline.get_or_insert_with(|| {
            let session_timeout = self.client.session_timeout().unwrap_or_default();
            inner.operation_deadline().and_then(|deadline| deadline.checked_add(session_timeout))
        });
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(self.over());
        }
        let session = async {
            inner.trusted_session().await.map_err(|error| {
                let detail = "the session can't be used";
                Error::with_detail(self.op, self.path, error.code(), detail)
            })
        };
        within(deadline, session, || Err(self.over())).await
    }

    /// There was an answer: it begins again.
    pub(super) fn renew(&mut self) {
        self.deadline = None;
    }

    /// The operation that this budget is for.
    pub(super) fn op(&self) -> &'static str {
        self.op
    }

    /// Lets a moment pass after trouble.
    pub(super) async fn pause(&self) {
        Timer::after(retry::SOON).await;
    }

    fn over(&self) -> Error {
        let detail = "no word from the servers in time; nothing was done";
        Error::with_detail(self.op, self.path, Code::OPERATION_TIMEOUT, detail)
    }
}

/// Lets others get ahead after one of them was faster, so many times in a row. Those that go on in step want the same each
/// time, and only one of them gets anything done.
pub(super) async fn step_aside(losses: u32, longest: Duration) {
    let longest = Duration::from_millis(1 << losses.min(10)).min(longest);
    Timer::after(longest.mul_f64(fastrand::f64())).await;
}
