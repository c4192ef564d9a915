//! Does to a frame what a rule said, when the frame's turn has come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::action::Effect;
use super::core::Fired;
use super::link::{Ending, Way};
use super::pump::Pump;

/// How long a dropped request waits for the replies to those before it.
const EARLIER_REPLIES: Duration = Duration::from_secs(1);
/// How long a reset waits until the client's system has what was sent before: a frozen client may never take it.
const ARRIVAL: Duration = Duration::from_secs(1);

impl Pump {
    /// `false` when the connection has ended.
    pub(super) fn carry_out(&self, fired: &Fired) -> bool {
        match &fired.effect {
            Effect::Delay(_) => self.hit(fired),
            Effect::Run(run) => {
                self.hit(fired);
                (run.lock())(fired.number);
            }
            Effect::Hold => {
                self.hit(fired);
                let mut core = self.shared.core.lock();
                while core.has_rule(fired.rule) && !self.link.is_closed() {
                    self.shared.changed.wait(&mut core);
                }
            }
            Effect::Stall => {
                self.link.silence();
                self.hit(fired);
                self.park();
                return false;
            }
            Effect::Reset => {
                self.end(Ending::Reset);
                self.hit(fired);
                return false;
            }
            Effect::Drop => {
                if self.way == Way::ToServer {
                    self.wait_for_earlier_replies();
                }
                self.link.wait_client_has_all(Instant::now() + ARRIVAL);
                self.end(Ending::ResetClient);
                self.hit(fired);
                return false;
            }
        }
        true
    }

    fn hit(&self, fired: &Fired) {
        let core = self.shared.core.lock();
        fired.hits.fetch_add(1, Ordering::SeqCst);
        drop(core);
        self.shared.changed.notify_all();
    }

    fn wait_for_earlier_replies(&self) {
        let deadline = Instant::now() + EARLIER_REPLIES;
        let mut core = self.shared.core.lock();
        while self.link.unanswered.load(Ordering::SeqCst) > 0 && !self.link.is_closed() {
            if self.shared.changed.wait_until(&mut core, deadline).timed_out() {
                return;
            }
        }
    }
}
