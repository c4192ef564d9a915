//! Faults of client processes and their links.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Record, Until, drive};
use crate::clock::Moment;
use crate::cluster::Cluster;
use crate::fault::{Fault, FaultKind};
use crate::plan::Lane;
use crate::processes::Worker;
use crate::trouble::Trouble;

/// How long a fault waits for its victim to be at a long hold, and how often it looks.
const AIMS_FOR: Duration = Duration::from_secs(2);
const AIM: Duration = Duration::from_millis(10);

/// Kills, freezes and cuts off client processes, until it is over; all of them run and are
/// connected when this returns. `replace` starts a process for a seat.
///
/// # Errors
/// When a process can't be started, or does not follow a signal.
pub fn fail_clients(
    cluster: &Cluster,
    processes: &Mutex<Vec<Worker>>,
    lane: Lane,
    until: &Until,
    record: &Record,
    mut replace: impl FnMut(usize) -> Result<Worker, Trouble>,
) -> Result<(), Trouble> {
    drive(lane, until, record, |draw| {
        let seat = draw.victim_of(processes.lock().len());
        // A fault that hits a holder is worth more than one that hits a waiter.
        let aimed = Instant::now() + AIMS_FOR;
        while !processes.lock()[seat].is_holding() && Instant::now() < aimed {
            if !until.sleep(AIM) {
                return Ok(None);
            }
        }
        let target = processes.lock()[seat].number;
        let from = Moment::now();
        match draw.kind {
            FaultKind::ClientKilled => {
                processes.lock()[seat].kill();
                until.sleep(draw.lasts);
                let successor = replace(seat)?;
                processes.lock()[seat] = successor;
            }
            FaultKind::ClientFrozen => {
                processes.lock()[seat].freeze().map_err(Trouble::new("freeze a client"))?;
                until.sleep(draw.lasts);
                processes.lock()[seat].thaw().map_err(Trouble::new("thaw a client"))?;
            }
            _ => {
                cluster.cut(seat);
                until.sleep(draw.lasts);
                cluster.heal(seat);
            }
        }
        Ok(Some(Fault { kind: draw.kind, from, until: Moment::now(), target }))
    })
}
