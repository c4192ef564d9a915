//! Whatever becomes of zklock, its servers or the link to them: the first command is gone before the second starts.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper, test_kill_process};
use test_support::{Bench, Running, shared};
use zklock_testing::{Scratch, eventually};

use super::program::{as_shells, finish, has_namespaces, is_running, start, unhindered, zklock};
use super::scene::{Scene, children, rounds};

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
fn kill_9_of_zklock_asks_the_command_first() {
    let scene = Scene::begin("trap 'echo asked >>$FILE; exit' TERM; $LINES");
    scene.first.signal(Signal::KILL);
    eventually("it is asked", || scene.text().contains("asked"));
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

#[test]
fn a_stopped_supervisor_goes_on_to_end_the_command_when_zklock_is_killed() {
    // A parent in the session of the supervisor: with one elsewhere, the kernel continues what is stopped in any case.
    set_child_subreaper(Some(getpid())).unwrap();
    let kill = |scene: &Scene| {
        kill_process(scene.supervisor(), Signal::STOP).unwrap();
        scene.first.signal(Signal::KILL);
    };
    play(DOUBLE_FORK, kill, None);
}

/// Each process of it lives for a few milliseconds, in a session of its own.
const TWENTY_CHAINS: &str = r#"perl -MPOSIX -e '
    for (1 .. 20) {
        next if fork;
        while (1) {
            exit if fork;
            setsid;
            open my $lines, ">>", $ENV{FILE};
            syswrite $lines, "first $$ 0 .\n";
            select undef, undef, undef, 0.005;
        }
    }
' & $LINES"#;

fn chains_write(scene: &Scene) {
    eventually("the chains write", || scene.writers().len() > 100);
}

#[test]
fn programs_that_start_others_and_end_do_not_outlive_the_lock() {
    let cut = |scene: &Scene| {
        chains_write(scene);
        scene.bench.proxy.cut();
    };
    play(TWENTY_CHAINS, cut, LOST);
}

#[test]
fn without_control_groups_they_do_not_either() {
    let start = |args: &[&str]| {
        let mut command = unhindered("unshare");
        let line = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
        command.args(["-rm", "sh", "-c", line, "sh", env!("CARGO_BIN_EXE_zklock")]).args(args);
        Running(command.stdin(Stdio::null()).spawn().expect("util-linux"))
    };
    if !has_namespaces() {
        return;
    }
    let cut = |scene: &Scene| {
        chains_write(scene);
        let command = scene.writers()[0].as_raw_nonzero();
        let groups = std::fs::read_to_string(format!("/proc/{command}/cgroup"));
        assert!(!groups.is_ok_and(|groups| groups.contains("zklock-")));
        scene.bench.proxy.cut();
    };
    play_from(|script| Scene::begin_by(script, start), TWENTY_CHAINS, cut, LOST);
}

/// It goes to the end of that namespace when its parent dies, and not to the supervisor.
#[test]
fn what_has_gone_into_another_pid_namespace_does_not_outlive_the_lock() {
    if !rustix::process::geteuid().is_root() || !has_namespaces() || !has_control_groups() {
        return;
    }
    let mut command = unhindered("unshare");
    let namespace =
        Running(command.args(["-p", "-f", "--kill-child", "sleep", "600"]).spawn().unwrap());
    let id = namespace.0.id();
    let init = || {
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.trim().parse::<u32>().ok()
    };
    eventually("the namespace is there", || init().is_some());
    let init = init().unwrap();
    let script = format!("nsenter -t {init} -p sh -c '($LINES) & exit' & $LINES");
    let cut = |scene: &Scene| {
        let writes = || scene.text().lines().filter(|line| line.starts_with("first ")).count() > 20;
        eventually("both write", || scene.writers().len() == 2 && writes());
        scene.bench.proxy.cut();
    };
    play(&script, cut, LOST);
}

/// Whether a process can make control groups here that can be killed. Then `zklock` has to.
fn has_control_groups() -> bool {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::")) else { return false };
    let can = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].into_iter().any(|mount| {
        let group = format!("{mount}{own}/test-{}", std::process::id());
        let is_made = std::fs::create_dir(&group).is_ok();
        let can = is_made && std::fs::exists(format!("{group}/cgroup.kill")).unwrap();
        is_made && std::fs::remove_dir(&group).is_ok() && can
    });
    if can {
        let (hosts, path) = (shared().hosts(), Bench::shared().path);
        let (_, out, err) = finish(&["run", "--hosts", &hosts, &path, "cat", "/proc/self/cgroup"]);
        assert!(out.contains("/zklock-"), "{out}{err}");
    }
    can
}

#[test]
fn no_control_group_is_left_even_of_a_run_within_that_was_killed() {
    if !has_control_groups() {
        return;
    }
    let (hosts, path, zklock) =
        (shared().hosts(), Bench::shared().path, env!("CARGO_BIN_EXE_zklock"));
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let file = scratch.path().join("supervisor").display().to_string();
    let within = format!("cat /proc/self/cgroup; echo $PPID >{file}; exec sleep 600");
    let within = within.replace('$', "\\$");
    let script = format!(
        "'{zklock}' run --hosts {hosts} {path}-within -c \"{within}\" & until [ -s {file} ]; do sleep 0.01; done
        kill -STOP $!; kill -9 $(cat {file}); kill -9 $!"
    );
    let (_, out, err) = finish(&["run", "--hosts", &hosts, &path, "-c", &script]);
    let group = out.lines().find_map(|line| line.strip_prefix("0::/")).expect(&err);
    assert_eq!(group.matches("zklock-").count(), 2, "{group}");
    let top = group.rsplit_once('/').expect("one within another").0;
    for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        assert!(!std::fs::exists(format!("{mount}/{top}")).unwrap(), "{mount}/{top} is left");
    }
}

#[test]
fn no_control_group_is_left_of_a_run_that_never_had_the_lock() {
    if !has_control_groups() {
        return;
    }
    let bench = Bench::shared();
    let (hosts, client) = (bench.server.hosts(), bench.direct());
    let (_, out, err) =
        finish(&["run", "--hosts", &hosts, &bench.path, "cat", "/proc/self/cgroup"]);
    let group = out.lines().find_map(|line| line.strip_prefix("0::/")).expect(&err);
    let top = group.rsplit_once("zklock-").expect("a control group").0;
    let _ours = bench.lock(&client).acquire().wait().unwrap();
    let run = start(&["run", "--hosts", &hosts, "--no-wait", &bench.path, "true"]);
    let groups =
        ["", "/unified"].map(|mount| format!("/sys/fs/cgroup{mount}/{top}zklock-{}", run.0.id()));
    assert_eq!(run.end().code(), Some(1));
    let is_left = || groups.iter().any(|group| std::fs::exists(group).unwrap());
    eventually("the control group is gone", || !is_left());
}

#[test]
fn what_waits_to_become_the_command_may_be_killed() {
    let bench = Bench::shared();
    let (hosts, client) = (bench.server.hosts(), bench.direct());
    let ours = bench.lock(&client).acquire().wait().unwrap();
    let run = zklock(&["run", "--hosts", &hosts, &bench.path, "echo", "ran"]).spawn().unwrap();
    let children = |parent: u32| {
        let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let list = list.unwrap_or_default();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
    };
    let waiting = || children(run.id()).first().and_then(|pid| children(*pid).first().copied());
    eventually("it waits", || bench.children().len() == 2 && waiting().is_some());
    let first = waiting().unwrap();
    kill_process(rustix::process::Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
    eventually("it is gone", || waiting().is_none());
    ours.release().wait().unwrap();
    let output = run.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"ran\n"[..]), "{err}");
}

#[test]
fn where_proc_shows_other_processes_nothing_is_started() {
    if !has_namespaces() {
        return;
    }
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let run = |options: &[&str]| {
        let mut command = unhindered("unshare");
        command.args(options).args([env!("CARGO_BIN_EXE_zklock"), "run", "--hosts", &hosts]);
        command.args([&path, "echo", "ran"]).output().unwrap()
    };
    // Without --fork, the supervisor would be the first process in there.
    for options in ["-rfp", "-rp"] {
        let refused = run(&[options]);
        let err = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), &*refused.stdout), (Some(125), &b""[..]), "{err}");
        assert!(err.contains("/proc") && err.contains("--mount-proc"), "{err}");
    }
    assert_eq!(run(&["-rfp", "--mount-proc"]).stdout, b"ran\n");
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
fn with_restart_a_lock_that_is_lost_with_the_supervisor_is_taken_again_with_another() {
    let scene = Scene::begin_by("$LINES", restarting);
    let second = scene.second();
    scene.first.freeze();
    kill_process(scene.supervisor(), Signal::KILL).unwrap();
    eventually("the second runs", || scene.count("second") > 0);
    scene.first.thaw();
    eventually("the first waits again", || scene.bench.children().len() == 2);
    let so_far = scene.count("first");
    second.signal(Signal::TERM);
    second.end();
    eventually("the first writes again", || scene.count("first") > so_far);
    let text = scene.text();
    let mut who: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    who.dedup();
    assert_eq!(who, ["first", "second", "first"], "{text}");
    scene.first.signal(Signal::TERM);
    let Scene { first, .. } = scene;
    assert_eq!(as_shells(first.end()), Some(128 + Signal::TERM.as_raw()));
}

#[test]
fn with_restart_a_supervisor_that_is_killed_costs_a_restart_and_no_more() {
    let scene = Scene::begin_by("$LINES", restarting);
    let writers = scene.writers();
    kill_process(scene.supervisor(), Signal::KILL).unwrap();
    eventually("another command writes", || scene.writers().len() > writers.len());
    assert!(!writers.into_iter().any(is_running));
    scene.first.signal(Signal::TERM);
    let Scene { first, .. } = scene;
    assert_eq!(as_shells(first.end()), Some(128 + Signal::TERM.as_raw()));
}

fn restarting(args: &[&str]) -> Running {
    let (run, rest) = args.split_first().unwrap();
    start(&[&[*run, "--restart"], rest].concat())
}

/// They are those of a shell that became `zklock run`, and an orphan of one of them.
#[test]
fn children_that_zklock_did_not_start_are_reaped_and_left_alone() {
    const SHELL: &str = r#"
        sleep 600 & echo $!
        sleep 600 & last=$!; echo $last
        sleep 600 & first=$!; echo $first
        (while kill -0 $first; do sleep 0.01; done; sleep 600 & echo $!) 2>/dev/null & echo $!
        exec "$@""#;
    let bench = Bench::with_directory();
    let hosts = bench.server.hosts();
    let args = ["run", "--hosts", &hosts, "--session-timeout", "30s", &bench.path, "sleep", "600"];
    let run = zklock(&args);
    let mut shell = unhindered("sh");
    shell.args(["-c", SHELL, "sh"]).arg(run.get_program()).args(run.get_args());
    let mut shell = Running(shell.stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(shell.0.stdout.take().unwrap()).lines();
    let mut pid = || Pid::from_raw(said.next().unwrap().unwrap().parse().unwrap()).unwrap();
    let [child, last, first, parent] = [(); 4].map(|()| pid());
    eventually("the lock is acquired", || bench.children().len() == 1);
    let is_reaped = |pid: Pid| test_kill_process(pid).is_err();
    kill_process(first, Signal::KILL).unwrap();
    let orphan = pid();
    eventually("its parent is reaped", || is_reaped(parent));
    kill_process(last, Signal::KILL).unwrap();
    eventually("the last is reaped", || is_reaped(last));
    let others = [child, orphan];
    let children = children(shell.0.id());
    let supervisor = children.iter().find(|child| !others.contains(child));
    assert_eq!(children.len(), 3);
    kill_process(*supervisor.unwrap(), Signal::KILL).unwrap();
    assert_eq!(shell.end().code(), Some(125));
    for other in others {
        assert!(is_running(other));
        kill_process(other, Signal::KILL).unwrap();
    }
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
