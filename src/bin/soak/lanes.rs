//! The two lanes of faults: each draws what to do, does it, undoes it, and writes it down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clock::Moment;
use crate::cluster::Cluster;
use crate::crew::Worker;
use crate::fault::{Fault, FaultKind};
use crate::plan::{Draw, Lane};
use crate::trouble::Trouble;

/// How long a lane waits for its victim to be at a long hold, and how often it looks.
const AIMS_FOR: Duration = Duration::from_secs(2);
const AIM: Duration = Duration::from_millis(10);

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

/// What both lanes have done so far.
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

/// Kills and freezes servers, until it is over; all of them serve when this returns.
///
/// # Errors
/// When a server does not come back.
pub fn torment_servers(
    cluster: &Cluster,
    mut lane: Lane,
    until: &Until,
    record: &Record,
) -> Result<(), Trouble> {
    loop {
        let draw = lane.draw();
        if !until.sleep(draw.pause) {
            return Ok(());
        }
        // Whoever leads may have changed by itself.
        let leader = cluster.recover()?;
        let fault = hit_server(cluster, leader, &draw, until)?;
        record.add(fault);
    }
}

fn hit_server(
    cluster: &Cluster,
    leader: usize,
    draw: &Draw,
    until: &Until,
) -> Result<Fault, Trouble> {
    let members = cluster.ensemble.members();
    let followers: Vec<usize> = (0..members.len()).filter(|member| *member != leader).collect();
    let target = match draw.kind {
        FaultKind::LeaderKilled | FaultKind::LeaderFrozen => leader,
        _ => followers[draw.victim_of(followers.len())],
    };
    let from = Moment::now();
    match draw.kind {
        FaultKind::LeaderFrozen | FaultKind::FollowerFrozen => {
            members[target].freeze().map_err(Trouble::new("freeze a server"))?;
            until.sleep(draw.lasts);
            members[target].thaw().map_err(Trouble::new("thaw a server"))?;
        }
        FaultKind::QuorumDown => {
            members.iter().for_each(|member| member.kill());
            until.sleep(draw.lasts);
        }
        _ => {
            members[target].kill();
            until.sleep(draw.lasts);
        }
    }
    cluster.recover()?;
    Ok(Fault { kind: draw.kind, from, until: Moment::now(), target: target as u32 })
}

/// Kills, freezes and cuts off client processes, until it is over; all of them run and are
/// connected when this returns. `replace` starts a process for a seat.
///
/// # Errors
/// When a process can't be started, or does not follow a signal.
pub fn torment_clients(
    cluster: &Cluster,
    crew: &Mutex<Vec<Worker>>,
    mut lane: Lane,
    until: &Until,
    record: &Record,
    mut replace: impl FnMut(usize) -> Result<Worker, Trouble>,
) -> Result<(), Trouble> {
    loop {
        let draw = lane.draw();
        if !until.sleep(draw.pause) {
            return Ok(());
        }
        let seat = draw.victim_of(crew.lock().len());
        // A fault that hits a holder is worth more than one that hits a waiter.
        let aimed = Instant::now() + AIMS_FOR;
        while !crew.lock()[seat].is_holding() && Instant::now() < aimed {
            if !until.sleep(AIM) {
                return Ok(());
            }
        }
        let target = crew.lock()[seat].number;
        let from = Moment::now();
        match draw.kind {
            FaultKind::ClientKilled => {
                crew.lock()[seat].kill();
                until.sleep(draw.lasts);
                let successor = replace(seat)?;
                crew.lock()[seat] = successor;
            }
            FaultKind::ClientFrozen => {
                crew.lock()[seat].freeze().map_err(Trouble::new("freeze a client"))?;
                until.sleep(draw.lasts);
                crew.lock()[seat].thaw().map_err(Trouble::new("thaw a client"))?;
            }
            _ => {
                cluster.cut(seat);
                until.sleep(draw.lasts);
                cluster.heal(seat);
            }
        }
        record.add(Fault { kind: draw.kind, from, until: Moment::now(), target });
    }
}
