//! Many clients of one store take turns at a few locks while its server, its links, its disk and its clock fail.
//!
//! Holders read and write a register that refuses older tokens, so lost updates show wherever two hold with the same
//! token or with tokens out of order. Each look at a guard that says `Held` also looks at the guards of all others.
//! `ZKLOCK_SECONDS` says how long each store is tried.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use parking_lot::Mutex;
use test_support::{TIMEOUT, eventually, scaled};
use zklock::{Guard, GuardState, LockError, Store};

pub const CLIENTS: usize = 4;
const THREADS_OF_EACH: usize = 2;
const LOCKS: [&str; 2] = ["/locks/endurance/a", "/locks/endurance/b"];
/// Fewer turns show nothing.
const FEWEST: u64 = 20;
/// The session timeout of all clients.
pub const LEASE: Duration = Duration::from_secs(1);

/// Something that fails, and is mended again when this returns.
pub struct Fault<'a> {
    name: &'static str,
    /// The documentation says that two may hold for up to a lease after it.
    two_may_hold: bool,
    play: Box<dyn Fn(&mut Rng) + 'a>,
}

impl<'a> Fault<'a> {
    pub fn new(name: &'static str, play: impl Fn(&mut Rng) + 'a) -> Fault<'a> {
        Fault { name, two_may_hold: false, play: Box::new(play) }
    }

    /// One after which the documentation says that two may hold for up to a lease.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    pub fn after_which_two_may_hold(mut self) -> Fault<'a> {
        self.two_may_hold = true;
        self
    }
}

/// Up to so many hundredths of a lease.
pub fn pause(dice: &mut Rng, hundredths: u32) -> Duration {
    LEASE * dice.u32(..hundredths) / 100
}

/// A number that a lock protects. It refuses tokens older than the newest it has seen.
#[derive(Default)]
struct Register {
    newest: i64,
    value: u64,
    written: u64,
    refused: u64,
    believers: Vec<(u64, Arc<Guard>)>,
}

impl Register {
    fn admits(&mut self, token: i64) -> bool {
        let admits = token >= self.newest;
        self.newest = self.newest.max(token);
        self.refused += u64::from(!admits);
        admits
    }
}

#[derive(Default)]
struct Course {
    registers: HashMap<&'static str, Mutex<Register>>,
    turns: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
    /// Two that held at once, and what had failed then.
    overlaps: Mutex<Vec<String>>,
    documented: AtomicU64,
    /// The last fault, and until when two may hold because of it.
    failing: Mutex<(&'static str, Option<Instant>)>,
    is_over: AtomicBool,
}

impl Course {
    /// One turn: acquires, reads, waits a little, writes, releases.
    fn turn(&self, store: &Store, path: &'static str, dice: &mut Rng) {
        let guard = match store.lock(path).acquire().within(LEASE * 3).wait() {
            Ok(guard) => Arc::new(guard),
            Err(LockError::TimedOut { .. } | LockError::Store { .. }) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Err(error) => panic!("acquire: {error:?}"),
        };
        let register = &self.registers[path];
        let token = guard.fencing_token();
        let (me, seen) = {
            let mut register = register.lock();
            let me = self.turns.fetch_add(1, Ordering::Relaxed);
            register.believers.push((me, Arc::clone(&guard)));
            (me, register.admits(token).then_some(register.value))
        };
        let until = Instant::now() + Duration::from_millis(dice.u64(..20));
        loop {
            self.look_at_others(&register.lock(), me, &guard);
            if Instant::now() >= until || guard.is_lost() {
                break;
            }
            thread::sleep(Duration::from_millis(3));
        }
        {
            let mut register = register.lock();
            if let Some(seen) = seen.filter(|_| register.admits(token)) {
                register.value = seen + 1;
                register.written += 1;
            }
            self.look_at_others(&register, me, &guard);
            register.believers.retain(|(believer, _)| *believer != me);
        }
        let guard = Arc::into_inner(guard).expect("nobody else has it");
        match guard.release().within(LEASE * 3).wait() {
            Ok(()) => {}
            Err(LockError::Lost { .. } | LockError::TimedOut { .. }) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("release: {error:?}"),
        }
    }

    /// A guard that is held before and after another was seen held has been held together with it.
    fn look_at_others(&self, register: &Register, me: u64, guard: &Guard) {
        if guard.state() != GuardState::Held {
            return;
        }
        for (other, its) in register.believers.iter().filter(|(other, _)| *other != me) {
            if its.state() == GuardState::Held && guard.state() == GuardState::Held {
                let (fault, two_may_hold) = *self.failing.lock();
                if two_may_hold.is_some_and(|until| Instant::now() < until) {
                    self.documented.fetch_add(1, Ordering::Relaxed);
                } else {
                    let tokens = (its.fencing_token(), guard.fencing_token());
                    let two = format!("turns {other} and {me}, tokens {tokens:?}, after {fault}");
                    self.overlaps.lock().push(two);
                }
            }
        }
    }

    fn fail(
        &self,
        faults: &[Fault<'_>],
        time: Duration,
        dice: &mut Rng,
        tell: fn(String),
    ) -> Vec<String> {
        let mut played: Vec<(&str, u32)> = faults.iter().map(|fault| (fault.name, 0)).collect();
        let begun = Instant::now();
        let mut next = 0;
        while begun.elapsed() < time {
            // Each once before any comes twice.
            let at = if next < faults.len() { next } else { dice.usize(..faults.len()) };
            next += 1;
            let fault = &faults[at];
            let turns = self.turns.load(Ordering::Relaxed);
            tell(format!("{:?}, {turns} turns: {}", begun.elapsed(), fault.name));
            *self.failing.lock() = (fault.name, fault.two_may_hold.then(|| begun + time + TIMEOUT));
            (fault.play)(dice);
            played[at].1 += 1;
            *self.failing.lock() =
                (fault.name, fault.two_may_hold.then(|| Instant::now() + LEASE * 2));
            thread::sleep(if fault.two_may_hold { LEASE * 2 } else { pause(dice, 60) });
        }
        played.iter().map(|(name, times)| format!("{name} {times}")).collect()
    }
}

/// Tries a store for as long as the environment says, and tells what happens.
pub fn try_hard(
    name: &str,
    connect: impl Fn(usize) -> Store,
    faults: &[Fault<'_>],
    tell: fn(String),
) {
    let seconds = std::env::var("ZKLOCK_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let time = Duration::from_secs(seconds.unwrap_or(scaled(6, 60)));
    let seed = std::env::var("ZKLOCK_SEED").ok().map_or(7, |seed| seed.parse().unwrap());
    let stores: Vec<Store> = (0..CLIENTS).map(&connect).collect();
    let registers = LOCKS.into_iter().map(|path| (path, Mutex::default())).collect();
    let course = Course { registers, ..Course::default() };
    let played = thread::scope(|scope| {
        for worker in 0..CLIENTS * THREADS_OF_EACH {
            let (course, store) = (&course, &stores[worker % CLIENTS]);
            scope.spawn(move || {
                let mut dice = Rng::with_seed(seed + worker as u64);
                while !course.is_over.load(Ordering::Relaxed) {
                    course.turn(store, LOCKS[usize::from(dice.u8(..3) == 0)], &mut dice);
                    thread::sleep(Duration::from_millis(dice.u64(..5)));
                }
            });
        }
        let played = course.fail(faults, time, &mut Rng::with_seed(seed), tell);
        // A busy machine takes few turns in that time.
        let begun = Instant::now();
        while course.turns.load(Ordering::Relaxed) <= FEWEST && begun.elapsed() < TIMEOUT {
            thread::sleep(LEASE / 10);
        }
        course.is_over.store(true, Ordering::Relaxed);
        played
    });
    for path in LOCKS {
        let guard = stores[0].lock(path).acquire().within(TIMEOUT).wait().unwrap();
        guard.release().wait().unwrap();
        eventually("nothing is left", || {
            stores[0].lock(path).contenders().wait().unwrap().is_empty()
        });
    }
    let [turns, lost, failed, documented] =
        [&course.turns, &course.lost, &course.failed, &course.documented]
            .map(|count| count.load(Ordering::Relaxed));
    let overlaps = course.overlaps.into_inner();
    let refused: u64 = course.registers.values().map(|register| register.lock().refused).sum();
    let tally = format!(
        "{name}: {turns} turns, {lost} locks lost, {failed} acquires in vain, {refused} old tokens refused, \
         {} overlaps and {documented} that are documented; seed {seed}: {}",
        overlaps.len(),
        played.join(", ")
    );
    tell(tally.clone());
    assert!(overlaps.is_empty(), "{tally}: {overlaps:#?}");
    assert!(turns > FEWEST, "{tally}");
    for register in course.registers.values() {
        let register = register.lock();
        assert_eq!(register.value, register.written, "{tally}: an update is lost");
    }
}
