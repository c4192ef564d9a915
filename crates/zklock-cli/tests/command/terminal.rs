//! Signals, and what a shell's job control does.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Signal, kill_process};
use test_support::{Bench, Running, shared};
use zklock_testing::eventually;

use super::program::{as_shells, has_namespaces, unhindered, zklock};
use super::scene::{Scene, only_child, rounds};

const LOST: Option<i32> = Some(124);

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_job_that_is_stopped_and_not_continued_loses_its_command() {
    for _ in 0..rounds() {
        let scene = Scene::begin("$LINES");
        let second = scene.second();
        scene.first.signal(Signal::TSTP);
        assert_eq!(scene.expect_handover(second), LOST);
    }
}

#[test]
fn a_job_that_is_stopped_and_soon_continued_goes_on() {
    let scene = Scene::begin_to_stay("$LINES");
    let pid = scene.first.0.id();
    scene.first.signal(Signal::TSTP);
    eventually("zklock is stopped, too", || state(pid) == Some('T'));
    scene.first.signal(Signal::CONT);
    let so_far = scene.count("first");
    eventually("it goes on", || scene.count("first") > so_far + 20);
    scene.first.signal(Signal::TERM);
    let Scene { first, .. } = scene;
    assert_eq!(as_shells(first.end()), Some(128 + 15));
}

/// zklock leads its session, and is in the foreground.
fn in_a_terminal_of_its_own(args: &[&str]) -> Running {
    in_a_terminal(&[env!("CARGO_BIN_EXE_zklock")], args)
}

/// As [`in_a_terminal_of_its_own`], for this program, with these arguments before the others.
fn in_a_terminal(program: &[&str], args: &[&str]) -> Running {
    let words = program.iter().chain(args);
    let quoted: Vec<String> =
        words.map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let line = format!("exec {}", quoted.join(" "));
    let mut command = unhindered("script");
    command.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    Running(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("util-linux"))
}

#[test]
fn ctrl_z_on_a_terminal_stops_the_job_and_does_not_keep_its_command_alive() {
    for _ in 0..rounds() {
        let mut keys = None;
        let scene = Scene::begin_by("$LINES", |args| {
            let mut running = in_a_terminal_of_its_own(args);
            keys = running.0.stdin.take();
            running
        });
        let second = scene.second();
        let mut keys = keys.expect("a keyboard");
        keys.write_all(b"\x1a").unwrap();
        eventually("the second command writes", || scene.count("second") > 0);
        // Its zklock is not the child of this process, and goes on when the terminal goes.
        drop(keys);
        let Scene { first, .. } = &scene;
        first.signal(Signal::KILL);
        scene.expect_handover(second);
    }
}

#[test]
fn the_end_of_its_terminal_ends_the_command_of_a_session_leader() {
    let scene = Scene::begin_by("$LINES", in_a_terminal_of_its_own);
    let second = scene.second();
    // The other end of the terminal, as a connection of ssh that is lost.
    scene.first.signal(Signal::KILL);
    scene.expect_handover(second);
}

#[test]
fn signals_are_handed_on_and_the_status_is_the_commands() {
    for (signal, name) in [(Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1")] {
        let scene = Scene::begin_to_stay(&format!("trap 'exit 41' {name}; $LINES"));
        scene.first.signal(signal);
        let Scene { first, .. } = scene;
        assert_eq!(first.end().code(), Some(41), "{name}");
    }
}

/// The leaders of both are outside, as those of a container's first process can be: they have no number inside.
#[test]
fn signals_are_handed_on_if_the_session_and_the_group_are_of_another_pid_namespace() {
    if !has_namespaces() {
        return;
    }
    let line = ["unshare", "-rfp", "--mount-proc", env!("CARGO_BIN_EXE_zklock")];
    let scene = Scene::begin_by("trap 'exit 41' HUP; $LINES", |args| in_a_terminal(&line, args));
    let unshare = only_child(scene.first.0.id());
    let zklock = only_child(unshare.as_raw_nonzero().get().unsigned_abs());
    kill_process(zklock, Signal::HUP).unwrap();
    let Scene { first, .. } = scene;
    assert_eq!(first.end().code(), Some(41));
}

/// As Ctrl-Z in a container: nobody would continue the command, which would keep the lock.
#[test]
fn a_first_process_of_a_namespace_continues_its_command_when_it_is_to_stop() {
    if !has_namespaces() {
        return;
    }
    let scene = Scene::begin_by("$LINES", |args| {
        let mut command = unhindered("unshare");
        command.args(["-rfp", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_zklock")]);
        Running(command.args(args).stdin(Stdio::null()).spawn().expect("util-linux"))
    });
    for _ in 0..2 {
        kill_process(only_child(scene.first.0.id()), Signal::TSTP).unwrap();
        eventually("the command is stopped, and continued", || {
            let so_far = scene.count("first");
            std::thread::sleep(std::time::Duration::from_millis(100));
            scene.count("first") > so_far
        });
    }
}

#[test]
fn a_signal_while_it_waits_leaves_no_claim_behind() {
    let scene = Scene::begin_to_stay("$LINES");
    let hosts = scene.bench.server.hosts();
    let args = ["run", "--hosts", &hosts, &scene.bench.path, "--", "echo", "ran"];
    let second = Running(zklock(&args).spawn().unwrap());
    eventually("it waits", || scene.bench.children().len() == 2);
    second.signal(Signal::TERM);
    assert_eq!(as_shells(second.end()), Some(128 + 15));
    assert_eq!(scene.bench.children().len(), 1);
}

/// Runs a line by a shell that has a terminal (not dash, which ends at Ctrl-C whatever its command makes of it), and types there once `prompt` is seen. Gives what was seen.
fn on_a_terminal(line: &str, prompt: &str, typed: &[u8]) -> String {
    let mut command = unhindered("script");
    command.args(["-qec", line, "/dev/null"]).env("SHELL", "/bin/bash");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("util-linux");
    let mut keys = child.stdin.take().expect("a keyboard");
    let mut screen = BufReader::new(child.stdout.take().expect("a screen"));
    let mut seen = String::new();
    while !seen.contains(prompt) {
        assert_ne!(screen.read_line(&mut seen).unwrap(), 0, "{seen}");
    }
    keys.write_all(typed).unwrap();
    screen.read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    seen
}

#[test]
fn the_command_has_the_terminal_and_the_shell_has_it_back_after_that() {
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let zklock = env!("CARGO_BIN_EXE_zklock");
    let script = "echo ready; read a; echo command has $a";
    let run = format!("'{zklock}' run --hosts {hosts} {path} -- sh -c '{script}'");
    let line = format!("{run}; read b; echo shell has $b");
    let seen = on_a_terminal(&line, "ready", b"first\nsecond\n");
    assert!(seen.contains("command has first"), "{seen}");
    assert!(seen.contains("shell has second"), "{seen}");
}

#[test]
fn ctrl_c_on_a_terminal_goes_to_the_command() {
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let zklock = env!("CARGO_BIN_EXE_zklock");
    let script = "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.1; done";
    let run =
        format!("'{zklock}' run --hosts {hosts} {path} -- sh -c \"{script}\"; echo status $?");
    let seen = on_a_terminal(&run, "ready", b"\x03");
    assert!(seen.contains("interrupted") && seen.contains("status 3"), "{seen}");
}

#[test]
fn a_signal_that_is_to_be_ignored_is_ignored() {
    let scene = Scene::begin_to_stay("$LINES");
    let (hosts, path) = (scene.bench.server.hosts(), &scene.bench.path);
    let zklock = env!("CARGO_BIN_EXE_zklock");
    let line = format!("trap '' HUP; exec '{zklock}' run --hosts {hosts} {path} -- true");
    let waiting = Running(Command::new("sh").args(["-c", &line]).spawn().unwrap());
    eventually("it waits", || scene.bench.children().len() == 2);
    waiting.signal(Signal::HUP);
    // Were it not ignored, it would be heard first.
    waiting.signal(Signal::TERM);
    assert_eq!(as_shells(waiting.end()), Some(128 + 15));
}

/// A shell with job control on a terminal of its own.
struct Shell {
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    _shell: Running,
}

impl Shell {
    fn start() -> Shell {
        let mut command = unhindered("script");
        command.args(["-qec", "bash --norc -i", "/dev/null"]).env("SHELL", "/bin/sh");
        command.env("PS1", "$ ").env("ZKLOCK", env!("CARGO_BIN_EXE_zklock"));
        command.env("ZKLOCK_HOSTS", shared().hosts()).env("LOCK", Bench::shared().path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("util-linux");
        let keys = child.stdin.take().expect("a keyboard");
        let mut out = child.stdout.take().expect("a screen");
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(length @ 1..) = out.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Shell { keys, screen, _shell: Running(child) }
    }

    /// Begins with a blank, which means nothing to a shell: a process that reads from the terminal may take one more
    /// character before it sees that it was stopped.
    fn types(&mut self, line: &str) {
        self.presses(&format!(" {line}\n"));
    }

    fn presses(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn shows(&self, text: &str) {
        let shows = || self.screen.lock().unwrap().contains(text);
        eventually(&format!("the screen shows {text:?}"), shows);
    }
}

#[test]
fn a_script_that_is_stopped_by_ctrl_z_gives_the_terminal_back_and_goes_on() {
    let mut shell = Shell::start();
    shell.types("bash -c '\"$ZKLOCK\" run $LOCK -c \"echo re\"\"ady; read a; echo has \\$a\"; echo ended $((2 + 3))'");
    shell.shows("ready");
    shell.presses("\x1a");
    shell.shows("Stopped");
    shell.types("echo shell $((6 * 7))");
    shell.shows("shell 42");
    shell.types("fg");
    shell.types("text");
    shell.shows("has text");
    shell.shows("ended 5");
}

#[test]
fn both_ends_of_a_pipe_may_read_from_the_terminal() {
    let mut shell = Shell::start();
    shell.types("\"$ZKLOCK\" run $LOCK -c 'read a; echo left has $a' | cat");
    shell.types("first");
    shell.shows("left has first");
    shell.types("\"$ZKLOCK\" run $LOCK -- sleep 600 | (read b </dev/tty; echo right has $b)");
    shell.types("second");
    shell.shows("right has second");
    shell.presses("\x03");
    shell.types("echo in | \"$ZKLOCK\" run $LOCK -c 'read c </dev/tty; echo it has $c'");
    shell.types("third");
    shell.shows("it has third");
}

#[test]
fn a_job_of_the_background_reads_from_the_terminal_once_it_is_in_the_foreground() {
    let mut shell = Shell::start();
    shell.types("\"$ZKLOCK\" run $LOCK -c 'read a; echo has $a' &");
    shell.types("while ! jobs | grep -q Stop; do sleep 0.1; done; echo stopped $((2 * 3))");
    shell.shows("stopped 6");
    shell.types("fg");
    shell.types("text");
    shell.shows("has text");
    shell.types("echo shell $((6 * 7))");
    shell.shows("shell 42");
}

#[test]
fn a_script_ends_at_ctrl_c() {
    let mut shell = Shell::start();
    shell.types(
        "bash -c '\"$ZKLOCK\" run $LOCK -c \"echo re\"\"ady; exec sleep 600\"; echo went on'",
    );
    shell.shows("ready");
    shell.presses("\x03");
    shell.types("echo status $?");
    shell.shows("status 130");
    assert!(!shell.screen.lock().unwrap().contains("\nwent on"));
}

#[test]
fn ctrl_c_comes_once() {
    let mut shell = Shell::start();
    let count = "n=0; trap 'n=$((n+1)); echo INT $n' INT; trap 'echo counted $n; exit' USR1";
    let script = format!("{count}; echo re''ady; while :; do sleep 0.1; done");
    shell.types(&format!("\"$ZKLOCK\" run $LOCK -- bash -c \"{}\"", script.replace('$', "\\$")));
    shell.shows("ready");
    shell.presses("\x03");
    shell.shows("INT 1");
    // A second that zklock had sent would come before this.
    shell.presses("\x1a");
    shell.shows("Stopped");
    shell.types("kill -USR1 %1; fg");
    shell.shows("counted 1");
}

#[test]
fn a_shell_that_is_killed_on_the_terminal_leaves_it_to_the_caller() {
    let mut shell = Shell::start();
    shell.types("bash -c '\"$ZKLOCK\" run $LOCK -- bash --norc -i; read a; echo script has $a'");
    shell.types("echo inner $((6 * 7))");
    shell.shows("inner 42");
    shell.types("kill -9 $$");
    shell.shows("Killed");
    shell.types("text");
    shell.shows("script has text");
}
