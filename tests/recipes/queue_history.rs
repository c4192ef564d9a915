//! The history of a work queue under faults, checked by a program that shares no code with the queue.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{Bench, eventually};
use zklock::zookeeper::SessionState;
use zklock::{Client, LockError};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule};

use crate::around;

const PRODUCERS: u64 = 2;
const CONSUMERS: u64 = 4;
/// For each producer.
const ELEMENTS: usize = 40;

/// The lines of `docs/history.md`, one text for each process in turn.
struct Recorder {
    start: Instant,
    lines: Mutex<String>,
}

/// The recorder of one process.
struct Process<'a> {
    recorder: &'a Recorder,
    name: String,
}

impl Process<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.recorder.start.elapsed().as_nanos()).unwrap()
    }

    fn add(&self, at: u64, element: &str, mut line: Value) {
        line["at"] = at.into();
        line["process"] = self.name.as_str().into();
        line["kind"] = "work".into();
        line["path"] = element.into();
        *self.recorder.lines.lock().unwrap() += &format!("{line}\n");
    }

    fn called(&self, at: u64, element: &str, operation: &str) {
        self.add(at, element, json!({ "event": "call", "operation": operation }));
    }

    fn returned(&self, element: &str, operation: &str, outcome: &str) {
        let line = json!({ "event": "return", "operation": operation, "outcome": outcome });
        self.add(self.now(), element, line);
    }

    fn puts_elements(&self, client: &Client, path: &str) {
        let queue = client.queue(path);
        for number in 0..ELEMENTS {
            let element = format!("{}-{number}", self.name);
            self.called(self.now(), &element, "put");
            let put = queue.put(element.as_str()).wait();
            self.returned(&element, "put", if put.is_ok() { "done" } else { "unknown" });
        }
    }

    /// Takes one element, if it gets one soon, and looks now and then whether it is still its own. Then it gives it back,
    /// or finishes it; and now and then it closes its client before.
    fn works(&self, client: &Client, path: &str, random: &mut fastrand::Rng) {
        let asked = self.now();
        let taken = client.queue(path).take().within(Duration::from_millis(500)).wait();
        let delivery = match taken {
            Ok(delivery) => delivery,
            Err(error) => return assert!(error.is_timeout(), "{error}"),
        };
        let element = String::from_utf8(delivery.data().to_vec()).unwrap();
        self.called(asked, &element, "acquire");
        let token = delivery.fencing_token();
        let got =
            json!({ "event": "return", "operation": "acquire", "outcome": "done", "token": token });
        self.add(self.now(), &element, got);
        for _ in 0..random.u32(1..6) {
            thread::sleep(Duration::from_millis(random.u64(1..12)));
            let at = self.now();
            if !delivery.is_lost() {
                self.add(at, &element, json!({ "event": "held", "token": token }));
            }
        }
        if random.u32(..4) == 0 {
            self.called(self.now(), &element, "release");
            drop(delivery);
            self.returned(&element, "release", "unknown");
            return;
        }
        self.called(self.now(), &element, "finish");
        if random.u32(..8) == 0 {
            client.close().wait().unwrap();
        }
        let outcome = match delivery.done().wait() {
            Ok(()) => "done",
            Err(LockError::NotHeld { .. }) => "refused",
            Err(_) => "unknown",
        };
        self.returned(&element, "finish", outcome);
    }
}

/// One thing that goes wrong, and is well again when this returns.
fn fault(bench: &Bench, random: &mut fastrand::Rng) {
    thread::sleep(Duration::from_millis(random.u64(20..120)));
    let frames = [Ops::from(Op::Multi), Ops::creates(), Ops::lists(), Op::Exists.into()];
    match random.u32(..5) {
        0 => bench.proxy.reset_all(),
        1 => {
            bench.proxy.cut();
            thread::sleep(Duration::from_millis(100));
            bench.proxy.heal();
        }
        number => {
            let way = if number == 2 { Rule::request } else { Rule::reply };
            let frame = way(frames[random.usize(..frames.len())].clone());
            bench.proxy.on(frame.path_prefix(around(bench)).once(), Action::Reset);
        }
    }
}

/// Sets it when dropped.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_history_under_faults_shows_each_element_with_one_consumer_at_a_time() {
    let bench = Bench::shared();
    let recorder = Recorder { start: Instant::now(), lines: Mutex::default() };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut producers = Vec::new();
        for number in 0..PRODUCERS + CONSUMERS {
            let (bench, recorder, is_over, path) = (&bench, &recorder, &is_over, &bench.path);
            if number < PRODUCERS {
                let process = Process { recorder, name: format!("producer{number}") };
                producers.push(scope.spawn(move || process.puts_elements(&bench.client(), path)));
                continue;
            }
            let process = Process { recorder, name: format!("consumer{number}") };
            let mut random = fastrand::Rng::with_seed(number);
            scope.spawn(move || {
                let mut client = bench.client();
                while !is_over.load(Ordering::SeqCst) {
                    if client.state() == SessionState::Closed {
                        client = bench.client();
                    }
                    process.works(&client, path, &mut random);
                }
            });
        }
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(0);
            while !is_over.load(Ordering::SeqCst) {
                fault(&bench, &mut random);
            }
            bench.proxy.clear_rules();
        });
        // Also if that fails: the others would be waited for.
        let _over = Sets(&is_over);
        eventually("all elements are removed", || {
            producers.iter().all(|producer| producer.is_finished()) && bench.children().is_empty()
        });
    });
    let lines = recorder.lines.into_inner().unwrap();
    let verdict = history::check(&lines).unwrap();
    assert!(verdict.violations.is_empty(), "{verdict}");
    let of = |operation: &str, outcomes: &[&str]| -> BTreeSet<String> {
        let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let chosen = all.filter(|line| {
            line["operation"] == operation
                && outcomes.iter().any(|outcome| line["outcome"] == *outcome)
        });
        chosen.map(|line| line["path"].as_str().unwrap().to_owned()).collect()
    };
    let lost: Vec<_> =
        of("put", &["done"]).difference(&of("finish", &["done", "unknown"])).cloned().collect();
    assert!(lost.is_empty(), "nobody has finished {lost:?}");
    assert!(verdict.holds["work"] > ELEMENTS * 2, "none was delivered again: {verdict}");
}
