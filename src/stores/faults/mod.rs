//! Each step of a store of leases on its database, and each way in which it can fail: not done, done and not answered,
//! late.
//!
//! One store works on its database through what fails once, where the test wants it; another, on the same database,
//! wants the same lock all the time. Whatever happens, the two do not hold it together, nothing is left behind, and
//! tokens grow.

mod place;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use self::place::Place;
use crate::leased::Store;
use crate::leased::database::{Claimed, Database, Front, Row, Trouble, Wants, What};
use crate::lock::{Contender, Guard, GuardState, Kind, LockError, LostReason, Revocation};

const LEASE: Duration = Duration::from_millis(600);
/// As long as a busy machine may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const PATH: &str = "/locks/faulty";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Begin,
    Renew,
    End,
    Claim,
    Release,
    Front,
    Ahead,
    Wanted,
    Numbers,
    HasChanged,
    Sweep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It is refused, and was not done.
    Refused,
    /// Others are at it.
    Busy,
    /// It is not known whether it was done, and it was not.
    LostRequest,
    /// It is not known whether it was done, and it was.
    LostReply,
    /// It is done when the lease is over.
    LateRequest,
    /// It is done, and the answer comes when the lease is over.
    LateReply,
    /// It is done, the answer comes when half of the lease is over, and no renewal is answered after that.
    LateReplyAndSilence,
}

const FAULTS: [Fault; 6] = [
    Fault::Refused,
    Fault::Busy,
    Fault::LostRequest,
    Fault::LostReply,
    Fault::LateRequest,
    Fault::LateReply,
];

/// Which fault comes next, and where.
type Plan = Arc<Mutex<Option<(Op, Fault)>>>;

struct Faulty {
    database: Box<dyn Database>,
    plan: Plan,
    is_silent: bool,
}

impl Faulty {
    fn run<T>(
        &mut self,
        op: Op,
        mut work: impl FnMut(&mut dyn Database) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let planned = {
            let mut plan = self.plan.lock();
            if plan.is_some_and(|(at, _)| at == op) { plan.take() } else { None }
        };
        let (_, fault) = match planned {
            None if op == Op::Renew && self.is_silent => (op, Fault::Busy),
            None => return work(&mut *self.database),
            Some(planned) => planned,
        };
        let trouble = |what| Err(Trouble::new(what, format!("{op:?}: {fault:?}")));
        match fault {
            Fault::Refused => trouble(What::Failed),
            Fault::Busy => trouble(What::Busy),
            Fault::LostRequest => trouble(What::Unknown),
            Fault::LostReply => {
                work(&mut *self.database)?;
                trouble(What::Unknown)
            }
            Fault::LateRequest => {
                thread::sleep(LEASE + LEASE / 4);
                work(&mut *self.database)
            }
            Fault::LateReplyAndSilence => {
                self.is_silent = true;
                let done = work(&mut *self.database);
                thread::sleep(LEASE / 2);
                done
            }
            Fault::LateReply => {
                let done = work(&mut *self.database);
                thread::sleep(LEASE + LEASE / 4);
                done
            }
        }
    }
}

impl Database for Faulty {
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), Trouble> {
        self.run(Op::Begin, |database| database.begin(session, lease))
    }
    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, Trouble> {
        self.run(Op::Renew, |database| database.renew(session, lease))
    }
    fn end(&mut self, session: Uuid) -> Result<(), Trouble> {
        self.run(Op::End, |database| database.end(session))
    }
    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, Trouble> {
        self.run(Op::Claim, |database| database.claim(row, unless_blocked))
    }
    fn release(&mut self, claim: Uuid, lock: &str) -> Result<bool, Trouble> {
        self.run(Op::Release, |database| database.release(claim, lock))
    }
    fn front(&mut self, lock: &str) -> Result<Front, Trouble> {
        self.run(Op::Front, |database| database.front(lock))
    }
    fn ahead(&mut self, lock: &str, number: i64, kind: Kind) -> Result<Option<Contender>, Trouble> {
        self.run(Op::Ahead, |database| database.ahead(lock, number, kind))
    }
    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, Trouble> {
        self.database.contenders(lock, number)
    }
    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, Trouble> {
        self.database.revoke(lock, number, what)
    }
    fn is_there(&mut self, lock: &str, number: i64) -> Result<bool, Trouble> {
        self.database.is_there(lock, number)
    }
    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, Trouble> {
        self.run(Op::Wanted, |database| database.wanted(session))
    }
    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, Trouble> {
        self.run(Op::Numbers, |database| database.numbers(session))
    }
    fn limit(&mut self, lock: &str) -> Result<Option<u32>, Trouble> {
        self.database.limit(lock)
    }
    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), Trouble> {
        self.database.set_limit(lock, limit)
    }
    fn has_changed(&mut self) -> Result<bool, Trouble> {
        self.run(Op::HasChanged, |database| database.has_changed())
    }
    fn sweep(&mut self) -> Result<Option<Duration>, Trouble> {
        self.run(Op::Sweep, |database| database.sweep())
    }
    fn longest_look(&self) -> Duration {
        self.database.longest_look()
    }
    fn held_look(&self) -> Duration {
        self.database.held_look()
    }
    fn announce(&mut self, changed: Box<dyn Fn() -> bool + Send>) {
        self.database.announce(changed);
    }
}

/// A store whose database fails, and one whose does not.
struct Scene {
    place: Place,
    plan: Plan,
    faulty: Store,
    other: Store,
    tokens: Mutex<Vec<i64>>,
}

fn open(place: &Place, plan: &Plan) -> Store {
    let (connect, plan) = (place.connect(LEASE), Arc::clone(plan));
    let open = move |given_up: &dyn Fn() -> bool| {
        Ok(Faulty { database: connect(given_up)?, plan, is_silent: false })
    };
    Store::open("faulty", LEASE, open).wait().unwrap()
}

impl Scene {
    fn new(place: Place) -> Scene {
        let plan = Plan::default();
        let (faulty, other) = (open(&place, &plan), open(&place, &Plan::default()));
        Scene { place, plan, faulty, other, tokens: Mutex::default() }
    }

    fn plan(&self, op: Op, fault: Fault) {
        *self.plan.lock() = Some((op, fault));
    }

    fn has_come(&self) -> bool {
        self.plan.lock().is_none()
    }

    fn wait_for_the_fault(&self) {
        eventually("the fault comes", || self.has_come());
    }

    /// Acquires until that succeeds: a refusal is an answer, and leaves nothing behind.
    fn acquire(&self, store: &Store) -> Guard {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < TIMEOUT);
            match store.lock(PATH).acquire().within(TIMEOUT).wait() {
                Ok(guard) => {
                    self.tokens.lock().push(guard.fencing_token());
                    return guard;
                }
                Err(LockError::Store { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// The other one holds, and a guard of the faulty one says that it does not.
    fn other_holds_after(&self, guard: &Guard) {
        let next = self.acquire(&self.other);
        assert!(guard.is_lost(), "two hold");
        assert_eq!(next.state(), GuardState::Held);
        next.release().wait().unwrap();
    }

    fn expect_nothing_left(self) {
        drop(self.faulty);
        let lock = self.other.lock(PATH);
        eventually("nobody has it", || lock.contenders().wait().unwrap().is_empty());
        let tokens = self.tokens.lock();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        drop((lock, self.other));
        eventually("no row is left", || self.place.rows() == 0);
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Plays all faults, several at a time: they wait more than they work.
fn each_fault(play: impl Fn(Fault) + Sync) {
    thread::scope(|scope| {
        for fault in FAULTS {
            let play = &play;
            scope.spawn(move || play(fault));
        }
    });
}

/// Runs each of these for each database.
macro_rules! each_database {
    ($($name:ident)+) => {$(
        mod $name {
            #[cfg(feature = "mysql")]
            #[test]
            fn mysql() {
                super::$name(super::place::mysql);
            }

            #[cfg(feature = "postgres")]
            #[test]
            fn postgres() {
                super::$name(super::place::postgres);
            }

            #[cfg(feature = "redis")]
            #[test]
            fn redis() {
                super::$name(super::place::redis);
            }

            #[cfg(feature = "sqlite")]
            #[test]
            fn sqlite() {
                super::$name(super::place::sqlite);
            }
        }
    )+};
}

each_database! {
    whatever_fails_in_an_acquire_of_a_free_lock_it_is_held_by_one
    whatever_fails_in_a_try_of_a_taken_lock_it_is_not_held_and_nothing_stays
    whatever_fails_while_it_is_waited_for_who_waits_comes_to_hold
    whatever_fails_while_it_is_held_it_is_lost_before_another_holds
    whatever_fails_in_a_release_the_next_one_holds_and_the_answer_is_true
    a_renewal_that_is_answered_late_proves_no_more_than_its_submission
    an_acquire_that_is_given_up_while_nobody_knows_what_became_of_its_claim_leaves_none
}

fn whatever_fails_in_an_acquire_of_a_free_lock_it_is_held_by_one(make: fn() -> Place) {
    for op in [Op::Begin, Op::Claim] {
        each_fault(|fault| {
            let scene = Scene::new(make());
            scene.plan(op, fault);
            let guard = scene.acquire(&scene.faulty);
            assert!(scene.has_come(), "{op:?} {fault:?}");
            let other = scene.other.lock(PATH).try_acquire().wait().unwrap();
            assert!(other.is_none() || guard.is_lost(), "{op:?} {fault:?}: two hold");
            drop(other);
            drop(guard);
            scene.other_holds_after(&scene.acquire_and_let_go());
            scene.expect_nothing_left();
        });
    }
}

fn whatever_fails_in_a_try_of_a_taken_lock_it_is_not_held_and_nothing_stays(make: fn() -> Place) {
    each_fault(|fault| {
        let scene = Scene::new(make());
        let held = scene.acquire(&scene.other);
        scene.plan(Op::Claim, fault);
        match scene.faulty.lock(PATH).try_acquire().wait() {
            Ok(tried) => assert!(tried.is_none() || held.is_lost(), "{fault:?}: two hold"),
            Err(error) => {
                assert!(matches!(error, LockError::Store { .. } | LockError::TimedOut { .. }))
            }
        }
        assert!(scene.has_come(), "{fault:?}");
        drop(held);
        scene.expect_nothing_left();
    });
}

fn whatever_fails_while_it_is_waited_for_who_waits_comes_to_hold(make: fn() -> Place) {
    for op in [Op::Front, Op::HasChanged, Op::Sweep, Op::Renew] {
        each_fault(|fault| {
            let scene = Scene::new(make());
            let held = scene.acquire(&scene.other);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| scene.acquire(&scene.faulty));
                let looker = scene.other.lock(PATH);
                eventually("it waits", || looker.contenders().wait().unwrap().len() > 1);
                scene.plan(op, fault);
                if op == Op::Front {
                    // Looked at when something changes.
                    drop(scene.other.lock("/locks/beside").acquire().wait().unwrap());
                }
                scene.wait_for_the_fault();
                assert!(!waiting.is_finished() || held.is_lost(), "{op:?} {fault:?}: two hold");
                drop(held);
                let guard = waiting.join().unwrap();
                drop(guard);
            });
            scene.expect_nothing_left();
        });
    }
}

fn whatever_fails_while_it_is_held_it_is_lost_before_another_holds(make: fn() -> Place) {
    for op in [Op::Renew, Op::Wanted, Op::Numbers, Op::HasChanged] {
        each_fault(|fault| {
            let scene = Scene::new(make());
            let guard = scene.acquire(&scene.faulty);
            scene.plan(op, fault);
            if op == Op::Wanted {
                // Looked at when something changes.
                drop(scene.other.lock("/locks/beside").acquire().wait().unwrap());
            }
            thread::scope(|scope| {
                let next = scope.spawn(|| {
                    let next = scene.acquire(&scene.other);
                    assert!(guard.is_lost(), "{op:?} {fault:?}: two hold");
                    next.release().wait().unwrap();
                });
                scene.wait_for_the_fault();
                // What was answered late is not counted from its end.
                if op == Op::Renew && fault == Fault::LateReply {
                    guard.lost().wait();
                }
                thread::sleep(LEASE);
                assert!(!next.is_finished() || guard.is_lost());
                Scene::let_go(&guard);
                next.join().unwrap();
            });
            drop(guard);
            scene.expect_nothing_left();
        });
    }
}

fn whatever_fails_in_a_release_the_next_one_holds_and_the_answer_is_true(make: fn() -> Place) {
    for op in [Op::Release, Op::End] {
        each_fault(|fault| {
            let scene = Scene::new(make());
            let guard = scene.acquire(&scene.faulty);
            let lost = guard.lost();
            scene.plan(op, fault);
            let released = if op == Op::Release {
                guard.release().wait()
            } else {
                let closed = scene.faulty.close();
                assert!(guard.is_lost() || closed.wait().is_ok());
                guard.release().wait()
            };
            match released {
                Ok(()) => assert!(lost.get().is_some()),
                // Nobody has deleted it but its holder, whatever became of the answer.
                Err(LockError::Lost {
                    reason: LostReason::Session | LostReason::Released, ..
                }) => {}
                Err(error) => panic!("{op:?} {fault:?}: {error:?}"),
            }
            let next = scene.acquire(&scene.other);
            next.release().wait().unwrap();
            scene.wait_for_the_fault();
            scene.expect_nothing_left();
        });
    }
}

fn a_renewal_that_is_answered_late_proves_no_more_than_its_submission(make: fn() -> Place) {
    let scene = Scene::new(make());
    let guard = scene.acquire(&scene.faulty);
    scene.plan(Op::Renew, Fault::LateReplyAndSilence);
    scene.wait_for_the_fault();
    scene.other_holds_after(&guard);
    drop(guard);
    scene.expect_nothing_left();
}

fn an_acquire_that_is_given_up_while_nobody_knows_what_became_of_its_claim_leaves_none(
    make: fn() -> Place,
) {
    for fault in [Fault::LostRequest, Fault::LostReply, Fault::LateReply] {
        let scene = Scene::new(make());
        scene.plan(Op::Claim, fault);
        let given_up = scene.faulty.lock(PATH).acquire();
        scene.wait_for_the_fault();
        drop(given_up);
        // Its session lives on: the claim does not go with that.
        let beside = scene.faulty.lock("/locks/beside").acquire().wait().unwrap();
        let lock = scene.other.lock(PATH);
        eventually("no claim is left", || lock.contenders().wait().unwrap().is_empty());
        assert_eq!((fault, beside.is_lost()), (fault, false));
        drop((beside, lock));
        scene.expect_nothing_left();
    }
}

impl Scene {
    fn acquire_and_let_go(&self) -> Guard {
        let guard = self.acquire(&self.faulty);
        Scene::let_go(&guard);
        guard
    }

    fn let_go(guard: &Guard) {
        drop(guard.release_now());
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_full_disk_is_named_and_what_is_held_is_lost_and_passes_on_when_there_is_room() {
    let place = place::sqlite();
    let path = place.file();
    let store = open(&place, &Plan::default());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    // One whose database may not grow: as on a disk that is full.
    let full = Store::open("full", LEASE, move |given_up| {
        let database = crate::sql::sqlite::Sqlite::open(&path, given_up)?;
        database.allow_no_growth();
        Ok(database)
    });
    let full = full.wait().unwrap();
    let label = "x".repeat(256);
    let mut refused = None;
    let mut held = Vec::new();
    for number in 0..1_000 {
        match full.lock(&format!("{PATH}-{number}")).label(label.clone()).acquire().wait() {
            Ok(guard) => held.push(guard),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let refused = refused.expect("it is full in the end");
    assert!(matches!(refused, LockError::Store { .. }), "{refused:?}");
    assert!(refused.to_string().contains("full"), "{refused}");
    assert!(!refused.is_outcome_unknown());
    drop(held);
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    let again = full.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    again.release().wait().unwrap();
}
