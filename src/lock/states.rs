//! The states of a guard, as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future::Boxed;

use super::loss::GuardState;
use super::tenure::Tenure;
use crate::process::Process;
use crate::runtime::{block_on, block_on_until};

/// The states of a guard, from the one at the time of the first look on.
///
/// It gives the latest state: a [`Suspended`](GuardState::Suspended) that came and went between two looks is
/// left out. It ends after [`Lost`](GuardState::Lost), which also follows a release. It neither holds the lock nor
/// keeps its store open.
pub struct GuardStates {
    tenure: Arc<dyn Tenure>,
    reported: Option<GuardState>,
    change: Option<Boxed<()>>,
    process: Process,
}

impl GuardStates {
    pub(super) fn new(tenure: Arc<dyn Tenure>, process: Process) -> GuardStates {
        GuardStates { tenure, reported: None, change: None, process }
    }

    /// The next state that has not been reported yet; `None` after `Lost`. The first call gives the present
    /// state at once. Cancel-safe.
    pub async fn next(&mut self) -> Option<GuardState> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Blocks this thread until there is a state that has not been reported yet.
    pub fn wait(&mut self) -> Option<GuardState> {
        block_on(self.next())
    }

    /// As [`wait`](GuardStates::wait), but no longer than `timeout`: `None` when it has passed.
    #[allow(clippy::option_option)]
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Option<GuardState>> {
        block_on_until(Instant::now().checked_add(timeout), self.next())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<GuardState>> {
        if self.reported == Some(GuardState::Lost) {
            return Poll::Ready(None);
        }
        if !self.process.is_this() {
            self.reported = Some(GuardState::Lost);
            return Poll::Ready(self.reported);
        }
        loop {
            // Listens from here on, and looks after that: no change falls in between.
            let tenure = &self.tenure;
            let change = self.change.get_or_insert_with(|| Arc::clone(tenure).changed());
            let changed = change.as_mut().poll(cx).is_ready();
            if changed {
                self.change = None;
            }
            let state = self.tenure.state();
            if self.reported != Some(state) {
                self.reported = Some(state);
                return Poll::Ready(self.reported);
            }
            if !changed {
                return Poll::Pending;
            }
        }
    }
}

impl futures_core::Stream for GuardStates {
    type Item = GuardState;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<GuardState>> {
        self.poll(cx)
    }
}

impl std::fmt::Debug for GuardStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardStates").field("reported", &self.reported).finish_non_exhaustive()
    }
}
