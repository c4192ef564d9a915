//! What a test keeps in hand of a rule it has installed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::action::Effect;
use super::core::{Installed, Shared};
use super::rule::Rule;
use crate::deadline;
use crate::error::{Error, Result};

/// A rule in force. Dropping this leaves it in force; [`remove`](InstalledRule::remove) ends it.
///
/// A test whose rule never fires has tested nothing: look at [`hits`](InstalledRule::hits) in the end.
#[derive(Debug)]
pub struct InstalledRule {
    shared: Arc<Shared>,
    id: u64,
    text: String,
    hits: Arc<AtomicU64>,
}

impl InstalledRule {
    pub(super) fn new(shared: &Arc<Shared>, rule: Rule, effect: Effect) -> InstalledRule {
        let hits = Arc::new(AtomicU64::new(0));
        let text = format!("{rule:?}");
        let mut core = shared.core.lock();
        let id = core.next_rule;
        core.next_rule += 1;
        core.rules.push(Installed { id, rule, effect, fitted: 0, hits: Arc::clone(&hits) });
        InstalledRule { shared: Arc::clone(shared), id, text, hits }
    }

    /// How many times its action has been done; those that take their time count from their beginning.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::SeqCst)
    }

    /// Waits until its action has been done `hits` times in all, counted as by [`hits`](InstalledRule::hits).
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`.
    pub fn wait_hits(&self, hits: u64, timeout: Duration) -> Result<()> {
        let deadline = deadline::after(timeout);
        let mut core = self.shared.core.lock();
        while self.hits() < hits {
            if self.shared.changed.wait_until(&mut core, deadline).timed_out() {
                let (times, latest) = (self.hits(), core.latest());
                let what = format!("wait for {} ({times} of {hits} times; {latest})", self.text);
                return Err(Error::Timeout { what, waited: timeout });
            }
        }
        Ok(())
    }

    /// Ends the rule. What it has begun goes on.
    pub fn remove(&self) {
        let mut core = self.shared.core.lock();
        let place = core.rules.iter().position(|installed| installed.id == self.id);
        let removed = place.map(|place| core.rules.remove(place));
        drop(core);
        self.shared.changed.notify_all();
        // Not under the lock: an action may own something that uses the proxy when it is dropped.
        drop(removed);
    }
}

/// Holds frames back so that a test can do something in between. Released when dropped.
///
/// ```no_run
/// # use std::time::Duration;
/// # use zklock_testing::{Proxy, Rule, Server, wire::Ops};
/// # let server = Server::start()?;
/// # let proxy = Proxy::start(server.addr())?;
/// let gate = proxy.hold(Rule::reply(Ops::lists()).once());
/// // ... a client lists the children of a node ...
/// gate.wait_reached(Duration::from_secs(5))?;
/// // ... and before it learns of them, another one deletes a child ...
/// gate.release();
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a gate that is dropped holds nothing"]
pub struct Gate {
    rule: InstalledRule,
}

impl Gate {
    pub(super) fn new(rule: InstalledRule) -> Gate {
        Gate { rule }
    }

    /// Waits until a frame stands at the gate. All frames before it in its stream have been forwarded.
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`.
    pub fn wait_reached(&self, timeout: Duration) -> Result<()> {
        self.rule.wait_hits(1, timeout)
    }

    /// Whether a frame stands, or stood, at the gate.
    pub fn is_reached(&self) -> bool {
        self.rule.hits() > 0
    }

    /// Lets the held frames go on, and holds no more.
    pub fn release(&self) {
        self.rule.remove();
    }
}

impl Drop for Gate {
    /// A test that fails in between must not leave its client waiting.
    fn drop(&mut self) {
        self.release();
    }
}
