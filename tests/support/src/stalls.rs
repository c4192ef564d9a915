//! How long a busy machine lets a thread wait that could run: by so much a notification may come late that was sent
//! in time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(2);

/// A machine that stands still again and again is not one to test on.
const ROUNDS: u32 = 10;

/// Plays a test that a machine which stands still for so long may spoil: a session ends, whose end would be a bug. It
/// may fail only in a round in which the machine did not.
pub fn unless_it_stalls<T>(for_long: Duration, play: impl Fn() -> T) -> T {
    let mut rounds = 1;
    loop {
        let stalls = Stalls::measure();
        let played = catch_unwind(AssertUnwindSafe(&play));
        let longest = stalls.longest();
        match played {
            Ok(played) => return played,
            Err(panic) if longest < for_long || rounds == ROUNDS => resume_unwind(panic),
            Err(_) => println!("played again: the machine stood still for {longest:?}"),
        }
        rounds += 1;
    }
}

/// Measures until it is asked, or dropped.
pub struct Stalls {
    wanted: Arc<()>,
    longest: JoinHandle<Duration>,
}

impl Stalls {
    /// Begins to measure.
    pub fn measure() -> Stalls {
        let wanted = Arc::new(());
        let by = Arc::downgrade(&wanted);
        let longest = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while by.strong_count() > 0 {
                let began = Instant::now();
                thread::sleep(NAP);
                longest = longest.max(began.elapsed() - NAP);
            }
            longest
        });
        Stalls { wanted, longest }
    }

    /// The longest wait since it began. A notification comes through two threads.
    pub fn longest(self) -> Duration {
        drop(self.wanted);
        2 * self.longest.join().unwrap()
    }
}
