//! When a client has its hosts asked how they are (`probe.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{ClientInner, handles};
use crate::process::PerProcess;
use crate::runtime::now;
use crate::threads;

/// How many clients of a process have their hosts asked at a time: the others wait for their turn.
const CLIENTS: usize = 4;

static CLIENTS_ASKING: PerProcess<AtomicUsize> = PerProcess::new(AtomicUsize::default);

/// The first question is asked after so long without a connection.
const FIRST: Duration = Duration::from_millis(300);
/// How long a host may take for a step: at first, and at most.
const TIMEOUTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(4));

/// When a client has its hosts asked.
pub(super) struct Schedule {
    next: Instant,
    timeout: Duration,
    asking: Arc<AtomicBool>,
}

impl Schedule {
    pub(super) fn new() -> Schedule {
        Schedule { next: now() + FIRST, timeout: TIMEOUTS.0, asking: Arc::default() }
    }

    /// Starts over, because there is a connection.
    pub(super) fn rest(&mut self) {
        (self.next, self.timeout) = (now() + FIRST, TIMEOUTS.0);
    }

    /// If it is time, asks the hosts on separate threads. They wake the driver afterwards.
    pub(super) fn ask_if_due(&mut self, inner: &Arc<ClientInner>) {
        let now = now();
        if now < self.next || self.asking.load(Ordering::Acquire) || !handles::has_a_network() {
            return;
        }
        // This also holds if it is not this client's turn, or no thread is available. Otherwise the driver would
        // do nothing but try again.
        self.next = now + FIRST;
        if CLIENTS_ASKING.fetch_add(1, Ordering::AcqRel) >= CLIENTS {
            CLIENTS_ASKING.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        self.asking.store(true, Ordering::Release);
        let turn = Turn(Arc::clone(&self.asking), Arc::clone(inner));
        let timeout = self.timeout;
        if threads::spawn("zklock-probe", move || turn.1.hosts().ask(timeout)).is_ok() {
            self.timeout = (timeout * 2).min(TIMEOUTS.1);
            self.next = now + self.timeout;
        }
    }
}

/// One of the clients that ask.
struct Turn(Arc<AtomicBool>, Arc<ClientInner>);

impl Drop for Turn {
    fn drop(&mut self) {
        CLIENTS_ASKING.fetch_sub(1, Ordering::AcqRel);
        self.0.store(false, Ordering::Release);
        self.1.wake();
    }
}
