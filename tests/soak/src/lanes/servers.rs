//! Faults of servers.

use std::time::Duration;

use parking_lot::Mutex;

use super::{Record, Until, drive};
use crate::clock::Moment;
use crate::cluster::Cluster;
use crate::fault::{Fault, FaultKind};
use crate::plan::{Draw, Lane, Links};
use crate::processes::Worker;
use crate::trouble::Trouble;
use crate::worker::{GO_ON, HUSH};

/// How long a server that stutters goes on between two stops: it answers what has piled up, and has
/// hardly begun to see what it has missed.
const GASP: Duration = Duration::from_millis(10);
/// By then those who wait for a while only have given up.
const SILENT_AFTER: Duration = Duration::from_millis(1_000);

/// Kills and stops servers, until it is over; all of them serve when this returns.
///
/// # Errors
/// When a server does not come back.
pub fn fail_servers(
    cluster: &Cluster,
    processes: &Mutex<Vec<Worker>>,
    lane: Lane,
    until: &Until,
    record: &Record,
) -> Result<(), Trouble> {
    drive(lane, until, record, |draw| {
        // Whoever leads may have changed by itself.
        let mut leader = cluster.recover()?;
        if draw.in_silence {
            say_all(processes, HUSH);
            until.sleep(SILENT_AFTER);
            leader = cluster.recover()?;
        }
        let fault = hit(cluster, leader, draw, until);
        if draw.in_silence {
            say_all(processes, GO_ON);
        }
        fault.map(Some)
    })
}

fn say_all(processes: &Mutex<Vec<Worker>>, word: &str) {
    for worker in processes.lock().iter_mut() {
        // One that has just been killed has nothing to hear.
        let _ = worker.say(word);
    }
}

fn hit(cluster: &Cluster, leader: usize, draw: &Draw, until: &Until) -> Result<Fault, Trouble> {
    let members = cluster.ensemble.members();
    let followers: Vec<usize> = (0..members.len()).filter(|member| *member != leader).collect();
    let target = match draw.kind {
        FaultKind::FollowerKilled | FaultKind::FollowerFrozen | FaultKind::FollowerSevered => {
            followers[draw.victim_of(followers.len())]
        }
        _ => leader,
    };
    let from = Moment::now();
    match draw.kind {
        FaultKind::QuorumDown => {
            members.iter().for_each(|member| member.kill());
            until.sleep(draw.lasts);
        }
        FaultKind::LeaderKilled | FaultKind::FollowerKilled => {
            members[target].kill();
            until.sleep(draw.lasts);
        }
        FaultKind::FollowerSevered => sever(cluster, target, draw, until)?,
        _ => stop(cluster, target, draw, until)?,
    }
    cluster.recover()?;
    Ok(Fault { kind: draw.kind, from, until: Moment::now(), target: target as u32 })
}

/// Stops a server, and cuts off half of the clients with it, wherever they are connected.
fn sever(cluster: &Cluster, target: usize, draw: &Draw, until: &Until) -> Result<(), Trouble> {
    let member = cluster.ensemble.member(target);
    let ways = cluster.ways_of_half(draw.victim_of(4) % 2);
    std::thread::sleep(cluster.until_after_tick(draw.after_tick));
    member.freeze().map_err(Trouble::new("freeze a server"))?;
    ways.iter().for_each(|way| way.cut());
    until.sleep(draw.lasts);
    ways.iter().for_each(|way| way.heal());
    member.thaw().map_err(Trouble::new("thaw a server"))
}

/// Stops a server once or again and again, and cuts links when it goes on.
fn stop(cluster: &Cluster, target: usize, draw: &Draw, until: &Until) -> Result<(), Trouble> {
    let member = cluster.ensemble.member(target);
    for time in 0..draw.times {
        if time > 0 {
            std::thread::sleep(GASP);
        }
        member.freeze().map_err(Trouble::new("freeze a server"))?;
        until.sleep(draw.lasts);
        member.thaw().map_err(Trouble::new("thaw a server"))?;
    }
    if let Some(cut) = draw.cut {
        std::thread::sleep(cut.after);
        let ways = match cut.links {
            Links::ToVictim => cluster.ways_to(target),
            Links::OfHalf => cluster.ways_of_half(draw.victim_of(2)),
        };
        ways.iter().for_each(|way| way.cut());
        until.sleep(cut.lasts);
        ways.iter().for_each(|way| way.heal());
    }
    Ok(())
}
