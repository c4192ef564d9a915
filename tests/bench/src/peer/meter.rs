//! What a contestant in Rust counts and prints: `begin`, `end`, and a line of JSON.

use std::io::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use serde_json::json;

use super::Task;
use crate::Trouble;

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;
/// In nanoseconds; nothing that is measured takes longer.
const MINUTE: u64 = 60_000_000_000;

/// Shared by all who contend.
pub struct Meter {
    epoch: Instant,
    phase: AtomicU8,
    acquisitions: AtomicU64,
    /// In nanoseconds since `epoch`.
    last_release: AtomicU64,
    arrivals: Option<Arrivals>,
    all: Mutex<Histogram<u64>>,
}

/// Each contender asks at times that are fixed beforehand, however long it has to wait: what comes late because
/// the one before took long has waited since then.
struct Arrivals {
    every: Duration,
    contenders: u32,
    /// How many contenders have begun, whose times lie evenly between each other's.
    begun: AtomicU32,
}

impl Arrivals {
    /// As many in a second, of each contender.
    const RATE: &str = "BENCH_RATE";

    fn wanted(contenders: usize) -> Option<Arrivals> {
        let rate: f64 = std::env::var(Arrivals::RATE).ok()?.parse().ok()?;
        let contenders = u32::try_from(contenders).ok()?.max(1);
        let every = Duration::try_from_secs_f64(1.0 / rate).ok()?;
        Some(Arrivals { every, contenders, begun: AtomicU32::new(0) })
    }
}

/// From where a latency counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From the acquire's own beginning.
    Asked,
    /// From the release of the holder before, if it came after the acquire's beginning.
    Released,
}

/// One contender's own.
pub struct Recorder<'a> {
    meter: &'a Meter,
    since: Since,
    /// When it asks next, if that is fixed.
    next: Option<Instant>,
    own: Histogram<u64>,
}

/// What is counted while the time runs.
struct Window {
    count: u64,
    time: Duration,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MINUTE, 3).expect("bounds and digits that a histogram can have")
}

impl Meter {
    pub fn of(task: &Task) -> Meter {
        Meter {
            epoch: Instant::now(),
            phase: AtomicU8::new(WARMING),
            acquisitions: AtomicU64::new(0),
            last_release: AtomicU64::new(0),
            arrivals: Arrivals::wanted(task.n),
            all: Mutex::new(histogram()),
        }
    }

    /// Runs the time while others contend.
    fn run(&self, seconds: f64) -> Window {
        std::thread::sleep(Duration::from_secs_f64(seconds / 4.0));
        let (from, before) = (Instant::now(), self.acquisitions.load(Ordering::SeqCst));
        self.phase.store(MEASURING, Ordering::SeqCst);
        say("begin");
        std::thread::sleep(Duration::from_secs_f64(seconds));
        self.phase.store(OVER, Ordering::SeqCst);
        let count = self.acquisitions.load(Ordering::SeqCst) - before;
        let window = Window { count, time: from.elapsed() };
        say("end");
        window
    }

    fn report(&self, window: &Window) {
        let all = self.all.lock();
        let micros = |quantile| all.value_at_quantile(quantile) as f64 / 1_000.0;
        let mut line = json!({ "count": window.count, "seconds": window.time.as_secs_f64() });
        if !all.is_empty() {
            line["p50_us"] = micros(0.5).into();
            line["p99_us"] = micros(0.99).into();
            line["p999_us"] = micros(0.999).into();
        }
        say(&line.to_string());
    }

    /// Runs `body` for each contender on a thread of its own for as long as the task says, and reports.
    pub fn with_threads<C: Send>(
        task: &Task,
        since: Since,
        contenders: Vec<C>,
        body: impl Fn(C, &mut Recorder) -> Result<(), Trouble> + Sync,
    ) -> Result<(), Trouble> {
        let (meter, body) = (&Meter::of(task), &body);
        std::thread::scope(|scope| {
            let threads: Vec<_> = contenders
                .into_iter()
                .map(|contender| scope.spawn(move || body(contender, &mut meter.recorder(since))))
                .collect();
            let window = meter.run(task.seconds);
            for thread in threads {
                thread.join().map_err(|_| "a thread panicked".to_owned())??;
            }
            meter.report(&window);
            Ok(())
        })
    }

    /// Runs the time on a thread that may block, while tasks contend; report with what it gives.
    pub fn run_beside(
        &self,
        task: &Task,
        join: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let window = self.run(task.seconds);
        join()?;
        self.report(&window);
        Ok(())
    }

    pub fn recorder(&self, since: Since) -> Recorder<'_> {
        let next = self.arrivals.as_ref().map(|arrivals| {
            let place = arrivals.begun.fetch_add(1, Ordering::Relaxed);
            self.epoch + arrivals.every * place / arrivals.contenders
        });
        let since = if next.is_some() { Since::Asked } else { since };
        Recorder { meter: self, since, next, own: histogram() }
    }
}

impl Recorder<'_> {
    pub fn is_over(&self) -> bool {
        self.meter.phase.load(Ordering::Relaxed) == OVER
    }

    /// When to ask for the lock the next time, from which the time counts that this takes.
    pub fn asks_at(&mut self) -> Instant {
        let (Some(next), Some(arrivals)) = (&mut self.next, &self.meter.arrivals) else {
            return Instant::now();
        };
        let at = *next;
        *next += arrivals.every;
        at
    }

    /// As [`asks_at`](Recorder::asks_at); comes back when it is time.
    pub fn wait_to_ask(&mut self) -> Instant {
        let at = self.asks_at();
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        at
    }

    /// The lock was acquired just now. Call it before anything else.
    pub fn got(&mut self, asked: Instant) {
        let got = Instant::now();
        let meter = self.meter;
        meter.acquisitions.fetch_add(1, Ordering::Relaxed);
        if meter.phase.load(Ordering::Relaxed) != MEASURING {
            return;
        }
        let since = match self.since {
            Since::Asked => asked,
            Since::Released => {
                meter.epoch + Duration::from_nanos(meter.last_release.load(Ordering::SeqCst))
            }
        };
        if since >= asked {
            self.own.saturating_record(nanos(got.saturating_duration_since(since)));
        }
    }

    /// The lock is released next. Call it after everything else.
    pub fn releases(&self) {
        self.meter.last_release.store(nanos(self.meter.epoch.elapsed()), Ordering::SeqCst);
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        // Both have the same bounds.
        let _ = self.meter.all.lock().add(&self.own);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A line to the one who has started us; if it is gone, nobody listens.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
