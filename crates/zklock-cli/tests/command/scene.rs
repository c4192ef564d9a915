//! Two that want one lock, and the file that both of their commands append to. The order of its lines is the order
//! of what happened: a line of the first behind one of the second is a command that has outlived its lock.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use test_support::{Bench, Running};
use zklock_testing::{Scratch, eventually};

use super::program::start;

/// Of a first that is to lose its lock: long enough for a busy machine to do in time what is due within a twentieth
/// of it.
const SHORT: &str = "5s";
/// Of everyone who is to keep it, whatever else the machine does.
const LONG: &str = "30s";

pub struct Scene {
    pub bench: Bench,
    pub first: Running,
    scratch: Scratch,
    file: PathBuf,
}

/// How often each fault is played.
pub fn rounds() -> u32 {
    std::env::var("ZKLOCK_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"))
}

impl Scene {
    /// One holds by way of the proxy: `script` is its command, where `$LINES` stands for writing lines without an
    /// end. Another waits for the same lock.
    pub fn begin(script: &str) -> Scene {
        Scene::begin_with(script, SHORT, start)
    }

    /// As [`begin`](Scene::begin), where the first is not to lose its session.
    pub fn begin_to_stay(script: &str) -> Scene {
        Scene::begin_with(script, LONG, start)
    }

    /// As [`begin`](Scene::begin), with the first started otherwise.
    pub fn begin_by(script: &str, start_first: impl FnOnce(&[&str]) -> Running) -> Scene {
        Scene::begin_with(script, SHORT, start_first)
    }

    fn begin_with(
        script: &str,
        session: &str,
        start_first: impl FnOnce(&[&str]) -> Running,
    ) -> Scene {
        let bench = Bench::own();
        let scratch = Scratch::new(&std::env::temp_dir(), "zklock-run-").expect("a directory");
        let file = scratch.path().join("lines");
        let script = script.replace("$LINES", &lines("first", &file));
        let script = format!("export FILE={}; {script}", file.display());
        let hosts = bench.proxy.hosts();
        let path = bench.path.clone();
        let first = start_first(&[
            "run",
            "--hosts",
            &hosts,
            "--session-timeout",
            session,
            &path,
            "--",
            // Not dash: that is not stopped while a child of its is that has not become a program yet (vfork).
            "bash",
            "-c",
            &script,
        ]);
        let scene = Scene { bench, first, scratch, file };
        eventually("the first command writes", || scene.count("first") > 0);
        scene
    }

    /// The second, which waits in the queue.
    pub fn second(&self) -> Running {
        let (hosts, path) = (self.bench.server.hosts(), &self.bench.path);
        let script = lines("second", &self.file);
        let second = start(&[
            "run",
            "--hosts",
            &hosts,
            "--session-timeout",
            LONG,
            path,
            "--",
            "sh",
            "-c",
            &script,
        ]);
        eventually("the second waits", || self.bench.children().len() == 2);
        assert_eq!(self.count("second"), 0, "{}", self.text());
        second
    }

    /// The second comes to run; by then nothing of the first does, nor ever will. Gives the first's exit status.
    pub fn expect_handover(self, second: Running) -> Option<i32> {
        // For some time, in which a first that lived would write, too.
        self.expect_lines_of_the_second();
        // Whoever was stopped may go on, the command before anybody could end it.
        for pid in self.writers() {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.expect_lines_of_the_second();
        self.first.signal(Signal::CONT);
        self.expect_lines_of_the_second();
        let text = self.text();
        let late = text.lines().skip_while(|line| !line.starts_with("second"));
        let late: Vec<&str> = late.filter(|line| line.starts_with("first")).collect();
        assert!(late.is_empty(), "the first wrote after the second: {late:?}\n{text}");
        drop(second);
        let Scene { first, scratch, .. } = self;
        let status = first.end().code();
        drop(scratch);
        status
    }

    fn expect_lines_of_the_second(&self) {
        let so_far = self.count("second");
        eventually("the second command writes", || self.count("second") > so_far + 20);
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap_or_default()
    }

    pub fn count(&self, who: &str) -> usize {
        self.text().lines().filter(|line| line.starts_with(who)).count()
    }

    /// The processes that write for the first.
    pub fn writers(&self) -> Vec<Pid> {
        let text = self.text();
        let whole = text.lines().filter(|line| line.starts_with("first") && line.ends_with('.'));
        let mut pids: Vec<i32> =
            whole.filter_map(|line| line.split(' ').nth(1)?.parse().ok()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().filter_map(Pid::from_raw).collect()
    }

    /// The process that is between `zklock run` and the command.
    pub fn supervisor(&self) -> Pid {
        only_child(self.first.0.id())
    }
}

pub fn only_child(id: u32) -> Pid {
    let [child] = children(id)[..] else { panic!("{:?}", children(id)) };
    child
}

pub fn children(id: u32) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("Linux");
    let pids = children.split_whitespace();
    pids.map(|pid| Pid::from_raw(pid.parse().expect("a number")).expect("a process")).collect()
}

/// A script that appends lines without an end: who, which process, and the time since the machine was booted.
fn lines(who: &str, file: &std::path::Path) -> String {
    format!(
        "while :; do read up idle </proc/uptime; echo \"{who} $$ $up .\" >>{}; sleep 0.01; done",
        file.display()
    )
}
