//! Guaranteed deletions (`guaranteed_delete.rs`) with an unknown outcome. They are retried while connected.

use parking_lot::Mutex;

use crate::error::Code;
use crate::runtime::wake;

type Reply = Result<(), Code>;

#[derive(Default)]
pub(super) struct Unconfirmed(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Vec<oneshot::Sender<Reply>>,
    /// Set once the session is over and nothing can be tried any more.
    is_over: bool,
}

impl Unconfirmed {
    /// Comes when the driver finds the session connected, or over. Waking it now would only try in a loop what a broken
    /// connection can't do.
    pub(super) fn connected_again(&self) -> Result<oneshot::AsyncReceiver<Reply>, Code> {
        let mut state = self.0.lock();
        if state.is_over {
            return Err(Code::SESSION_EXPIRED);
        }
        let (send, connected) = oneshot::async_channel();
        state.waiting.push(send);
        Ok(connected)
    }

    /// Has all tried again. Called while connected.
    pub(super) fn retry(&self) {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        for retry in waiting {
            wake::send(retry, Ok(()));
        }
    }

    /// The session is over.
    pub(super) fn end(&self, code: Code) {
        let waiting = {
            let mut state = self.0.lock();
            state.is_over = true;
            std::mem::take(&mut state.waiting)
        };
        for end in waiting {
            wake::send(end, Err(code));
        }
    }
}
