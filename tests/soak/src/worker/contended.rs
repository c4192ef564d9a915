//! What a session contends for, and what it holds then: of each sort of lock.

use std::time::Duration;

use fastrand::Rng;
use zklock::{Client, Election, Guard, Leadership, Lock, LockError, ReadWriteLock, Semaphore};

use crate::journal::Written;
use crate::locks::{LockName, PERMITS, Sort};

/// How many permits a semaphore may come to have: never fewer than anybody asks for.
const LIMITS: std::ops::RangeInclusive<u32> = 2..=5;
const MOST_PERMITS: u32 = 2;
/// One round in so many changes a semaphore's limit, one writes a lock that others read, and one hands a leadership over.
const CHANGES: u32 = 30;
const WRITES: u32 = 4;
const HANDS_OVER: u32 = 4;
/// To one of the next so many: who gives way goes to the end, and would never lead otherwise.
const NEXT: usize = 4;
/// How long a change or a hand-over may take: whoever waits for it holds nothing meanwhile.
const LIMIT: Duration = Duration::from_secs(1);

pub enum Contended {
    Lock(Lock),
    ReadWrite(ReadWriteLock),
    Semaphore(Semaphore),
    Election(Election),
}

impl Contended {
    pub fn new(client: &Client, name: &LockName) -> Contended {
        let path = name.path();
        match name.sort {
            Sort::ReadWrite => Contended::ReadWrite(client.read_write(&path)),
            Sort::Semaphore => Contended::Semaphore(client.semaphore(&path, PERMITS)),
            Sort::Election => Contended::Election(Election::new(client.lock(&path))),
            sort => Contended::Lock(client.lock(&path).strategy(sort.strategy())),
        }
    }

    /// What to ask for, and the part of the lock as it is journaled.
    pub fn draw(&self, rng: &mut Rng) -> (Wanted, String) {
        let (lock, part) = match self {
            Contended::Lock(lock) => (lock.clone(), String::new()),
            Contended::ReadWrite(lock) if rng.u32(..WRITES) == 0 => (lock.write(), "write".into()),
            Contended::ReadWrite(lock) => (lock.read(), "read".into()),
            Contended::Semaphore(semaphore) => {
                let permits = rng.u32(1..=MOST_PERMITS);
                (semaphore.permits(permits), permits.to_string())
            }
            Contended::Election(election) => {
                return (Wanted::Leadership(election.clone()), String::new());
            }
        };
        (Wanted::Lock(lock), part)
    }

    /// Now and then there come to be more permits or fewer.
    pub fn change(&self, rng: &mut Rng, begins: impl Fn(u32), ended: impl Fn(Written)) {
        if let Contended::Semaphore(semaphore) = self {
            if rng.u32(..CHANGES) == 0 {
                let limit = rng.u32(LIMITS);
                begins(limit);
                // It may be set all the same: the log says so.
                let set = semaphore.set_limit(limit).within(LIMIT).wait();
                ended(if set.is_ok() { Written::Done } else { Written::Unknown });
            }
        }
    }
}

pub enum Wanted {
    Lock(Lock),
    Leadership(Election),
}

/// What was acquired; dropping it releases.
pub enum Holding {
    Guard(Guard),
    Leads(Leadership, Election),
}

impl Holding {
    pub fn guard(&self) -> &Guard {
        match self {
            Holding::Guard(guard) => guard,
            Holding::Leads(leadership, _) => leadership.guard(),
        }
    }

    /// Releases, or resigns, sometimes in favour of another.
    ///
    /// # Errors
    /// Those of the release.
    pub fn release(self, rng: &mut Rng) -> Result<(), LockError> {
        match self {
            Holding::Guard(guard) => guard.release().wait(),
            Holding::Leads(leadership, election) => {
                if rng.u32(..HANDS_OVER) == 0 {
                    let others = election.participants().within(LIMIT).wait().unwrap_or_default();
                    if let Some(next) = rng.choice(others.iter().skip(1).take(NEXT)) {
                        // Whatever comes of it: where it leads on, it resigns below.
                        let _ = leadership.hand_over(next).within(LIMIT).wait();
                    }
                }
                leadership.resign().wait()
            }
        }
    }
}
