//! What a run says, what it exits with, and what it leaves behind.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use test_support::{Bench, shared};
use zklock::Client;
use zklock_testing::wire::Op;
use zklock_testing::{Rule, Scratch, eventually};

use super::program::{as_shells, finish, start, zklock};
use super::scene::{only_child, rounds};

/// Runs a command under a lock on the shared server.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let hosts = shared().hosts();
    finish(&[&["run", "--hosts", &hosts][..], args].concat())
}

fn sh<'a>(path: &'a str, script: &'a str) -> [&'a str; 5] {
    [path, "--", "sh", "-c", script]
}

#[test]
fn a_parent_that_ignores_the_end_of_its_children_changes_nothing() {
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let mut command = Command::new("env");
    command.args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_zklock"), "run", "--hosts", &hosts]);
    let line = "grep SigIgn /proc/self/status; exit 3";
    let Output { status, stdout, .. } = command.args(sh(&path, line)).output().unwrap();
    assert_eq!(status.code(), Some(3));
    let ignored = String::from_utf8(stdout).unwrap();
    let mask = u64::from_str_radix(ignored.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(mask >> (Signal::CHILD.as_raw() - 1) & 1, 0, "{ignored}");
}

#[test]
fn the_status_is_the_commands_own() {
    let path = Bench::shared().path;
    for (script, status) in
        [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)]
    {
        let (code, _, err) = run(&sh(&path, script));
        assert_eq!((code, err.as_str()), (Some(status), ""), "{script}");
    }
    let (code, _, err) = run(&[&path, "--", "no-such-command"]);
    assert_eq!(code, Some(127));
    assert!(err.contains("no-such-command: No such file"), "{err}");
    let (code, _, err) = run(&[&path, "--", "/etc/passwd"]);
    assert_eq!(code, Some(126), "{err}");
}

#[test]
fn the_command_has_token_path_session_and_input() {
    let bench = Bench::shared();
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let file = scratch.path().join("token");
    let name = file.to_str().unwrap();
    let script = "echo $ZKLOCK_TOKEN $ZKLOCK_PATH $ZKLOCK_SESSION; cat";
    let args = ["--token-file", name, &bench.path, "--", "sh", "-c", script];
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let (code, out, err) = run(&args);
        assert_eq!(code, Some(0), "{err}");
        let words: Vec<&str> = out.split_whitespace().collect();
        assert_eq!((words.len(), words[1]), (3, bench.path.as_str()), "{out}");
        assert!(words[2].starts_with("0x"), "{out}");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", words[0]));
        tokens.push(words[0].parse::<i64>().unwrap());
    }
    assert!(tokens[0] < tokens[1], "{tokens:?}");
    bench.expect_empty();
}

#[test]
fn the_commands_input_and_output_are_those_of_zklock() {
    use std::io::Write;
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let mut command =
        super::program::zklock(&["run", "--hosts", &hosts, &path, "tr", "a-z", "A-Z"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"HELLO");
}

#[test]
fn a_conflict_has_a_status_of_its_own_and_names_who_has_the_lock() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let held =
        start(&["run", "--hosts", &hosts, "--label", "nightly", &bench.path, "sleep", "600"]);
    let client = bench.direct();
    let lock = bench.lock(&client);
    eventually("it is held", || lock.is_locked().wait().unwrap());
    let (code, out, err) = run(&["--no-wait", &bench.path, "echo", "ran"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains(&bench.path) && err.contains("nightly ("), "{err}");
    for wait in ["0", "0s"] {
        assert_eq!(run(&["-w", wait, &bench.path, "echo", "ran"]).0, Some(1), "{wait}");
    }
    let (code, out, err) = run(&["--wait", "1", "-E", "75", &bench.path, "echo", "ran"]);
    assert_eq!((code, out.as_str()), (Some(75), ""));
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let holder = format!("held by nightly ({host}, pid {})", held.0.id());
    let message = format!("zklock: {}: not acquired within 1s: {holder}\n", bench.path);
    assert_eq!(err, message);
    let (code, _, err) = run(&["-n", "-q", "-E", "0", &bench.path, "echo", "ran"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    held.signal(rustix::process::Signal::TERM);
    assert_eq!(as_shells(held.end()), Some(143));
    bench.expect_empty();
}

#[test]
fn what_a_command_leaves_behind_is_ended_before_the_release() {
    const LEFT: &str = r#"
        setsid sh -c 'trap "" TERM; echo $$ >pid; while :; do sleep 0.01; done' &
        until [ -s pid ] && [ -e next ]; do sleep 0.01; done
        exit 5"#;
    const NEXT: &str =
        "read pid <pid; if [ -e /proc/$pid/cwd ]; then echo alive; else echo gone; fi";
    let bench = Bench::with_directory();
    let (hosts, scratch) =
        (bench.server.hosts(), Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap());
    let start = |script: &str| {
        let run = ["run", "--hosts", &hosts, "--grace", "300ms", &bench.path, "-c", script];
        zklock(&run).current_dir(scratch.path()).spawn().unwrap()
    };
    let first = start(LEFT);
    eventually("it runs", || scratch.path().join("pid").exists());
    let next = start(NEXT);
    eventually("the next waits", || bench.children().len() == 2);
    fs::write(scratch.path().join("next"), "").unwrap();
    let first = first.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&first.stderr);
    assert_eq!(first.status.code(), Some(5), "{err}");
    assert!(err.contains("left behind") && err.contains("(sh"), "{err}");
    assert_eq!(next.wait_with_output().unwrap().stdout, b"gone\n");
    bench.expect_empty();
}

/// Each adds one to a file that nothing else protects, and its token to another: `ZKLOCK_ROUNDS=50` are 1,000 runs,
/// 200 at once.
#[test]
fn many_at_once_and_many_in_a_row_come_in_their_order_and_leave_nothing_behind() {
    let (at_once, in_a_row) = (4 * rounds().max(2), 5);
    let bench = Bench::shared();
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let [counter, tokens] = ["counter", "tokens"].map(|name| scratch.path().join(name));
    fs::write(&counter, "0").unwrap();
    let script = format!(
        "read n <{0}; sleep 0.005; echo $((n + 1)) >{0}; echo $ZKLOCK_TOKEN >>{1}",
        counter.display(),
        tokens.display()
    );
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                for _ in 0..in_a_row {
                    let (code, _, err) = run(&sh(&bench.path, &script));
                    assert_eq!(code, Some(0), "{err}");
                }
            });
        }
    });
    let all = at_once * in_a_row;
    assert_eq!(fs::read_to_string(&counter).unwrap().trim(), all.to_string());
    let tokens = fs::read_to_string(&tokens).unwrap();
    let tokens: Vec<i64> = tokens.lines().map(|token| token.parse().unwrap()).collect();
    assert_eq!(tokens.len(), all as usize);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    bench.expect_empty();
}

#[test]
fn the_end_of_a_run_needs_no_other_session() {
    let bench = Bench::shared();
    let hosts = bench.proxy.hosts();
    // One for the session, and one that asks for its end. To wait for that, a third is needed. (On a busy machine the
    // first may be given up.)
    eventually("two connections are enough", || {
        bench.proxy.clear_seen();
        assert_eq!(finish(&["run", "--hosts", &hosts, &bench.path, "true"]).0, Some(0));
        bench.proxy.count(&Rule::request(Op::Connect)) == 2
    });
}

#[test]
fn hosts_come_from_the_environment_and_from_a_file() {
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let run = |command: &mut std::process::Command| command.output().unwrap().status.code();
    let args = ["run", path.as_str(), "true"];
    assert_eq!(run(super::program::zklock(&args).env("ZKLOCK_HOSTS", &hosts)), Some(0));
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let file = scratch.path().join("zklock.toml");
    fs::write(&file, format!("hosts = \"{hosts}\"\nsession-timeout = \"6s\"\n")).unwrap();
    assert_eq!(run(super::program::zklock(&args).env("ZKLOCK_CONFIG", &file)), Some(0));
    assert_eq!(run(super::program::zklock(&args).env("XDG_CONFIG_HOME", scratch.path())), Some(0));
    // Of the working directory.
    for name in ["XDG_CONFIG_HOME", "HOME"] {
        let mut command = super::program::zklock(&args);
        assert_eq!(run(command.current_dir(scratch.path()).env(name, "")), Some(125), "{name}");
    }
}

/// Another file or variable may name other servers. Their locks exclude nobody here.
#[test]
fn settings_that_cannot_be_read_are_not_passed_over() {
    use std::os::unix::ffi::OsStrExt;
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let args = ["run", path.as_str(), "true"];
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let file = scratch.path().join("zklock.toml");
    fs::write(&file, b"hosts = \"\xff\"\n").unwrap();
    let no_text = std::ffi::OsStr::from_bytes(b"\xff");
    let cases = [
        ("XDG_CONFIG_HOME", scratch.path().as_os_str(), file.to_str().unwrap()),
        ("ZKLOCK_STORE", no_text, "ZKLOCK_STORE: not UTF-8"),
        ("ZKLOCK_TLS_CA", no_text, "ZKLOCK_TLS_CA: not UTF-8"),
    ];
    for (name, value, why) in cases {
        let mut command = super::program::zklock(&args);
        let output = command.env("ZKLOCK_HOSTS", &hosts).env(name, value).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{name}: {err}");
        assert!(err.contains(why), "{name}: {err}");
    }
}

#[test]
fn what_is_wrong_is_said_with_what_helps() {
    let path = Bench::shared().path;
    let none = finish(&["run", &path, "true"]);
    assert_eq!(none.0, Some(125));
    assert!(none.2.contains("ZKLOCK_HOSTS") && none.2.contains("/etc/zklock.toml"), "{}", none.2);
    let cases: [(&[&str], &str); 4] = [
        (&["locks/a", "true"], "a path starts with /"),
        (&["/a/", "true"], "does not end with /"),
        (&["--wait", "5 parsecs", "/a", "true"], "parsecs"),
        (&["--grace", "20s", "--session-timeout", "10s", &path, "true"], "session timeout"),
    ];
    for (args, why) in cases {
        let (code, _, err) = run(args);
        assert_eq!(code, Some(125), "{err}");
        assert!(err.contains(why), "{err}");
    }
    let nobody = ["run", "--hosts", "127.0.0.1:1", "--connect-timeout", "300ms", &path, "true"];
    let (code, out, err) = finish(&nobody);
    assert_eq!((code, out.as_str()), (Some(125), ""));
    assert!(err.contains("127.0.0.1:1"), "{err}");
}

#[test]
fn a_service_is_started_again_after_a_loss_and_not_after_its_own_end() {
    let bench = Bench::own();
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let file = scratch.path().join("starts");
    let (hosts, name) = (bench.proxy.hosts(), file.display());
    // The third start, and each later one, ends by itself.
    let script =
        format!("echo $ZKLOCK_TOKEN >>{name}; [ $(wc -l <{name}) -ge 3 ] && exit 9; sleep 600");
    let timeout = ["--session-timeout", "5s", "--restart", &bench.path, "--", "sh", "-c", &script];
    let service = start(&[&["run", "--hosts", &hosts][..], &timeout].concat());
    let starts = || fs::read_to_string(&file).unwrap_or_default().lines().count();
    for so_far in 1..3 {
        eventually("it is started", || starts() == so_far);
        bench.proxy.cut();
        let connected: Client = bench.direct();
        let lock = bench.lock(&connected);
        eventually("its session is over", || !lock.is_locked().wait().unwrap());
        bench.proxy.heal();
    }
    assert_eq!(service.end().code(), Some(9));
    let text = fs::read_to_string(&file).unwrap();
    let tokens: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

#[test]
fn systemd_is_told_once_the_lock_is_held() {
    let path = Bench::shared().path;
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let name = scratch.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&name).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let hosts = shared().hosts();
    let args = ["run", "--hosts", &hosts, "--notify", &path, "sh", "-c", "echo :$NOTIFY_SOCKET"];
    let output = super::program::zklock(&args).env("NOTIFY_SOCKET", &name).output().unwrap();
    assert_eq!(output.stdout, b":\n", "the command can't say it a second time");
    let mut message = [0; 64];
    let length = socket.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1\n");
}

#[test]
fn shared_runs_go_on_together_and_exclude_others() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let reader = ["run", "--hosts", &hosts, "--shared", &bench.path, "sleep", "600"];
    let readers = [start(&reader), start(&reader)];
    let client = bench.direct();
    let lock = bench.lock(&client);
    let holding = || {
        let contenders = lock.contenders().wait().unwrap();
        contenders.iter().filter(|contender| contender.held_since.is_some()).count()
    };
    eventually("both hold it", || holding() == 2);
    assert_eq!(run(&["--no-wait", &bench.path, "true"]).0, Some(1));
    let (code, out, _) = finish(&["ls", "--json", "--hosts", &hosts, &bench.path]);
    assert_eq!(code, Some(0));
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["kind"], &found["holders"]), (&"read".into(), &2.into()));
    assert_eq!(finish(&["ask", "--hosts", &hosts, &bench.path]).0, Some(0));
    for reader in readers {
        assert_eq!(reader.end().code(), Some(124));
    }
    assert_eq!(run(&["--no-wait", &bench.path, "true"]).0, Some(0));
}

#[test]
fn so_many_run_at_a_time_as_there_are_permits() {
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let with =
        |permits| ["run", "--hosts", &hosts, "--permits", permits, &bench.path, "sleep", "600"];
    let two = [start(&with("1/3")), start(&with("2/3"))];
    let client = bench.direct();
    let semaphore = client.semaphore(&bench.path, 3).permit();
    let holding = || {
        let contenders = semaphore.contenders().wait().unwrap();
        contenders.iter().filter(|contender| contender.held_since.is_some()).count()
    };
    eventually("both hold some", || holding() == 2);
    assert_eq!(run(&["--no-wait", "--permits", "1/3", &bench.path, "true"]).0, Some(1));
    drop(two);
}

#[test]
fn a_wait_of_zero_acquires_a_lock_that_is_free() {
    let path = Bench::shared().path;
    for wait in ["0", "5"] {
        assert_eq!(run(&["--wait", wait, &path, "echo", "ran"]).1, "ran\n", "{wait}");
    }
}

#[test]
fn zklock_ends_by_the_signal_that_its_command_died_of() {
    use std::os::unix::process::ExitStatusExt;
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    for signal in [2, 9, 15] {
        let script = format!("kill -{signal} $$");
        let output = zklock(&["run", "--hosts", &hosts, &path, "-c", &script]).output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
    }
}

#[test]
fn the_options_of_flock_are_understood() {
    let path = Bench::shared().path;
    for options in [
        &["-s", "-w", "5"][..],
        &["-x", "--timeout", "0.5"],
        &["--exclusive", "--nonblock"],
        &["-e", "--conflict-exit-code", "7"],
        &["--verbose"],
    ] {
        let (code, out, err) = run(&[options, &[&path, "-c", "echo ran"]].concat());
        assert_eq!((code, out.as_str()), (Some(0), "ran\n"), "{options:?}: {err}");
    }
    assert_eq!(run(&["-s", "-x", &path, "true"]).0, Some(125), "both");
}

#[test]
fn a_line_of_the_shell_is_run_as_one() {
    let bench = Bench::shared();
    let (code, out, err) = run(&[&bench.path, "-c", "echo $((6 * 7)) | tr 2 3; exit 4"]);
    assert_eq!((code, out.as_str()), (Some(4), "43\n"), "{err}");
    assert_eq!(run(&[&bench.path]).0, Some(125), "neither a command nor a line");
    assert_eq!(run(&[&bench.path, "-c", "true", "true"]).0, Some(125), "both");
}

#[test]
fn who_waits_says_for_whom() {
    use std::io::{BufRead, BufReader};
    let bench = Bench::shared();
    let hosts = bench.server.hosts();
    let held = start(&["run", "--hosts", &hosts, "--label", "x", &bench.path, "sleep", "600"]);
    let client = bench.direct();
    let lock = bench.lock(&client);
    eventually("it is held", || lock.is_locked().wait().unwrap());
    let mut waiting = zklock(&["run", "--hosts", &hosts, "--verbose", &bench.path, "true"]);
    let mut waiting = test_support::Running(waiting.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(waiting.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let start = format!("zklock: {}: waiting for x (", bench.path);
    assert!(line.starts_with(&start), "{line}");
    drop(held);
    waiting.signal(rustix::process::Signal::TERM);
    assert_eq!(as_shells(waiting.end()), Some(143));
}

/// Starts `zklock run`, and waits until its command has said that it is ready.
fn ready(args: &[&str]) -> test_support::Running {
    use std::io::{BufRead, BufReader};
    let mut child = zklock(args).stderr(std::process::Stdio::inherit()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    test_support::Running(child)
}

/// The processor time of a process, in hundredths of a second.
fn used(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
    fields.skip(11).take(2).map(|time| time.parse::<u64>().unwrap()).sum()
}

#[test]
fn neither_who_holds_nor_who_waits_keeps_the_processor_busy() {
    let (hosts, bench) = (shared().hosts(), Bench::shared());
    let holds = ready(&["run", "--hosts", &hosts, &bench.path, "-c", "echo ready; exec sleep 600"]);
    let waits = start(&["run", "--hosts", &hosts, &bench.path, "true"]);
    eventually("it waits", || bench.children().len() == 2);
    let pids = [&holds, &waits].map(|run| run.0.id());
    let pids = pids.map(|pid| [pid, only_child(pid).as_raw_nonzero().get().unsigned_abs()]);
    for pid in pids.concat() {
        let before = used(pid);
        std::thread::sleep(Duration::from_secs(1));
        let share = used(pid) - before;
        assert!(share < 30, "{share} % of a processor");
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_the_time_that_was_chosen() {
    let (hosts, path) = (shared().hosts(), Bench::shared().path);
    let script = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    let run = ready(&["run", "--hosts", &hosts, "--kill-after", "0.2", &path, "-c", script]);
    run.signal(rustix::process::Signal::TERM);
    assert_eq!(as_shells(run.end()), Some(128 + 9));
}

/// What a service appends to a file while it is started and ended.
struct Service {
    scratch: Scratch,
}

impl Service {
    fn new() -> Service {
        Service { scratch: Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap() }
    }

    fn file(&self) -> String {
        self.scratch.path().join("log").display().to_string()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.file()).unwrap_or_default()
    }
}

#[test]
fn a_service_is_started_again_after_a_crash_and_not_after_sigterm() {
    let (hosts, path, service) = (shared().hosts(), Bench::shared().path, Service::new());
    let run = |last: &str| {
        let file = service.file();
        let script =
            format!("echo started >>{file}; [ $(wc -l <{file}) = 1 ] && kill -9 $$; {last}");
        finish(&["run", "--hosts", &hosts, "--restart", &path, "-c", &script])
    };
    let (code, _, err) = run("exit 9");
    assert_eq!((code, service.log().as_str()), (Some(9), "started\nstarted\n"), "{err}");
    assert!(err.contains("by signal 9"), "{err}");
    assert_eq!(run("kill -15 $$").0, Some(143));
    assert_eq!(service.log().lines().count(), 3);
}

#[test]
fn a_service_may_wait_for_each_turn_as_long_as_for_the_first() {
    const WAIT: Duration = Duration::from_secs(3);
    let (bench, service) = (Bench::with_directory(), Service::new());
    let (hosts, file) = (bench.server.hosts(), service.file());
    let script = format!("echo started >>{file}; exec sleep 600");
    let args = ["--restart", "--wait", "3", &bench.path, "-c", &script];
    let run = start(&[&["run", "--hosts", &hosts][..], &args].concat());
    let starts = || service.log().lines().count();
    eventually("it is started", || starts() == 1);
    std::thread::sleep(WAIT);
    let client = bench.direct();
    let lock = bench.lock(&client);
    let other = test_support::acquire_in_background(&lock);
    let claims = || lock.contenders().wait().unwrap();
    eventually("another waits", || claims().len() == 2);
    bench.delete(&claims()[0].path);
    let other = other.join().unwrap().unwrap();
    eventually("it waits for its next turn", || claims().len() == 2);
    other.release().wait().unwrap();
    eventually("it is started again", || starts() == 2);
    run.signal(Signal::TERM);
    assert_eq!(as_shells(run.end()), Some(143));
}

#[test]
fn a_service_that_was_asked_to_end_before_a_loss_is_not_started_again() {
    let (bench, service) = (Bench::shared(), Service::new());
    let (hosts, file) = (bench.proxy.hosts(), service.file());
    let script = format!(
        "trap 'echo asked >>{file}' TERM; echo started >>{file}; while :; do sleep 0.1; done"
    );
    let timeout = ["--session-timeout", "5s", "--restart", &bench.path, "-c", &script];
    let run = start(&[&["run", "--hosts", &hosts][..], &timeout].concat());
    eventually("it is started", || service.log().contains("started"));
    run.signal(rustix::process::Signal::TERM);
    eventually("it is asked", || service.log().contains("asked"));
    bench.proxy.cut();
    // Once for the signal of the user, and once because the lock is about to be lost.
    assert_eq!(run.end().code(), Some(124));
    assert_eq!(service.log().matches("started").count(), 1, "{}", service.log());
}

#[test]
fn what_is_lost_before_the_command_was_started_is_not_said_to_be_ended() {
    let bench = Bench::shared();
    let (client, hosts) = (bench.direct(), bench.proxy.hosts());
    let lock = bench.lock(&client);
    let ours = lock.acquire().wait().unwrap();
    let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").unwrap();
    let token = scratch.path().join("token");
    let args = ["run", "--hosts", &hosts, "--session-timeout", "3s", "--token-file"];
    let command = [token.to_str().unwrap(), &bench.path, "echo", "ran"];
    let child = zklock(&[&args[..], &command].concat()).spawn().unwrap();
    eventually("it waits", || bench.children().len() == 2);
    rustix::process::kill_process(only_child(child.id()), rustix::process::Signal::STOP).unwrap();
    ours.release().wait().unwrap();
    // By its own word: the servers know it earlier.
    eventually("it holds", || token.exists());
    bench.proxy.cut();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(124), &b""[..]), "{err}");
    assert!(err.contains("was not started") && !err.contains("was ended"), "{err}");
}

#[test]
fn a_session_timeout_that_was_not_granted_is_said() {
    let path = Bench::shared().path;
    let (code, _, err) = run(&["--session-timeout", "2h", &path, "true"]);
    assert_eq!(code, Some(0));
    let says = "asked for 2h, got ";
    assert!(err.contains(says) && err.contains(" (maxSessionTimeout): after a crash, "), "{err}");
    let (_, _, err) = run(&["-q", "--session-timeout", "2h", &path, "true"]);
    assert_eq!(err, "");
}
