//! The present state of a mutex, and the state that its program knows.

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;
use std::thread::ThreadId;

use super::layout::{Place, zkr_lock_mutex};
use super::program::{Program, RELEASED};
use crate::capi::boundary::Failure;
use crate::client::{Client, Duties, Duty};
use crate::lock::{Guard, LockError};
use crate::runtime::Pending;

#[derive(Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Counts the attempts: what comes late from an earlier one is known by its number.
    pub(super) attempt: u64,
    /// Written to while queued. Once the lock is owned the program may have moved the struct.
    pub(super) at: Option<Place>,
    pub(super) names: Names,
    /// The names of the attempt before: programs may still look at them.
    pub(super) names_before: Vec<Names>,
    /// Those that this attempt had, and has no more.
    pub(super) names_so_far: Vec<Names>,
    pub(super) program: Program,
    /// How many callers wait for the place in the queue to be known.
    pub(super) callers: usize,
    /// The code that the program was last told in this attempt.
    pub(super) told: Option<c_int>,
    /// The threads that call back into the program at this moment, and what they tell it.
    pub(super) turns: Vec<(ThreadId, c_int)>,
    /// The client of the last attempt. While it is kept, it ends only with its handle.
    pub(super) client: Option<Client>,
}

/// ```text
/// Idle ──lock──▶ Queued ──acquired──▶ Held ──unlock──▶ Releasing ──▶ Idle
///                │ │ │                 └─lost─▶ Lost ──unlock──▶ Refused
///                │ │ └─failed, and nobody waits─▶ Lost
///                │ └─failed, and `lock` returns it─▶ Refused
///                └─unlock─▶ Releasing
/// ```
/// A `lock` starts another attempt unless the state is Queued, or Held and not lost. If it cannot start one, the state
/// is Refused.
#[derive(Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    Queued {
        /// Dropping it cancels the acquire.
        cancel: GiveUp,
        /// Whether the place in the queue is known.
        placed: bool,
        /// Comes when the acquire is over, its claim's deletion submitted.
        over: oneshot::AsyncReceiver<()>,
        client: Client,
        /// Where the queue is.
        path: Arc<str>,
    },
    /// It has no place in the queue, and this is why.
    Refused(Failure),
    Held(Guard),
    /// It was lost, with its lock or while it waited, and the program has not unlocked it yet.
    Lost(Option<Guard>, Failure),
    Releasing(Pending<(), LockError>, Client),
}

/// Cancels an acquire when it is dropped.
pub(super) struct GiveUp {
    notice: Option<oneshot::Sender<Duty>>,
    duties: Arc<Duties>,
}

impl GiveUp {
    /// The receiver gets what lasts until the acquire is over.
    pub(super) fn new(client: &Client) -> (GiveUp, oneshot::AsyncReceiver<Duty>) {
        let (notice, received) = oneshot::async_channel();
        let duties = Arc::clone(client.inner().duties());
        (GiveUp { notice: Some(notice), duties }, received)
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        if let Some(notice) = self.notice.take() {
            // Of an acquire that is over by itself, nobody receives it.
            let _ = notice.send(self.duties.begin());
        }
    }
}

/// The claim's name, and that of the first in the queue, as often as it changed.
#[derive(Default)]
pub(super) struct Names {
    pub(super) own: Option<CString>,
    pub(super) first: Vec<CString>,
}

impl State {
    pub(super) fn owns(&self) -> bool {
        matches!(&self.phase, Phase::Held(guard) if !guard.is_lost())
    }

    pub(super) fn is_anothers_turn(&self) -> bool {
        self.turns.iter().any(|(thread, _)| *thread != std::thread::current().id())
    }

    /// Whether this very thread is inside the completion that says it has the lock no more.
    pub(super) fn is_inside_release(&self) -> bool {
        let me = std::thread::current().id();
        let mine = self.turns.iter().rev().find(|(thread, _)| *thread == me);
        mine.is_some_and(|(_, rc)| *rc == RELEASED)
    }

    pub(super) fn show(&self, mutex: &zkr_lock_mutex) {
        let has_claim = matches!(self.phase, Phase::Queued { .. } | Phase::Held(_));
        let own = self.names.own.as_deref().filter(|_| has_claim);
        mutex.show(own, self.names.first(), self.owns());
    }
}

impl Names {
    pub(super) fn first(&self) -> Option<&CStr> {
        self.first.last().map(CString::as_c_str)
    }
}
