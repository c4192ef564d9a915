//! A proxy between clients and their servers, that understands ZooKeeper's frames and makes them fail on demand.
//!
//! Without rules it forwards every byte. A [`Rule`] picks frames, an [`Action`] says what happens to them; a [`Gate`]
//! holds a frame back while the test does something in between; and a few switches act on the whole link:
//! [`cut`](Proxy::cut), [`heal`](Proxy::heal), [`refuse`](Proxy::refuse), [`reset_all`](Proxy::reset_all).
//!
//! What a rule does is done in the order of the stream: frames before the picked one have passed, frames after it in
//! the same direction wait for it. A TCP stream cannot lose a frame from its middle, so a dropped frame takes its
//! connection with it, just as a lost reply does in real life.
//!
//! Four-letter words pass through as well, unseen by rules.

mod action;
mod carry_out;
mod core;
mod gate;
mod introduction;
mod link;
mod listener;
mod pump;
mod reach;
mod rule;
mod seen;
mod sessions;
mod switches;
mod unsent;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use self::core::Traffic;
pub use action::Action;
pub use gate::{Gate, InstalledRule};
pub use rule::Rule;
pub use seen::{Direction, Seen};

use self::action::Effect;
use self::core::Shared;
use self::link::Ending;
use self::listener::Waker;
use crate::connect_string;
use crate::deadline;
use crate::error::{Error, Result};
use crate::port::Port;
use crate::wire::{Op, Ops};

/// A proxy in front of a server, or of several that count as one. Dropping it resets its connections and ends its
/// threads; the port is free again then.
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_testing::{Action, Ops, Proxy, Rule, Server};
///
/// let server = Server::start()?;
/// let proxy = Proxy::start(server.addr())?;
/// // The server does the client's second create, but the client never learns of it.
/// let lost = proxy.on(Rule::reply(Ops::creates()).nth(2), Action::Drop);
/// println!("connect to {}", proxy.hosts());
/// // ... the program under test works ...
/// lost.wait_hits(1, Duration::from_secs(10))?; // else nothing was tested
/// # Ok::<(), zklock_testing::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a proxy that is dropped ends at once"]
pub struct Proxy {
    shared: Arc<Shared>,
    waker: Waker,
    listener: Option<JoinHandle<()>>,
    port: Port,
}

impl Proxy {
    /// Listens on a free loopback port for clients of `upstream`, which need not run yet: a server's address, or a
    /// connect string as clients get it.
    ///
    /// That may be several servers, such as `ensemble.hosts()`. Then clients see one address with all of them behind
    /// it: the first connection goes to the first server, the next one to the second, and so on around; a server that
    /// refuses is passed over. Rules count over all of them.
    ///
    /// # Errors
    /// [`Error::BadArgument`] when `upstream` cannot be read; [`Error::Io`] when it names somebody nobody knows, or
    /// there is no port or no thread to be had.
    pub fn start(upstream: impl fmt::Display) -> Result<Proxy> {
        Proxy::between(Traffic::Clients, connect_string::resolve(&upstream.to_string())?)
    }

    /// A proxy that knows what sort of traffic it has before it.
    pub(crate) fn between(traffic: Traffic, upstream: Vec<SocketAddr>) -> Result<Proxy> {
        let (port, listener) = Port::reserve_and_listen().map_err(Error::io("reserve a port"))?;
        let shared = Arc::new(Shared::new(upstream, traffic));
        let (waker, listener) =
            listener::start(listener, Arc::clone(&shared)).map_err(Error::io("start a proxy"))?;
        Ok(Proxy { shared, waker, listener: Some(listener), port })
    }

    /// Where clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Where clients connect to, as they are told: `127.0.0.1:port`.
    pub fn hosts(&self) -> String {
        self.addr().to_string()
    }

    /// Does `action` to the frames that `rule` picks, from now on, on every connection.
    ///
    /// Does not block. Rules count on their own, each from its installation: see [`Rule`]. Where several pick the same
    /// frame, their actions are done in the order of installation, up to one that ends the connection.
    pub fn on(&self, rule: Rule, action: Action) -> InstalledRule {
        InstalledRule::new(&self.shared, rule, action.into())
    }

    /// Holds the frames that `rule` picks, and what follows them in their stream, until the gate is released.
    pub fn hold(&self, rule: Rule) -> Gate {
        Gate::new(InstalledRule::new(&self.shared, rule, Effect::Hold))
    }

    /// Removes all rules; frames that were held go on.
    pub fn clear_rules(&self) {
        let rules = std::mem::take(&mut self.shared.core.lock().rules);
        self.shared.changed.notify_all();
        // Not under the lock: an action may own something that uses the proxy when it is dropped.
        drop(rules);
    }

    /// Delays every frame by so long in each direction, pings among them. Frames in a row do not add up: each
    /// travels for `latency`, as on a long line. Zero, the default, is off.
    pub fn set_latency(&self, latency: Duration) {
        self.shared.core.lock().latency = latency;
    }

    /// How many connections there are, silent ones among them.
    pub fn connections(&self) -> usize {
        let core = self.shared.core.lock();
        core.links.iter().filter(|link| !link.is_closed()).count()
    }

    /// The frames that have arrived since [`clear_seen`](Proxy::clear_seen), oldest first, whatever became of them.
    /// Of more than 100,000 only the last are kept.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.core.lock().log.iter().cloned().collect()
    }

    /// What clients asked for since [`clear_seen`](Proxy::clear_seen), oldest first, without pings and connects.
    pub fn requests(&self) -> Vec<Op> {
        let any = Rule::request(Ops::any());
        let core = self.shared.core.lock();
        core.log.iter().filter(|seen| any.matches(seen)).map(|seen| seen.op).collect()
    }

    /// How many frames have arrived since [`clear_seen`](Proxy::clear_seen), by direction and operation. It counts
    /// all frames, also beyond those that [`seen`](Proxy::seen) keeps.
    pub fn counts(&self) -> BTreeMap<(Direction, Op), u64> {
        self.shared.core.lock().counts.clone()
    }

    /// How many of the frames in [`seen`](Proxy::seen) the rule picks. Its `nth` is not looked at.
    pub fn count(&self, rule: &Rule) -> usize {
        let core = self.shared.core.lock();
        core.log.iter().filter(|seen| rule.matches(seen)).count()
    }

    /// Forgets the frames that have arrived. Rules go on counting.
    pub fn clear_seen(&self) {
        let mut core = self.shared.core.lock();
        core.log.clear();
        core.counts.clear();
    }

    /// Waits until at least `count` of the frames in [`seen`](Proxy::seen) are picked by `rule`. Its `nth` is not
    /// looked at.
    ///
    /// A frame counts when it has arrived at the proxy, which is before it is forwarded.
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`.
    pub fn wait_for(&self, rule: &Rule, count: usize, timeout: Duration) -> Result<()> {
        let deadline = deadline::after(timeout);
        let mut core = self.shared.core.lock();
        loop {
            let seen = core.log.iter().filter(|seen| rule.matches(seen)).count();
            if seen >= count {
                return Ok(());
            }
            if self.shared.changed.wait_until(&mut core, deadline).timed_out() {
                let what = format!("wait for {count} of {rule:?} ({seen} seen; {})", core.latest());
                return Err(Error::Timeout { what, waited: timeout });
            }
        }
    }
}

impl Proxy {
    fn last_thread(&self) -> Option<JoinHandle<()>> {
        self.shared.core.lock().threads.pop()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut core = self.shared.core.lock();
        core.stopping = true;
        core.links.iter().for_each(|link| link.close(Ending::Reset));
        drop(core);
        self.shared.changed.notify_all();
        self.waker.wake();
        // The listener goes first: once it has ended no more threads are added.
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        // A connection's first thread may still have added its second one.
        while let Some(thread) = self.last_thread() {
            // An action that drops the proxy it runs in must not wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
