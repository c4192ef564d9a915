//! The states of a guard, as they change.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_lite::future::Boxed;
use futures_lite::stream;

use super::loss::GuardState;
use super::tenure::Tenure;
use crate::process::Process;
use crate::runtime::Updates;

/// The states of a guard as they change: see [`Guard::states`](super::Guard::states).
pub type GuardStates = Updates<GuardState>;

pub(super) fn of(tenure: Arc<dyn Tenure>, process: Process) -> GuardStates {
    let mut states = States { tenure, reported: None, change: None };
    let stream = stream::poll_fn(move |cx| states.poll(cx));
    Updates::new(process, GuardState::Lost, stream)
}

struct States {
    tenure: Arc<dyn Tenure>,
    reported: Option<GuardState>,
    change: Option<Boxed<()>>,
}

impl States {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<GuardState>> {
        if self.reported == Some(GuardState::Lost) {
            return Poll::Ready(None);
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
