//! Each step of a store of leases on its database, and each way in which it can fail: not done, done and not answered,
//! late.
//!
//! One store works on its database through what fails once, where the test wants it; another, on the same database,
//! wants the same lock all the time. Whatever happens, the two do not hold it together, nothing is left behind, and
//! tokens grow.

mod faulty;
mod place;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use self::faulty::{FAULTS, Fault, Faulty, LEASE, Op, Plan};
use self::place::Place;
use crate::leased::Store;
use crate::leased::database::{Claimed, Row};
use crate::lock::{Guard, Kind, Lock, LockError, LostReason};
use crate::runtime::BootInstant;

/// As long as a busy machine may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The lease of the store that works well: longer than the pauses of a busy machine. It looks for sessions that have
/// ended when it renews its own.
const LONG: Duration = Duration::from_secs(3);
const PATH: &str = "/locks/faulty";

/// A store whose database fails, and one whose does not.
struct Scene {
    place: Place,
    plan: Plan,
    faulty: Store,
    other: Store,
    tokens: Mutex<Vec<i64>>,
}

fn open(place: &Place, lease: Duration, plan: &Plan) -> Store {
    let (connect, plan) = (place.connect(lease), Arc::clone(plan));
    let open = move |given_up: &dyn Fn(&str) -> bool| {
        Ok(Faulty { database: connect(given_up)?, plan, is_silent: false })
    };
    Store::open("faulty", lease, Some(TIMEOUT), open).wait().unwrap()
}

impl Scene {
    fn new(place: Place) -> Scene {
        Scene::with_lease(place, LEASE)
    }

    /// With that lease of the faulty store.
    fn with_lease(place: Place, lease: Duration) -> Scene {
        let plan = Plan::default();
        // It makes the tables, for which it has more time.
        let other = open(&place, LONG, &Plan::default());
        let faulty = open(&place, lease, &plan);
        Scene { place, plan, faulty, other, tokens: Mutex::default() }
    }

    fn plan(&self, op: Op, fault: Fault) {
        *self.plan.lock() = [(op, fault)].into();
    }

    fn has_come(&self) -> bool {
        self.plan.lock().is_empty()
    }

    fn wait_for_the_fault(&self) {
        eventually("the fault comes", || self.has_come());
    }

    /// Whether the fault comes while the faulty store's session lives. Without one, that store asks for nothing.
    fn meets_the_fault(&self, guard: &Guard) -> bool {
        eventually("the fault comes", || self.has_come() || guard.is_lost());
        self.has_come()
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
        release(next);
    }

    fn expect_nothing_left(self) {
        drop(self.faulty);
        let lock = self.other.lock(PATH);
        eventually("nobody has it", || number_of_claims(&lock) == Some(0));
        let tokens = self.tokens.lock();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        drop((lock, self.other));
        // A busy database may not confirm the end of a session within its lease. The next sweep removes its row.
        let sweep = || self.place.connect(LONG)(&|_| false)?.sweep();
        eventually("no row is left", || sweep().is_ok() && self.place.rows() == 0);
    }
}

/// `None` where a busy machine does not answer.
fn number_of_claims(lock: &Lock) -> Option<usize> {
    lock.contenders().wait().ok().map(|claims| claims.len())
}

/// A busy machine can lose the session meanwhile.
fn release(guard: Guard) {
    let released = guard.release().wait();
    let is_done =
        matches!(released, Ok(()) | Err(LockError::Lost { reason: LostReason::Session, .. }));
    assert!(is_done, "{released:?}");
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        // A look may be a connection of its own.
        thread::sleep(Duration::from_millis(20));
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

/// Plays until that proves something: a busy machine can lose a session too early.
fn until_it_proves(what: impl fmt::Debug, play: impl Fn() -> bool) {
    let begun = Instant::now();
    while !play() {
        assert!(begun.elapsed() < TIMEOUT, "{what:?}: no session lives long enough");
    }
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
    a_look_that_fails_is_repeated_before_the_lease_is_over
    whatever_fails_while_it_is_held_it_is_lost_before_another_holds
    whatever_fails_in_a_release_the_next_one_holds_and_the_answer_is_true
    a_release_that_is_forbidden_after_a_lost_answer_is_not_said_to_have_failed
    a_renewal_that_is_answered_late_proves_no_more_than_its_submission
    an_acquire_that_is_given_up_while_nobody_knows_what_became_of_its_claim_leaves_none
    a_close_waits_until_nothing_is_left
    a_claim_in_doubt_is_not_deleted_once_it_holds
    many_slow_releases_do_not_cost_what_is_held
    a_session_that_is_lost_ends_no_sooner_than_its_lease
    a_broken_hold_keeps_its_grace_where_nothing_else_is_held
    a_store_that_is_dropped_ends_at_once
    a_claim_of_an_earlier_session_is_made_anew
}

/// Programs have that long to end their work.
fn a_session_that_is_lost_ends_no_sooner_than_its_lease(make: fn() -> Place) {
    let scene = Scene::with_lease(make(), LONG);
    let guard = scene.acquire(&scene.faulty);
    thread::scope(|scope| {
        let next = scope.spawn(|| (scene.acquire(&scene.other), BootInstant::now()));
        scene.plan(Op::Renew, Fault::LateReplyAndSilence);
        let mut trusted_until = BootInstant::now();
        while !guard.is_lost() {
            let (now, remaining) = (BootInstant::now(), guard.remaining());
            if !remaining.is_zero() {
                trusted_until = trusted_until.max(now + remaining);
            }
            thread::sleep(Duration::from_millis(5));
        }
        let (next, begun) = next.join().unwrap();
        assert!(
            begun >= trusted_until + LONG / 20,
            "{:?} early",
            trusted_until + LONG / 20 - begun
        );
        release(next);
    });
    drop(guard);
    scene.expect_nothing_left();
}

fn a_broken_hold_keeps_its_grace_where_nothing_else_is_held(make: fn() -> Place) {
    let scene = Scene::with_lease(make(), LONG);
    let guard = scene.acquire(&scene.faulty);
    // For longer than a session is kept that nobody needs.
    thread::sleep(LONG + LONG / 3);
    let looker = scene.other.lock(PATH);
    let holder = looker.holder().wait().unwrap().unwrap();
    let breaking = looker.break_hold(&holder, "", 100 * TIMEOUT);
    assert_eq!(guard.lost().wait(), LostReason::Broken);
    // For a renewal, and more.
    thread::sleep(LONG / 2);
    assert_eq!(number_of_claims(&looker), Some(1));
    // The end of its store does not wait for that.
    scene.faulty.close().within(TIMEOUT).wait().unwrap();
    drop((breaking, guard));
    scene.expect_nothing_left();
}

fn a_store_that_is_dropped_ends_at_once(make: fn() -> Place) {
    let (place, plan) = (make(), Plan::default());
    let closed = open(&place, LONG, &plan);
    release(closed.lock(PATH).acquire().within(TIMEOUT).wait().unwrap());
    closed.close().wait().unwrap();
    drop(closed);
    // What its thread has of it.
    eventually("its thread has ended", || Arc::strong_count(&plan) == 1);
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
    for op in [Op::Front, Op::Changes, Op::Sweep, Op::Renew] {
        each_fault(|fault| {
            let scene = Scene::new(make());
            let held = scene.acquire(&scene.other);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| scene.acquire(&scene.faulty));
                let looker = scene.other.lock(PATH);
                eventually("it waits", || number_of_claims(&looker) > Some(1) || held.is_lost());
                if !held.is_lost() {
                    scene.plan(op, fault);
                    if op == Op::Front {
                        // Looked at when something changes.
                        drop(scene.other.lock("/locks/beside").acquire().wait().unwrap());
                    }
                    scene.wait_for_the_fault();
                }
                assert!(!waiting.is_finished() || held.is_lost(), "{op:?} {fault:?}: two hold");
                drop(held);
                let guard = waiting.join().unwrap();
                drop(guard);
            });
            scene.expect_nothing_left();
        });
    }
}

fn a_look_that_fails_is_repeated_before_the_lease_is_over(make: fn() -> Place) {
    const LEASE: Duration = Duration::from_secs(3600);
    for fault in [Fault::Refused, Fault::Busy, Fault::LostReply] {
        let (place, plan) = (make(), Plan::default());
        let faulty = open(&place, LEASE, &plan).lock(PATH);
        let other = open(&place, LEASE, &Plan::default()).lock(PATH);
        let held = other.acquire().wait().unwrap();
        let waiting = faulty.acquire();
        eventually("it waits", || number_of_claims(&other) > Some(1));
        *plan.lock() = [(Op::Front, fault)].into();
        held.release().wait().unwrap();
        let guard = waiting.within(TIMEOUT).wait().unwrap();
        *plan.lock() = [(Op::Wanted, fault)].into();
        let holder = other.holder().wait().unwrap().unwrap();
        assert!(other.request_release(&holder, "please").wait().unwrap());
        let asked = guard.release_requests().wait_timeout(TIMEOUT);
        assert_eq!(asked, Ok(Some("please".to_owned())), "{fault:?}");
        assert!(plan.lock().is_empty(), "{fault:?} has come");
    }
}

fn whatever_fails_while_it_is_held_it_is_lost_before_another_holds(make: fn() -> Place) {
    for op in [Op::Renew, Op::Wanted, Op::Numbers, Op::Changes] {
        each_fault(|fault| {
            until_it_proves((op, fault), || is_lost_before_another_holds(make(), op, fault));
        });
    }
}

fn is_lost_before_another_holds(place: Place, op: Op, fault: Fault) -> bool {
    let scene = Scene::new(place);
    let guard = scene.acquire(&scene.faulty);
    let looker = scene.other.lock(PATH);
    // A busy database may not answer within a lease.
    let Ok(Some(holder)) = looker.holder().wait() else { return false };
    scene.plan(op, fault);
    // Looked at when somebody wants something.
    if op == Op::Wanted && looker.request_release(&holder, "please").wait().is_err() {
        return false;
    }
    let comes = thread::scope(|scope| {
        let next = scope.spawn(|| {
            let next = scene.acquire(&scene.other);
            assert!(guard.is_lost(), "{op:?} {fault:?}: two hold");
            release(next);
        });
        let comes = scene.meets_the_fault(&guard);
        // What was answered late is not counted from its end.
        if op == Op::Renew && fault == Fault::LateReply {
            guard.lost().wait();
        }
        thread::sleep(LEASE);
        assert!(!next.is_finished() || guard.is_lost());
        Scene::let_go(&guard);
        next.join().unwrap();
        comes
    });
    drop(guard);
    scene.expect_nothing_left();
    comes
}

fn whatever_fails_in_a_release_the_next_one_holds_and_the_answer_is_true(make: fn() -> Place) {
    for op in [Op::Release, Op::End] {
        each_fault(|fault| {
            until_it_proves((op, fault), || passes_on_and_answers_truly(make(), op, fault));
        });
    }
}

fn passes_on_and_answers_truly(place: Place, op: Op, fault: Fault) -> bool {
    let scene = Scene::new(place);
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
    let is_over = match released {
        Ok(()) => {
            assert!(lost.get().is_some());
            false
        }
        // Nobody has deleted it but its holder, whatever became of the answer.
        Err(LockError::Lost { reason: LostReason::Session | LostReason::Released, .. }) => true,
        Err(error) => panic!("{op:?} {fault:?}: {error:?}"),
    };
    let next = scene.acquire(&scene.other);
    release(next);
    // Once its session is over, a guard's release asks for nothing.
    let comes = scene.has_come() || !(is_over && op == Op::Release);
    if comes {
        scene.wait_for_the_fault();
    }
    scene.expect_nothing_left();
    comes
}

fn a_release_that_is_forbidden_after_a_lost_answer_is_not_said_to_have_failed(make: fn() -> Place) {
    for lost in [None, Some(Fault::LostReply), Some(Fault::LostRequest)] {
        let scene = Scene::with_lease(make(), LONG);
        let guard = scene.acquire(&scene.faulty);
        let faults = lost.into_iter().chain([Fault::Forbidden]);
        *scene.plan.lock() = faults.map(|fault| (Op::Release, fault)).collect();
        match (guard.release().wait(), lost) {
            (Err(LockError::NotPermitted { .. }), None)
            | (Err(LockError::OutcomeUnknown { .. }), Some(_)) => {}
            (released, _) => panic!("{lost:?}: {released:?}"),
        }
        // The session is ended, for it holds nothing else.
        release(scene.acquire(&scene.other));
        scene.expect_nothing_left();
    }
}

fn a_renewal_that_is_answered_late_proves_no_more_than_its_submission(make: fn() -> Place) {
    until_it_proves("a late renewal", || {
        let scene = Scene::new(make());
        let guard = scene.acquire(&scene.faulty);
        scene.plan(Op::Renew, Fault::LateReplyAndSilence);
        let comes = scene.meets_the_fault(&guard);
        scene.other_holds_after(&guard);
        drop(guard);
        scene.expect_nothing_left();
        comes
    });
}

fn an_acquire_that_is_given_up_while_nobody_knows_what_became_of_its_claim_leaves_none(
    make: fn() -> Place,
) {
    for fault in [Fault::LostRequest, Fault::LostReply, Fault::LateReply] {
        until_it_proves(fault, || its_claim_goes_before_its_session(make(), fault));
    }
}

fn a_close_waits_until_nothing_is_left(make: fn() -> Place) {
    for fault in [Fault::Refused, Fault::Busy, Fault::LostRequest, Fault::LostReply] {
        let scene = Scene::new(make());
        let guard = scene.acquire(&scene.faulty);
        scene.plan(Op::End, fault);
        // The second close waits as the first does.
        let closing = [scene.faulty.close(), scene.faulty.close()];
        for closed in closing {
            closed.within(TIMEOUT).wait().unwrap();
            let lock = scene.other.lock(PATH);
            let left = std::iter::repeat_with(|| number_of_claims(&lock)).flatten().next();
            assert!(left == Some(0) && guard.is_lost(), "{fault:?}: {left:?}");
        }
        assert!(scene.has_come());
        scene.expect_nothing_left();
    }
}

/// Gives up an acquire whose claim has met the fault; gives whether the session outlived the claim.
fn its_claim_goes_before_its_session(place: Place, fault: Fault) -> bool {
    let scene = Scene::new(place);
    scene.plan(Op::Claim, fault);
    let given_up = scene.faulty.lock(PATH).acquire();
    scene.wait_for_the_fault();
    drop(given_up);
    let beside = scene.faulty.lock("/locks/beside").acquire().wait();
    let lock = scene.other.lock(PATH);
    eventually("no claim is left", || number_of_claims(&lock) == Some(0));
    let lives = beside.as_ref().is_ok_and(|beside| !beside.is_lost());
    drop((beside, lock));
    scene.expect_nothing_left();
    lives
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
    let store = open(&place, LONG, &Plan::default());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    // One whose database may not grow: as on a disk that is full.
    let full = Store::open("full", LONG, None, move |given_up| {
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
    assert!(!guard.is_lost());
    guard.release().wait().unwrap();
    let again = full.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    again.release().wait().unwrap();
}

fn a_claim_in_doubt_is_not_deleted_once_it_holds(make: fn() -> Place) {
    until_it_proves("in doubt", || {
        let scene = Scene::new(make());
        let beside = scene.faulty.lock("/locks/beside").acquire().wait().unwrap();
        // The renewal is due before the claim is looked up. Whoever deletes it then does so again after the look.
        *scene.plan.lock() =
            [(Op::Claim, Fault::LateLostReply), (Op::Release, Fault::LostRequest)].into();
        let guard = scene.acquire(&scene.faulty);
        thread::sleep(LEASE / 4);
        let other = scene.other.lock(PATH).try_acquire().wait().unwrap();
        assert!(other.is_none() || guard.is_lost(), "two hold");
        let proves = guard.lost().get() != Some(LostReason::Session);
        assert!(!proves || !guard.is_lost(), "nobody has deleted it");
        scene.plan.lock().clear();
        drop((other, guard, beside));
        scene.expect_nothing_left();
        proves
    });
}

fn many_slow_releases_do_not_cost_what_is_held(make: fn() -> Place) {
    const MANY: usize = 60;
    until_it_proves("slow", || {
        let scene = Scene::new(make());
        let guard = scene.acquire(&scene.faulty);
        let beside = |n| scene.faulty.lock(&format!("/locks/beside/{n}")).acquire().wait();
        let Ok(others) = (0..MANY).map(beside).collect::<Result<Vec<_>, _>>() else { return false };
        // Busy for a moment, so that all are due at once.
        let busy = std::iter::repeat_n((Op::Release, Fault::Busy), MANY);
        let slow = std::iter::repeat_n((Op::Release, Fault::Slow), MANY);
        scene.plan.lock().extend(busy.chain(slow));
        drop(others);
        eventually("all are released", || scene.has_come() || guard.is_lost());
        let is_held = !guard.is_lost();
        scene.plan.lock().clear();
        drop(guard);
        is_held
    });
}

/// A session can be over for its client before its server has ended it.
fn a_claim_of_an_earlier_session_is_made_anew(make: fn() -> Place) {
    let place = make();
    let mut database = place.connect(LONG)(&|_| false).unwrap();
    let [earlier, now] = [(); 2].map(|()| Uuid::new_v4());
    for session in [earlier, now] {
        database.begin(session, TIMEOUT).unwrap();
    }
    let mut row = Row {
        id: Uuid::new_v4(),
        session: earlier,
        lock: PATH.to_owned(),
        kind: Kind::Exclusive,
        limit: 0,
        host: String::new(),
        pid: 0,
        thread: String::new(),
        label: String::new(),
    };
    let mut claim = |row: &Row| match database.claim(row, false).unwrap() {
        Claimed::Holds { number } => number,
        other => panic!("{other:?}"),
    };
    let first = claim(&row);
    assert_eq!(claim(&row), first, "it is there");
    row.session = now;
    let second = claim(&row);
    assert!(second > first, "{second}");
    assert_eq!(database.numbers(earlier).unwrap(), Some(vec![]));
    database.end(earlier).unwrap();
    assert_eq!(database.numbers(now).unwrap(), Some(vec![(second, row.id)]));
    database.end(now).unwrap();
    assert_eq!(place.rows(), 0);
}
