//! A client process: many sessions that acquire, write and release, and a journal of what they
//! believed. It is this program, started again with its orders in the environment.
//!
//! On stdin it gets the orders to `hush` (whoever holds goes on holding, nobody writes) and to `go on`, to
//! `park` (finish what is under way, keep the sessions) and to `close`, and tells on stdout how many locks it has acquired and when it is parked. It dies with its parent.

mod contended;
mod orders;
mod session;

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::clock::Moment;
use crate::journal::{Event, Journal};
pub use orders::{Orders, VARIABLE};
use session::Session;

/// What the child says when all of its threads have finished what they were at.
pub const PARKED: &str = "parked";
/// What it says in front of a number of acquisitions.
pub const ACQUIRED: &str = "acquired ";
/// What it says in front of how many of its threads are at a long hold.
pub const HOLDING: &str = "holding ";
/// What it is told.
pub const PARK: &str = "park\n";
pub const CLOSE: &str = "close\n";
pub const HUSH: &str = "hush\n";
pub const GO_ON: &str = "go on\n";

const TELL_EVERY: Duration = Duration::from_millis(50);
/// How often a process looks whether it stands still, and what it takes for standing still.
const PULSE: Duration = Duration::from_millis(10);
const STALL: Duration = Duration::from_millis(80);
/// Whose line a stall is: nobody's.
const NO_THREAD: u16 = u16::MAX;

/// How far the process is; it only ever goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    Run,
    Park,
    Close,
}

/// What the threads of a process share.
struct Shared {
    orders: Orders,
    journal: Journal,
    phase: AtomicU8,
    hushed: AtomicBool,
    acquired: AtomicU64,
    parked: AtomicUsize,
    /// Threads at a long hold.
    holding: AtomicUsize,
}

impl Shared {
    fn has_come(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::SeqCst) >= phase as u8
    }

    fn is_hushed(&self) -> bool {
        self.hushed.load(Ordering::SeqCst) && !self.has_come(Phase::Park)
    }

    fn note(&self, at: Moment, thread: u16, event: Event) {
        self.journal.note(at, thread, event);
    }
}

/// The life of a client process.
pub fn main(orders: Orders) -> ExitCode {
    let parent = orders.parent;
    // A frozen process can't see that its parent is gone; this ends it all the same.
    let dies = set_parent_process_death_signal(Some(Signal::KILL));
    if dies.is_err() || getppid().map(|pid| pid.as_raw_pid()) != Some(parent) {
        return ExitCode::FAILURE;
    }
    let journal = match Journal::open(Path::new(&orders.journal)) {
        Ok(journal) => journal,
        Err(error) => {
            eprintln!("soak: {}: {error}", orders.journal);
            return ExitCode::FAILURE;
        }
    };
    let sessions = orders.sessions;
    let shared = Arc::new(Shared {
        orders,
        journal,
        phase: AtomicU8::new(Phase::Run as u8),
        hushed: AtomicBool::new(false),
        acquired: AtomicU64::new(0),
        parked: AtomicUsize::new(0),
        holding: AtomicUsize::new(0),
    });
    let start = |name: String, body: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name).spawn(body)
    };
    let background = [
        start("pulse".to_owned(), {
            let shared = Arc::clone(&shared);
            Box::new(move || feel_pulse(&shared))
        }),
        start("teller".to_owned(), {
            let shared = Arc::clone(&shared);
            Box::new(move || tell(&shared))
        }),
    ];
    let threads: Result<Vec<_>, _> = (0..sessions)
        .map(|number| {
            let session = Session::new(number, Arc::clone(&shared));
            start(format!("session {number}"), Box::new(move || session.live()))
        })
        .collect();
    let (Ok(threads), true) = (threads, background.iter().all(Result::is_ok)) else {
        eprintln!("soak: no more threads");
        return ExitCode::FAILURE;
    };
    listen(&shared);
    for thread in threads {
        if thread.join().is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Follows what it is told, up to the close.
fn listen(shared: &Shared) {
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok(word) if word == PARK.trim_end() => {
                shared.phase.store(Phase::Park as u8, Ordering::SeqCst);
            }
            Ok(word) if word == HUSH.trim_end() => shared.hushed.store(true, Ordering::SeqCst),
            Ok(word) if word == GO_ON.trim_end() => shared.hushed.store(false, Ordering::SeqCst),
            Ok(word) if word == CLOSE.trim_end() => {
                shared.phase.store(Phase::Close as u8, Ordering::SeqCst);
                return;
            }
            _ => break,
        }
    }
    // Nobody is there any more to tell the end of the test.
    std::process::exit(1);
}

fn tell(shared: &Shared) {
    let mut told_parked = false;
    loop {
        let mut out = std::io::stdout().lock();
        let acquired = shared.acquired.load(Ordering::Relaxed);
        let holding = shared.holding.load(Ordering::Relaxed);
        let mut said = writeln!(out, "{ACQUIRED}{acquired}\n{HOLDING}{holding}");
        let all = usize::from(shared.orders.sessions);
        if !told_parked && shared.parked.load(Ordering::SeqCst) == all {
            told_parked = true;
            said = said.and_then(|()| writeln!(out, "{PARKED}"));
        }
        if said.and_then(|()| out.flush()).is_err() {
            return;
        }
        drop(out);
        thread::sleep(TELL_EVERY);
    }
}

/// Writes down when the process stood still: it is the one that knows.
fn feel_pulse(shared: &Shared) {
    let mut last = Moment::now();
    loop {
        thread::sleep(PULSE);
        let now = Moment::now();
        if now.since(last) >= STALL {
            shared.note(now, NO_THREAD, Event::Stalled { since: last });
        }
        last = now;
    }
}
