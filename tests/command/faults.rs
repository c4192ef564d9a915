//! Whatever becomes of zklock, its servers or the link to them: the first command is gone before the second starts.

use rustix::process::{Signal, kill_process};
use zklock_testing::eventually;

use super::scene::{Scene, rounds};

/// The lock was lost, and the command was ended.
const LOST: Option<i32> = Some(124);

/// A writer whose parent has died, in a session of its own, and another one.
const DOUBLE_FORK: &str = "(setsid sh -c '$LINES' &) ; $LINES";
/// One that wants to live.
const STUBBORN: &str = "trap '' TERM; $LINES";

/// Plays a fault round by round, and gives what the first zklock has ended with.
fn play(script: &str, fault: impl Fn(&Scene), expected: Option<i32>) {
    play_from(Scene::begin, script, fault, expected);
}

fn play_from(
    begin: impl Fn(&str) -> Scene,
    script: &str,
    fault: impl Fn(&Scene),
    expected: Option<i32>,
) {
    for round in 0..rounds() {
        let scene = begin(script);
        let second = scene.second();
        fault(&scene);
        assert_eq!(scene.expect_handover(second), expected, "round {round}");
    }
}

fn stop_the_command(scene: &Scene) {
    let writers = scene.writers();
    assert!(!writers.is_empty());
    for pid in writers {
        kill_process(pid, Signal::STOP).unwrap();
    }
}

#[test]
fn a_cut_link_ends_the_command_before_another_starts() {
    play("$LINES", |scene| scene.bench.proxy.cut(), LOST);
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_in_time() {
    play(STUBBORN, |scene| scene.bench.proxy.cut(), LOST);
}

#[test]
fn grandchildren_in_sessions_of_their_own_are_ended_too() {
    let both_write = |scene: &Scene| eventually("both write", || scene.writers().len() == 2);
    let cut = |scene: &Scene| {
        both_write(scene);
        scene.bench.proxy.cut();
    };
    play(DOUBLE_FORK, cut, LOST);
}

#[test]
fn a_frozen_zklock_does_not_keep_its_command_alive() {
    play("$LINES", |scene| scene.first.freeze(), LOST);
}

#[test]
fn a_frozen_command_does_not_go_on_when_the_lock_is_lost() {
    let freeze = |scene: &Scene| {
        stop_the_command(scene);
        scene.bench.proxy.cut();
    };
    play("$LINES", freeze, LOST);
}

#[test]
fn a_frozen_zklock_with_a_frozen_command_does_not_go_on_when_both_are_thawed() {
    let freeze = |scene: &Scene| {
        stop_the_command(scene);
        scene.first.freeze();
    };
    play("$LINES", freeze, LOST);
}

#[test]
fn kill_9_of_zklock_ends_the_command_and_all_that_came_of_it() {
    let kill = |scene: &Scene| {
        eventually("both write", || scene.writers().len() == 2);
        scene.first.signal(Signal::KILL);
    };
    play(DOUBLE_FORK, kill, None);
}

#[test]
fn kill_9_of_zklock_ends_a_command_that_ignores_sigterm() {
    play(STUBBORN, |scene| scene.first.signal(Signal::KILL), None);
}

#[test]
fn kill_9_of_the_supervisor_ends_the_command_before_the_lock_is_released() {
    let kill = |scene: &Scene| {
        eventually("both write", || scene.writers().len() == 2);
        kill_process(scene.supervisor(), Signal::KILL).unwrap();
    };
    play_from(Scene::begin_to_stay, DOUBLE_FORK, kill, Some(125));
}

#[test]
fn the_kernel_kills_the_command_with_its_supervisor() {
    let scene = Scene::begin_to_stay(STUBBORN);
    let writers = scene.writers();
    // Nobody else is there to do it.
    scene.first.freeze();
    kill_process(scene.supervisor(), Signal::KILL).unwrap();
    let is_alive = || writers.iter().any(|pid| is_running(*pid));
    eventually("the command is gone", || !is_alive());
    scene.first.thaw();
    let Scene { first, .. } = scene;
    assert_eq!(first.end().code(), Some(125));
}

/// Neither gone nor a zombie.
fn is_running(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn zklock_does_what_a_frozen_supervisor_does_not_do() {
    let freeze = |scene: &Scene| {
        kill_process(scene.supervisor(), Signal::STOP).unwrap();
        scene.bench.proxy.cut();
    };
    play("$LINES", freeze, LOST);
}

#[test]
fn a_killed_server_ends_the_command_and_the_second_runs_on_the_next() {
    for _ in 0..rounds() {
        let scene = Scene::begin("$LINES");
        let second = scene.second();
        scene.bench.server.kill();
        let still = || scene.writers().iter().any(|pid| kill_process(*pid, Signal::CONT).is_ok());
        eventually("the command is ended", || !still());
        scene.bench.server.start_again().unwrap();
        assert_eq!(scene.expect_handover(second), LOST);
    }
}

#[test]
fn a_link_that_is_reset_and_comes_back_costs_nothing() {
    let scene = Scene::begin_to_stay("$LINES");
    for _ in 0..3 {
        scene.bench.proxy.reset_all();
        let so_far = scene.count("first");
        eventually("it goes on", || scene.count("first") > so_far + 50);
    }
    assert_eq!(scene.writers().len(), 1, "{}", scene.text());
}

#[test]
fn a_deleted_claim_ends_the_command() {
    let scene = Scene::begin_to_stay(STUBBORN);
    let claim = scene.bench.children().remove(0);
    // A claim is watched once it was held for a moment.
    let watched = || !scene.bench.server.watches().unwrap().is_empty();
    eventually("the claim is watched", watched);
    scene.bench.delete(&format!("{}/{claim}", scene.bench.path));
    let Scene { first, .. } = scene;
    assert_eq!(first.end().code(), LOST);
}
