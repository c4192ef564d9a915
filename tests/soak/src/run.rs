//! A run, from the start of the servers to the evidence.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clock::{Moment, Sample};
use crate::cluster::Cluster;
use crate::evidence::{self, Run};
use crate::fault::{FaultKind, Victims};
use crate::lanes::{Record, Until, fail_clients, fail_servers, operate};
use crate::locks;
use crate::operator::Operator;
use crate::plan::{Lane, Timing};
use crate::processes::Worker;
use crate::progress::Progress;
use crate::shape::Shape;
use crate::trouble::Trouble;
use crate::worker::{CLOSE, Orders, PARK};

/// How long all go on when the faults are over, before they are told to finish.
const AFTERMATH: Duration = Duration::from_secs(3);
/// How long an acquire may take then.
const TIMEOUT: Duration = Duration::from_secs(60);
const CLOSES_WITHIN: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(100);

/// What a run is made with.
pub struct Settings<'a> {
    pub seed: u64,
    pub shape: Shape,
    /// The faults to make.
    pub kinds: &'a [FaultKind],
    pub time: Duration,
    pub processes: u16,
    pub sessions: u16,
    pub locks_of_each: u16,
    pub session_timeout: Duration,
}

impl Settings<'_> {
    fn lane(&self, victims: Victims) -> Lane {
        let Shape { tick, sync_limit, .. } = self.shape;
        let timing = Timing { session_timeout: self.session_timeout, sync_limit, tick };
        Lane::new(self.seed, victims, self.kinds, timing)
    }
}

/// A run that is over, with the servers still there: their logs go with them.
pub struct Ended {
    cluster: Cluster,
}

impl Ended {
    /// The members' log directories.
    pub fn logs(&self) -> Vec<PathBuf> {
        self.cluster.log_directories()
    }
}

/// Runs, and leaves the evidence in `directory`.
///
/// # Errors
/// Why it could not be done, or not to its end.
pub fn run(settings: &Settings, directory: &Path, until: &Until) -> Result<Ended, Trouble> {
    evidence::prepare(directory).map_err(Trouble::new(directory.display()))?;
    let locks = locks::all(settings.locks_of_each);
    let mut cluster = Cluster::start(settings.shape, usize::from(settings.processes))?;
    let operator = Operator::connect(&cluster.ensemble.hosts())?;
    operator.prepare(&locks)?;

    let start = Moment::now();
    let processes = Mutex::new(Vec::new());
    let mut recruits = Recruits { settings, directory, cluster: &cluster, started: 0 };
    for seat in 0..usize::from(settings.processes) {
        let worker = recruits.next(seat)?;
        processes.lock().push(worker);
    }
    until.begin(settings.time);
    let record = Record::default();
    let clock = Mutex::new(vec![Sample::take()]);
    // One lane that can't go on ends the others.
    let end = |outcome: Result<(), Trouble>| outcome.inspect_err(|_| until.end());
    let outcome = thread::scope(|scope| {
        scope.spawn(|| watch(&cluster, &processes, until, &record, &clock, settings.time));
        let beside = [
            scope.spawn(|| {
                let lane = settings.lane(Victims::Servers);
                end(fail_servers(&cluster, &processes, lane, until, &record))
            }),
            scope.spawn(|| {
                let lane = settings.lane(Victims::Locks);
                end(operate(&operator, &locks, lane, until, &record))
            }),
        ];
        let lane = settings.lane(Victims::Clients);
        // This thread lives as long as the program, as those who start processes have to.
        let clients =
            fail_clients(&cluster, &processes, lane, until, &record, |seat| recruits.next(seat));
        let joined = beside.map(|lane| {
            lane.join().unwrap_or_else(|_| Err(Trouble::new("a lane of faults")("a panic")))
        });
        joined.into_iter().chain([end(clients)]).collect::<Result<(), Trouble>>()
    });
    outcome?;
    cluster.recover()?;
    let calm = Moment::now();
    thread::sleep(AFTERMATH);
    let mut processes = processes.into_inner();
    let crashed = park(&mut processes, Instant::now() + TIMEOUT);
    // Sessions of clients that were killed may last a little longer.
    let left = operator.left(&locks, TIMEOUT)?;
    close(&mut processes);
    cluster.end();
    let mut clock = clock.into_inner();
    clock.push(Sample::take());
    let run = Run {
        seed: settings.seed,
        shape: settings.shape,
        operators: operator.sessions(),
        processes: settings.processes,
        sessions: settings.sessions,
        locks_of_each: settings.locks_of_each,
        session_timeout: settings.session_timeout,
        wait_limit: TIMEOUT,
        start,
        calm,
        end: Moment::now(),
        crashed,
        left,
        diverged: cluster.diverged(),
    };
    let faults = record.into_faults();
    evidence::write(directory, &run, &faults, &clock).map_err(Trouble::new(directory.display()))?;
    Ok(Ended { cluster })
}

/// Starts client processes, each with a number of its own.
struct Recruits<'a> {
    settings: &'a Settings<'a>,
    directory: &'a Path,
    cluster: &'a Cluster,
    started: u32,
}

impl Recruits<'_> {
    fn next(&mut self, seat: usize) -> Result<Worker, Trouble> {
        let Settings { processes, sessions, locks_of_each, session_timeout, seed, .. } =
            *self.settings;
        self.started += 1;
        // The first seats take what does not go into all of them.
        let extra = u16::from(seat < usize::from(sessions % processes));
        let journal = evidence::journal_file(self.directory, self.started);
        // A process that is killed before its first line has a journal too.
        std::fs::write(&journal, b"").map_err(Trouble::new(journal.display()))?;
        let orders = Orders {
            process: self.started,
            parent: rustix::process::getpid().as_raw_pid(),
            hosts: self.cluster.hosts(seat),
            journal: journal.display().to_string(),
            sessions: sessions / processes + extra,
            locks_of_each,
            session_timeout,
            seed,
        };
        Worker::start(&orders).map_err(Trouble::new("start a client"))
    }
}

/// Reads the clocks and shows how far the run is.
fn watch(
    cluster: &Cluster,
    processes: &Mutex<Vec<Worker>>,
    until: &Until,
    record: &Record,
    clock: &Mutex<Vec<Sample>>,
    time: Duration,
) {
    let progress = Progress::start(time);
    while !until.is_over() {
        thread::sleep(TICK);
        clock.lock().push(Sample::take());
        cluster.forget_traffic();
        let acquired = processes.lock().iter().map(Worker::acquired).sum();
        progress.show(acquired, record.count());
    }
}

/// Lets all finish what they are at. Gives the processes that have ended instead.
fn park(processes: &mut [Worker], deadline: Instant) -> Vec<u32> {
    for worker in processes.iter_mut() {
        // One that has ended is found below.
        let _ = worker.say(PARK);
    }
    let mut crashed = Vec::new();
    for worker in processes {
        while !worker.is_parked() && !worker.has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        if worker.has_ended() {
            crashed.push(worker.number);
        }
    }
    crashed
}

fn close(processes: &mut [Worker]) {
    for worker in processes.iter_mut() {
        let _ = worker.say(CLOSE);
    }
    let deadline = Instant::now() + CLOSES_WITHIN;
    for worker in processes {
        // One that hangs is killed; its journal shows where it hung.
        worker.wait_ended(deadline);
    }
}
