//! A leader that stood still, or was cut off, while the others elected another one: for a while it goes on answering
//! its clients. What it says of their sessions is worth nothing, for the new leader counts them by its own clock.

use std::thread;
use std::time::{Duration, Instant};

use crate::rounds::{Hosts, LONG_PACES, Pace, Scenario, Scene, Seat, Void, sleep_until};

/// The C client gives a server up that is silent for two thirds of the session timeout: until shortly before, in
/// hundredths of it.
const SILENCE: u32 = 61;

fn longest_silence(scene: &Scene) -> Duration {
    scene.pace.session() * SILENCE / 100
}

/// Freezes the leader right after it has answered the holder, until another one leads, and for as long as the
/// holder's client waits for it.
fn freeze_until_deposed(scene: &Scene) -> Result<(), Void> {
    let answered = scene.wait_answer(scene.pace.session())?;
    scene.leader().freeze().unwrap();
    let thaw = answered + longest_silence(scene);
    scene.wait_deposed(thaw)?;
    sleep_until(thaw);
    Ok(())
}

fn freeze_and_cut(scene: &Scene) -> Result<(), Void> {
    freeze_until_deposed(scene)?;
    scene.leader().thaw().unwrap();
    // It answers what has come meanwhile, often before it finds that nobody follows it. The answers take a moment to
    // pass the door; it hangs up soon.
    let _ = scene.wait_answer(scene.pace.tick() / 4);
    thread::sleep(Duration::from_millis(10 + 10 * (scene.round as u64 % 3)));
    scene.door().cut();
    Ok(())
}

#[test]
fn a_holder_whose_leader_answers_after_it_was_deposed_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "leader frozen",
        seat: Seat::Leader,
        hosts: Hosts::ItsOwn,
        paces: &[Pace { tick: 500, session: 16, sync_limit: 2 }],
        long_paces: LONG_PACES,
        rounds: (1, 3),
        fault: freeze_and_cut,
    };
    scenario.play();
}

fn stutter(scene: &Scene) -> Result<(), Void> {
    // Time for an answer, and for no more.
    const GASP: Duration = Duration::from_millis(10);
    scene.bar_the_ways_out();
    freeze_until_deposed(scene)?;
    let end = Instant::now() + 4 * scene.pace.session();
    while !scene.has_successor() {
        if Instant::now() > end {
            return Err("nobody acquires");
        }
        scene.leader().thaw().unwrap();
        let _ = scene.wait_answer(5 * GASP);
        thread::sleep(GASP);
        scene.leader().freeze().unwrap();
        let next = Instant::now() + longest_silence(scene);
        while Instant::now() < next && !scene.has_successor() {
            thread::sleep(GASP);
        }
    }
    Ok(())
}

#[test]
fn a_holder_whose_leader_stutters_after_it_was_deposed_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "leader stuttering",
        seat: Seat::Leader,
        hosts: Hosts::All,
        paces: &[Pace { tick: 500, session: 16, sync_limit: 2 }],
        long_paces: LONG_PACES,
        rounds: (1, 3),
        fault: stutter,
    };
    scenario.play();
}

fn freeze_isolate_and_cut(scene: &Scene) -> Result<(), Void> {
    // Nobody can tell the leader that nobody follows it any more: it counts the ticks, of those in which it ran.
    scene.ensemble.isolate(scene.leader).unwrap();
    freeze_and_cut(scene)
}

#[test]
fn a_holder_whose_leader_stood_still_beyond_a_partition_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "leader frozen and isolated",
        seat: Seat::Leader,
        hosts: Hosts::ItsOwn,
        paces: &[Pace { tick: 500, session: 16, sync_limit: 2 }],
        long_paces: LONG_PACES,
        rounds: (1, 3),
        fault: freeze_isolate_and_cut,
    };
    scenario.play();
}

/// A leader that is cut off leads for half a tick or a tick longer than its followers wait for it (it counts whole ticks,
/// and which it is depends on how they fall), and they need the time of an election. What it answers meanwhile is of
/// use to nobody but a holder whose session is short, up to three ticks or so, and only if the new leader has to round
/// up the session's deadline by little.
fn isolate(scene: &Scene) -> Result<(), Void> {
    /// Or a little less: just before a deadline.
    const ELECTION: Duration = Duration::from_millis(500);
    let tick = scene.pace.tick();
    // Both sides count from the last ping.
    let ping = scene.set_the_beat(ELECTION + Duration::from_millis(150 * (scene.round as u64 % 3)));
    thread::sleep(tick / 16);
    scene.ensemble.isolate(scene.leader).unwrap();
    let limit = ping + tick * scene.pace.sync_limit;
    sleep_until(limit + tick * 15 / 16);
    let _ = scene.holder.sync("/").within(tick / 32).wait();
    scene.door().cut();
    scene.wait_deposed(limit + 10 * tick)
}

#[test]
fn a_holder_whose_leader_is_cut_off_from_its_followers_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "leader isolated",
        seat: Seat::Leader,
        hosts: Hosts::ItsOwn,
        paces: &[Pace { tick: 2000, session: 2, sync_limit: 2 }],
        long_paces: &[
            Pace { tick: 2000, session: 5, sync_limit: 2 },
            Pace { tick: 2000, session: 15, sync_limit: 2 },
        ],
        rounds: (2, 4),
        fault: isolate,
    };
    scenario.play();
}
