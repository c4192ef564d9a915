//! What acts on all of a proxy's connections at once.

use std::time::Duration;

use parking_lot::MutexGuard;

use super::Proxy;
use super::core::{Core, Mode};
use super::link::Ending;
use crate::deadline;

/// How long a switch waits for the listener, which has nothing to wait for unless somebody sits on its port.
const LISTENER: Duration = Duration::from_secs(10);

/// Each returns when what it says holds, which is at once: unless another thread has thrown another switch meanwhile.
impl Proxy {
    /// Partitions clients from the server: all connections fall silent both ways, and new ones are accepted but stay
    /// silent. Nothing passes any more once this has returned. Nobody is told: a peer that ends a silent connection
    /// is not noticed at the other end either.
    pub fn cut(&self) {
        let mut core = self.shared.core.lock();
        core.mode = Mode::Cut;
        core.links.iter().for_each(|link| link.silence());
        self.wait_listening(core, Mode::Cut);
    }

    /// Ends [`cut`](Proxy::cut) and [`refuse`](Proxy::refuse). Connections that fell silent are reset rather than
    /// resumed, also those that [`Action::Stall`](super::Action::Stall) silenced.
    ///
    /// The port is bound anew after a refusal. Should a program that knows nothing of this crate sit on it by now, this
    /// returns after ten seconds, and clients are refused until that program has gone.
    pub fn heal(&self) {
        let mut core = self.shared.core.lock();
        core.mode = Mode::Open;
        core.links
            .iter()
            .filter(|link| link.is_silent())
            .for_each(|link| link.close(Ending::Reset));
        self.wait_listening(core, Mode::Open);
    }

    /// Plays a server that is down: resets all connections and refuses new ones, until [`heal`](Proxy::heal).
    pub fn refuse(&self) {
        let mut core = self.shared.core.lock();
        core.mode = Mode::Refuse;
        core.links.iter().for_each(|link| link.close(Ending::Reset));
        self.waker.wake();
        self.wait_listening(core, Mode::Refuse);
    }

    /// Waits until the listener does what the mode asks, or another thread has asked for another mode.
    fn wait_listening(&self, mut core: MutexGuard<'_, Core>, mode: Mode) {
        let deadline = deadline::after(LISTENER);
        self.shared.changed.notify_all();
        while core.mode == mode && core.listening != (mode != Mode::Refuse) {
            if self.shared.changed.wait_until(&mut core, deadline).timed_out() {
                return;
            }
        }
    }

    /// Resets all connections, at both ends; new ones are welcome.
    pub fn reset_all(&self) {
        let core = self.shared.core.lock();
        core.links.iter().for_each(|link| link.close(Ending::Reset));
        self.shared.changed.notify_all();
    }
}
