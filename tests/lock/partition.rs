//! A network that splits the servers: a client can be on the side that knows less.

use std::time::{Duration, Instant};

use crate::rounds::{Hosts, LONG_PACES, Pace, Scenario, Scene, Seat, Void, sleep_until};

/// Afterwards the holder goes on reading, whatever the follower answers of it: once silent, otherwise in every way.
fn isolate(scene: &Scene) -> Result<(), Void> {
    const BETWEEN: Duration = Duration::from_millis(50);
    scene.ensemble.isolate(scene.seat).unwrap();
    let end = Instant::now() + 2 * scene.pace.session();
    while scene.round > 0 && !scene.has_successor() && Instant::now() < end {
        let next = Instant::now() + BETWEEN;
        let read = (
            scene.holder.exists("/"),
            scene.holder.get("/"),
            scene.holder.children("/"),
            scene.holder.get_acl("/"),
        );
        let _ = read.3.within(BETWEEN).wait();
        drop((read.0, read.1, read.2));
        sleep_until(next);
    }
    Ok(())
}

#[test]
fn a_holder_on_a_follower_without_its_leader_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "follower isolated",
        seat: Seat::Follower,
        hosts: Hosts::ItsOwn,
        // The leader expires the session of whom it does not hear of, long before the follower gives the leader up.
        paces: &[Pace { tick: 500, session: 6, sync_limit: 10 }],
        long_paces: LONG_PACES,
        rounds: (2, 2),
        fault: isolate,
    };
    scenario.play();
}

/// The worst moment for a follower to lose its leader: it has reported its sessions right before one of the moments
/// at which they expire, so that the deadline is rounded up by little; half a tick later, right before it would
/// report again, it has had an answer for the holder.
fn isolate_before_the_report(scene: &Scene) -> Result<(), Void> {
    let ms = |millis: usize| Duration::from_millis(millis as u64);
    let tick = scene.pace.tick();
    let report = scene.set_the_beat(ms(10 + 30 * (scene.round % 3)));
    sleep_until(report + tick / 2 - ms(10 + 16 * (scene.round % 5)));
    scene.holder.set("/", b"", None).wait().map_err(|_| "no answer to the holder")?;
    scene.ensemble.isolate(scene.seat).unwrap();
    // Reads go on being answered until something waits for the leader: that keeps the connection believed in.
    let end = report + 2 * tick;
    while Instant::now() < end && scene.holder.exists("/").within(tick / 20).wait().is_ok() {}
    Ok(())
}

#[test]
fn a_holder_of_the_shortest_session_on_a_cut_off_follower_is_told_before_another_acquires() {
    let scenario = Scenario {
        name: "follower isolated in time",
        seat: Seat::Follower,
        hosts: Hosts::ItsOwn,
        paces: &[Pace { tick: 2000, session: 2, sync_limit: 10 }],
        long_paces: &[],
        rounds: (2, 5),
        fault: isolate_before_the_report,
    };
    scenario.play();
}
