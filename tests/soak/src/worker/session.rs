//! One session: asks for a lock in one way or another, writes fenced while it has it, looks at its
//! guard, releases; over and over, with every belief written down.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use futures_lite::future::{block_on, or, yield_now};
use futures_util::future::select_all;
use zklock::zookeeper::Op;
use zklock::{Client, Guard, Lock, LockError, LostSignal, Pending, WhileHeldError};

use super::contended::{Contended, Holding, Wanted};
use super::{Phase, Shared};
use crate::clock::Moment;
use crate::journal::{Event, State, Written};
use crate::locks::{self, LockName, Stamp};

const OPERATION: Duration = Duration::from_secs(10);
/// A pause before what has just failed is tried again.
const AFTER_TROUBLE: Duration = Duration::from_millis(50);
/// How long a step of work takes.
const STEP: Duration = Duration::from_millis(5);
const NAP: Duration = Duration::from_millis(20);
/// From how many milliseconds on a hold is one that a fault may be aimed at.
const LONG: u64 = 400;
/// How long a participant of an election waits who only tries.
const TRIES_FOR: Duration = Duration::from_millis(10);
/// One round in so many is the last of its client, and one hold in so many writes to its own claim.
const CLOSES: u32 = 100;
const WRITES_TO_ITSELF: u32 = 20;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Session {
    number: u16,
    shared: Arc<Shared>,
    locks: Vec<LockName>,
    rng: Rng,
}

/// How to ask for a lock.
enum How {
    Acquire,
    Within(Duration),
    Try,
    /// Drops the attempt when it is not over by then.
    Drop(Duration),
    /// So many at once; the others are dropped when one has it.
    Crowd(usize),
    /// By work that ends with the lock.
    Work,
}

impl How {
    fn draw(rng: &mut Rng) -> How {
        match rng.u32(..100) {
            0..30 => How::Acquire,
            30..40 => How::Work,
            // Often enough that a lock which is stuck for a while does not collect all sessions.
            40..85 => How::Within(Duration::from_millis(rng.u64(20..800))),
            85..92 => How::Try,
            92..94 => How::Crowd(rng.usize(10..100)),
            94..97 => How::Work,
            _ => How::Drop(Duration::from_millis(rng.u64(0..100))),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            How::Acquire => "acquire",
            How::Within(_) => "within",
            How::Try => "try",
            How::Drop(_) => "drop",
            How::Crowd(_) => "crowd",
            How::Work => "work",
        }
    }

    /// Whether this error is how such an ask may end.
    fn may_end_so(&self, error: &LockError) -> bool {
        !matches!(self, How::Acquire | How::Crowd(_) | How::Work) && error.is_timeout()
    }
}

impl Session {
    pub fn new(number: u16, shared: Arc<Shared>) -> Session {
        let seed = shared.orders.seed ^ u64::from(shared.orders.process) << 32;
        let rng = Rng::with_seed(seed ^ u64::from(number) << 16);
        let locks = locks::all(shared.orders.locks_of_each);
        Session { number, shared, locks, rng }
    }

    /// From the first connect to the last close. Now and then it closes its client, and goes on with another.
    pub fn live(mut self) {
        while let Some(client) = self.connect() {
            let locks: Vec<Contended> =
                self.locks.iter().map(|name| Contended::new(&client, name)).collect();
            let mut stays = true;
            while stays && !self.shared.has_come(Phase::Park) {
                if self.shared.is_hushed() {
                    thread::sleep(NAP);
                } else {
                    self.round(&client, &locks);
                    stays = self.rng.u32(..CLOSES) != 0;
                }
            }
            if stays {
                self.shared.parked.fetch_add(1, Ordering::SeqCst);
                // The session goes on: what it may have left behind would still be there.
                while !self.shared.has_come(Phase::Close) {
                    thread::sleep(NAP);
                }
            }
            // Its locks hold the client too.
            drop(locks);
            self.close(&client);
            if stays {
                return;
            }
        }
        self.shared.parked.fetch_add(1, Ordering::SeqCst);
    }

    fn close(&self, client: &Client) {
        let session = client.session();
        if let (Some(session), Ok(())) = (session, client.close().within(CLOSE_TIMEOUT).wait()) {
            self.note(Event::Closed { session: session.id() });
        }
    }

    /// There may be no quorum at the moment: tries until there is one, or no need any more.
    fn connect(&self) -> Option<Client> {
        let orders = &self.shared.orders;
        let options =
            Client::options().session_timeout(orders.session_timeout).operation_timeout(OPERATION);
        // Two of three, so that some wait for others that have it set, and some for others that have not.
        let options = options.announced_releases(self.number % 3 != 0);
        while !self.shared.has_come(Phase::Park) {
            match options.connect(&orders.hosts).wait() {
                Ok(client) => return Some(client),
                Err(_) => thread::sleep(AFTER_TROUBLE),
            }
        }
        None
    }

    fn note(&self, event: Event) {
        self.note_at(Moment::now(), event);
    }

    fn note_at(&self, at: Moment, event: Event) {
        self.shared.note(at, self.number, event);
    }

    fn round(&mut self, client: &Client, locks: &[Contended]) {
        let chosen = self.rng.usize(..locks.len());
        let contended = &locks[chosen];
        let mut rng = self.rng.clone();
        let begins = |limit| self.note(Event::Limits { lock: chosen, limit });
        contended.change(&mut rng, begins, |written| self.note(Event::Limited { written }));
        self.rng = rng;
        let how = How::draw(&mut self.rng);
        let (wanted, part) = contended.draw(&mut self.rng);
        self.note(Event::Ask { lock: chosen, how: how.name().to_owned(), part });
        let got = match wanted {
            Wanted::Lock(lock) => match how {
                How::Work => return self.work(client, &lock, chosen),
                How::Try => lock.try_acquire().wait().map(|got| got.map(Holding::Guard)),
                _ => ask(&how, || lock.acquire()).map(|guard| Some(Holding::Guard(guard))),
            },
            Wanted::Leadership(election) => ask(&how, || election.campaign())
                .map(|leadership| Some(Holding::Leads(leadership, election))),
        };
        match got {
            Ok(Some(holding)) => self.hold(client, chosen, holding),
            Ok(None) => self.note(Event::None { why: "taken".to_owned() }),
            Err(error) if how.may_end_so(&error) => {
                self.note(Event::None { why: "timeout".to_owned() });
            }
            Err(error) => {
                self.note(Event::Failed { why: error.to_string() });
                thread::sleep(AFTER_TROUBLE);
            }
        }
    }

    fn hold(&mut self, client: &Client, chosen: usize, holding: Holding) {
        let guard = holding.guard();
        let session = client.session().map_or(0, |key| key.id());
        let at = Moment::now();
        let state = guard.state().into();
        let token = guard.fencing_token();
        self.note_at(at, Event::Got { token, session, state });
        self.shared.acquired.fetch_add(1, Ordering::Relaxed);

        let lost = guard.lost();
        self.write(client, chosen, guard, 1);
        if self.rng.u32(..WRITES_TO_ITSELF) == 0 {
            // It is refused where releases are announced, and changes nothing elsewhere.
            let path = guard.claim_path();
            self.unless_told(&lost, async {
                if let Ok(found) = client.get(&path).await {
                    let _ = client.set(&path, &found.data, None).await;
                }
            });
        }
        // Mostly no longer than that, sometimes a while, seldom long.
        let hold = match self.rng.u32(..1_000) {
            0..955 => 0,
            955..985 => self.rng.u64(5..60),
            _ => self.rng.u64(100..1_500),
        };
        if hold > 0 && lost.get().is_none() {
            let is_long = hold >= LONG;
            self.shared.holding.fetch_add(usize::from(is_long), Ordering::Relaxed);
            if lost.wait_timeout(Duration::from_millis(hold)).is_some() {
                self.note(Event::Told);
            }
            self.shared.holding.fetch_sub(usize::from(is_long), Ordering::Relaxed);
        }
        let was_hushed = self.shared.is_hushed();
        while self.shared.is_hushed() && lost.get().is_none() {
            self.look(guard);
            // Whoever has just heard from the leader trusts its session the longest.
            drop(client.sync("/"));
            if lost.wait_timeout(NAP).is_some() {
                self.note(Event::Told);
            }
        }
        self.look(guard);
        if hold > 0 || was_hushed {
            // As a program would that does not look: this is what the fence is for.
            self.write(client, chosen, guard, 2);
        }
        self.note(Event::Release);
        if self.rng.u32(..10) == 0 {
            drop(holding);
            self.note(Event::Released { why: "dropped".to_owned() });
        } else {
            let released = holding.release(&mut self.rng);
            let why = released.err().map(|error| error.to_string()).unwrap_or_default();
            self.note(Event::Released { why });
        }
    }

    /// Holds by work that ends with the lock. Each step of it is a belief that it is held.
    fn work(&mut self, client: &Client, lock: &Lock, chosen: usize) {
        let steps = match self.rng.u32(..100) {
            0..90 => self.rng.u32(..4),
            90..97 => self.rng.u32(4..20),
            _ => self.rng.u32(20..200),
        };
        let this = &*self;
        // From before the look at the clock that each step begins with.
        let polled = Cell::new(Moment::now());
        let (begun, released) = (Cell::new(false), Cell::new(false));
        let work = async |guard: Arc<Guard>| {
            begun.set(true);
            let session = client.session().map_or(0, |key| key.id());
            let (at, token) = (Moment::now(), guard.fencing_token());
            this.note_at(at, Event::Got { token, session, state: guard.state().into() });
            this.shared.acquired.fetch_add(1, Ordering::Relaxed);
            this.write(client, chosen, &guard, 1);
            for _ in 0..steps {
                thread::sleep(STEP);
                yield_now().await;
                this.note_at(polled.get(), Event::Look { state: State::Held });
            }
            released.set(true);
            this.note(Event::Release);
        };
        let mut held = pin!(lock.while_held(work));
        let ended = block_on(poll_fn(|cx| {
            polled.set(Moment::now());
            held.as_mut().poll(cx)
        }));
        match ended {
            Ok(()) => self.note(Event::Released { why: "dropped".to_owned() }),
            Err(error @ WhileHeldError::Lost { .. }) if begun.get() => {
                self.note(Event::Told);
                if !released.get() {
                    self.note(Event::Release);
                }
                self.note(Event::Released { why: error.to_string() });
            }
            Err(error) => {
                self.note(Event::Failed { why: error.to_string() });
                thread::sleep(AFTER_TROUBLE);
            }
        }
    }

    fn look(&self, guard: &Guard) {
        let at = Moment::now();
        let state = guard.state().into();
        self.note_at(at, Event::Look { state });
    }

    fn write(&self, client: &Client, chosen: usize, guard: &Guard, number: u32) {
        let (process, thread) = (self.shared.orders.process, self.number);
        let stamp = Stamp { token: guard.fencing_token(), number, process, thread };
        let lost = guard.lost();
        let sent = Moment::now();
        let set = Op::set(self.locks[chosen].register(), stamp.encode());
        let write = client.multi(&[guard.check(), set]);
        let written = match self.unless_told(&lost, write) {
            Some(Ok(_)) => Written::Done,
            Some(Err(error)) if !error.is_outcome_unknown() => Written::Refused,
            Some(Err(_)) => Written::Unknown,
            None => Written::Unknown,
        };
        self.note(Event::Wrote { number, sent, written });
    }

    /// Waits for replies. Whoever does hears of a loss all the same, and does not wait any longer.
    fn unless_told<T>(&self, lost: &LostSignal, replies: impl Future<Output = T>) -> Option<T> {
        let knows = lost.get().is_some();
        let told = async {
            match knows {
                true => std::future::pending().await,
                false => lost.clone().await,
            };
            self.note(Event::Told);
            None
        };
        block_on(or(async { Some(replies.await) }, told))
    }
}

/// Asks for it, and waits for that.
fn ask<T>(how: &How, acquire: impl Fn() -> Pending<T, LockError>) -> Result<T, LockError> {
    match how {
        How::Within(time) => acquire().within(*time).wait(),
        How::Drop(time) => {
            let acquire = acquire();
            // Its claim stands, and nobody goes on with it.
            thread::sleep(*time / 2);
            acquire.within(*time / 2).wait()
        }
        How::Crowd(number) => {
            let (first, _, others) = block_on(select_all((0..*number).map(|_| acquire())));
            drop(others);
            first
        }
        // Of those whose tries are such as these.
        How::Try => acquire().within(TRIES_FOR).wait(),
        How::Acquire | How::Work => acquire().wait(),
    }
}
