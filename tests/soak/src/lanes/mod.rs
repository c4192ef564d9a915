//! The lanes of faults: each draws what to do, does it, undoes it, and writes it down. They run side
//! by side.

mod clients;
mod operator;
mod servers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fault::Fault;
use crate::plan::{Draw, Lane};
use crate::trouble::Trouble;
pub use clients::fail_clients;
pub use operator::operate;
pub use servers::fail_servers;

/// Until when faults are made; ends early on Ctrl-C, or when a lane can't go on.
#[derive(Default)]
pub struct Until {
    deadline: Mutex<Option<Instant>>,
    over: AtomicBool,
}

impl Until {
    /// From now on, for so long.
    pub fn begin(&self, time: Duration) {
        *self.deadline.lock() = Instant::now().checked_add(time);
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub fn is_over(&self) -> bool {
        let deadline = *self.deadline.lock();
        self.over.load(Ordering::SeqCst) || deadline.is_some_and(|at| Instant::now() >= at)
    }

    /// Sleeps so long; whether there is time left then.
    pub fn sleep(&self, time: Duration) -> bool {
        const SLICE: Duration = Duration::from_millis(20);
        let awake = Instant::now() + time;
        while !self.is_over() && Instant::now() < awake {
            std::thread::sleep(SLICE.min(awake.saturating_duration_since(Instant::now())));
        }
        !self.is_over()
    }
}

/// What the lanes have done so far.
#[derive(Default)]
pub struct Record(Mutex<Vec<Fault>>);

impl Record {
    fn add(&self, fault: Fault) {
        self.0.lock().push(fault);
    }

    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// In the order in which they began.
    pub fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.0.into_inner();
        faults.sort_by_key(|fault| fault.from);
        faults
    }
}

/// Does what a lane draws, until it is over. `hit` makes one fault and undoes it; it may find that it
/// is too late for one.
fn drive(
    mut lane: Lane,
    until: &Until,
    record: &Record,
    mut hit: impl FnMut(&Draw) -> Result<Option<Fault>, Trouble>,
) -> Result<(), Trouble> {
    while let Some(draw) = lane.draw() {
        if !until.sleep(draw.pause) {
            break;
        }
        if let Some(fault) = hit(&draw)? {
            record.add(fault);
        }
    }
    Ok(())
}
