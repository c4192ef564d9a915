//! One client holds a lock, another waits for it, and something happens to the servers: many times over, with a
//! verdict by the order of events.
//!
//! A round is won when nothing but `Lost` is read from the old guard once its successor has acquired, and when the
//! old holder was told before. Both are looked at in this process by one clock, and each look begins after the
//! acquire has returned: a slow machine can make it hard to see two holders, but not make two of one. A notification
//! may come as late as the machine let other threads wait meanwhile.
//!
//! A round counts only if its fault took effect: what does not come in time (an election, say) makes a void round,
//! which is played again.

mod scene;
mod tally;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use test_support::{Stalls, TIMEOUT, eventually, options, scaled, session_id};
use zklock::{Client, Guard, GuardState, LostReason};
use zklock_testing::{Ensemble, Proxy, Server};

pub use self::scene::{Scene, sleep_until};
use self::tally::Tally;

const MEMBERS: usize = 3;
/// Between two looks at a guard.
const NAP: Duration = Duration::from_millis(1);

/// How fast servers and sessions live.
#[derive(Clone, Copy)]
pub struct Pace {
    /// The servers' `tickTime` in milliseconds.
    pub tick: u32,
    /// The session timeout of the holder, in ticks.
    pub session: u32,
    /// In ticks: after how long a silence leader and followers give each other up.
    pub sync_limit: u32,
}

impl Pace {
    pub fn tick(self) -> Duration {
        Duration::from_millis(self.tick.into())
    }

    pub fn session(self) -> Duration {
        self.tick() * self.session
    }
}

/// Servers and sessions as they are set up out of the box, and more patient ones.
pub const LONG_PACES: &[Pace] = &[
    Pace { tick: 2000, session: 5, sync_limit: 1 },
    Pace { tick: 2000, session: 15, sync_limit: 2 },
];

/// Where the holder's client is connected.
#[derive(Clone, Copy, PartialEq)]
pub enum Seat {
    Leader,
    Follower,
}

/// Which members the holder's client knows.
#[derive(Clone, Copy, PartialEq)]
pub enum Hosts {
    ItsOwn,
    All,
}

pub struct Scenario {
    pub name: &'static str,
    pub seat: Seat,
    pub hosts: Hosts,
    /// For `make test`, and for the long form (`scripts/partitions`) beside them.
    pub paces: &'static [Pace],
    pub long_paces: &'static [Pace],
    /// How many rounds `make test` plays, and `make test-all`.
    pub rounds: (usize, usize),
    /// What happens to the servers; says why it had no effect if it had none. What it breaks is mended for it.
    pub fault: fn(&Scene) -> Result<(), Void>,
}

/// Why a round does not count.
pub type Void = &'static str;

/// What came of a holder whose successor has acquired.
struct Ending {
    acquired: Instant,
    guard: Arc<Guard>,
    others: Guard,
    /// For how long the old guard was still read as held, and as not yet lost, after the acquire.
    held: Option<Duration>,
    alive: Option<Duration>,
}

/// Acquires, and looks at the old guard from then on until it is lost.
fn succeed(lock: &zklock::Lock, guard: Arc<Guard>, within: Duration) -> Ending {
    let others = lock.acquire().within(within).wait().expect("the successor acquires");
    let acquired = Instant::now();
    let mut ending = Ending { acquired, guard, others, held: None, alive: None };
    while acquired.elapsed() < within {
        let began = acquired.elapsed();
        match ending.guard.state() {
            GuardState::Lost => return ending,
            GuardState::Held => (ending.held, ending.alive) = (Some(began), Some(began)),
            _ => ending.alive = Some(began),
        }
        thread::sleep(NAP);
    }
    panic!("the old guard is not lost {within:?} after another has acquired");
}

impl Scenario {
    /// Plays the rounds; panics when two believed in one of them, or when the fault seldom took effect.
    pub fn play(&self) {
        let rounds = std::env::var("ZKLOCK_ROUNDS").ok().map(|rounds| rounds.parse().unwrap());
        let long = if rounds.is_some() { self.long_paces } else { &[] };
        let paces = self.paces.iter().chain(long);
        let tallies: Vec<Tally> = paces
            .map(|pace| self.play_at(*pace, rounds.unwrap_or(scaled(self.rounds.0, self.rounds.1))))
            .collect();
        let lines: Vec<String> = tallies.iter().map(Tally::line).collect();
        assert!(tallies.iter().all(Tally::is_clean), "{}:\n{}", Tally::COLUMNS, lines.join("\n"));
    }

    fn play_at(&self, pace: Pace, rounds: usize) -> Tally {
        // Those of all scenarios at once would take longer each than a start may.
        static STARTING: Mutex<()> = Mutex::new(());
        let starting = STARTING.lock();
        let ensemble = Server::builder()
            .start_timeout(3 * TIMEOUT)
            .tick_time(pace.tick())
            .min_session_timeout(2 * pace.tick())
            .sync_limit(pace.tick() * pace.sync_limit)
            .partitionable(true)
            .start_ensemble(MEMBERS)
            .unwrap();
        drop(starting);
        let doors: Vec<Proxy> =
            ensemble.addrs().iter().map(|addr| Proxy::start(addr).unwrap()).collect();
        let mut tally = Tally::new(self.name, pace);
        // As many void rounds as others, and a few.
        for round in 0..2 * rounds + 3 {
            match self.round(&ensemble, &doors, pace, round) {
                Ok((ending, told)) => tally.add(&ending, told),
                Err(void) => tally.add_void(void),
            }
            if tally.rounds() == rounds {
                break;
            }
        }
        println!("{}", tally.line());
        assert_eq!(tally.rounds(), rounds, "{}: too seldom had its fault an effect", self.name);
        tally
    }

    /// One round: how it ended, and when the old holder was told, had the machine not stood still meanwhile.
    fn round(
        &self,
        ensemble: &Ensemble,
        doors: &[Proxy],
        pace: Pace,
        round: usize,
    ) -> Result<(Ending, Instant), Void> {
        let (leader, followers) = settled(ensemble);
        let (seat, others) = match self.seat {
            Seat::Leader => (leader, followers),
            // The other one takes its turn.
            Seat::Follower => (followers[round % 2], vec![leader]),
        };
        let path = format!("/{}-{}-{round}", self.name.replace(' ', "-"), pace.session);
        let holder = self.seated(doors, seat, pace);
        let guard =
            Arc::new(holder.lock(&path).acquire().within(TIMEOUT).wait().expect("it is free"));
        let session = session_id(&holder);

        let lost = guard.lost();
        let within = TIMEOUT + 3 * pace.session();
        let stalls = Stalls::measure();
        let teller = thread::spawn(move || {
            let reason = lost.wait_timeout(within);
            (reason, Instant::now())
        });
        let hosts: Vec<String> =
            others.iter().map(|index| ensemble.member(*index).hosts()).collect();
        let other = options().connect(&hosts.join(",")).wait().unwrap();
        let lock = other.lock(&path);
        let successor = {
            let (lock, guard) = (lock.clone(), Arc::clone(&guard));
            thread::spawn(move || succeed(&lock, guard, within))
        };
        // A machine that is too slow for such sessions loses some before anything has happened.
        eventually("it waits", || {
            successor.is_finished() || lock.contenders().wait().unwrap().len() == 2
        });
        // On the side that goes on: there a lost wake-up would keep the successor waiting.
        let going_on: Vec<usize> = (0..MEMBERS).filter(|index| *index != seat).collect();
        let busy = ensemble.keep_busy_through(&going_on).unwrap();
        let scene = Scene {
            ensemble,
            doors,
            pace,
            round,
            leader,
            seat,
            holder: &holder,
            successor: &successor,
        };
        let faulty = match guard.state() {
            GuardState::Held => (self.fault)(&scene),
            _ => Err("it was not held any more"),
        };
        if faulty.is_err() {
            // The successor need not wait for a session that may go on.
            mend(ensemble, doors, leader, seat);
            drop(holder.close().wait());
        }
        let ending = successor.join().expect("the successor ends");
        let is_over = |index: usize| {
            let member = ensemble.member(index);
            member.mode().as_deref() == Some("leader")
                && member.sessions().is_ok_and(|alive| !alive.contains(&session))
        };
        if faulty.is_ok() {
            // By the word of the leader that counts.
            eventually("the holder's session is over", || going_on.iter().any(|i| is_over(*i)));
        }
        mend(ensemble, doors, leader, seat);
        drop(busy);
        let (reason, told) = teller.join().unwrap();
        let told = told - stalls.longest();
        faulty?;
        assert!(ending.others.fencing_token() > ending.guard.fencing_token());
        assert_eq!(reason, Some(LostReason::Session));
        Ok((ending, told))
    }

    /// A client at that member.
    fn seated(&self, doors: &[Proxy], seat: usize, pace: Pace) -> Client {
        let away: Vec<&Proxy> =
            (0..MEMBERS).filter(|index| *index != seat).map(|i| &doors[i]).collect();
        let hosts: Vec<String> = match self.hosts {
            Hosts::ItsOwn => vec![doors[seat].hosts()],
            Hosts::All => doors.iter().map(Proxy::hosts).collect(),
        };
        away.iter().for_each(|door| door.refuse());
        let client =
            options().session_timeout(pace.session()).connect(&hosts.join(",")).wait().unwrap();
        assert_eq!(client.session_timeout(), Some(pace.session()));
        away.iter().for_each(|door| door.heal());
        client
    }
}

/// Undoes whatever a fault has done.
fn mend(ensemble: &Ensemble, doors: &[Proxy], leader: usize, seat: usize) {
    for index in [leader, seat] {
        ensemble.member(index).thaw().unwrap();
        ensemble.rejoin(index).unwrap();
    }
    doors.iter().for_each(Proxy::heal);
}

/// The leader and its followers, once all members agree.
fn settled(ensemble: &Ensemble) -> (usize, Vec<usize>) {
    let mut modes = Vec::new();
    eventually("all members agree", || {
        modes = ensemble.members().iter().map(|member| member.mode().unwrap_or_default()).collect();
        let count = |what: &str| modes.iter().filter(|mode| *mode == what).count();
        (count("leader"), count("follower")) == (1, MEMBERS - 1)
    });
    let (leaders, followers): (Vec<usize>, Vec<usize>) =
        (0..MEMBERS).partition(|index| modes[*index] == "leader");
    (leaders[0], followers)
}
