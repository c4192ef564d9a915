//! Who of several leads, and to whom it hands over: one at a time, whatever fails.

use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_lite::future::{block_on, yield_now};
use parking_lot::Mutex;
use test_support::{TIMEOUT, eventually, session_id};
use zklock::{
    Client, Contender, Election, Guard, GuardState, Leadership, LocalStore, Lock, LockError,
    LostReason, Pending, Strategy,
};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Gate, Rule};

use crate::bench::Bench;
use crate::place::{Place, each_queue};

/// An election of a participant's own.
fn election(place: &Place, name: &str) -> Election {
    Election::new(place.lock().label(name))
}

/// Campaigns beside the test.
fn campaign(election: &Election) -> JoinHandle<Result<Leadership, LockError>> {
    let campaign = election.campaign();
    thread::spawn(move || campaign.within(TIMEOUT).wait())
}

/// Waits until those take part, and gives them.
fn participants(election: &Election, names: &[&str]) -> Vec<Contender> {
    let mut there = Vec::new();
    eventually("they take part", || {
        there = election.participants().wait().unwrap();
        there.iter().map(|participant| participant.label.as_str()).eq(names.iter().copied())
    });
    there
}

/// Campaigns, one after the other.
fn queue_up<const N: usize>(
    elections: &[Election; N],
    before: &[&str],
    names: [&str; N],
) -> [JoinHandle<Result<Leadership, LockError>>; N] {
    let mut there = before.to_vec();
    std::array::from_fn(|at| {
        let campaign = campaign(&elections[at]);
        there.push(names[at]);
        participants(&elections[at], &there);
        campaign
    })
}

fn is_pending<T>(pending: &mut Pending<T, LockError>) -> bool {
    let mut nobody = Context::from_waker(Waker::noop());
    Pin::new(pending).poll(&mut nobody).is_pending()
}

/// Counts those who work.
struct Works<'a>(&'a AtomicUsize);

impl Drop for Works<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Is ready once it was let go.
struct Stop {
    lock: Lock,
    goes_on: Option<Guard>,
}

impl Stop {
    fn new() -> Stop {
        let lock = LocalStore::new().lock("/stop");
        let goes_on = Some(lock.acquire().wait().unwrap());
        Stop { lock, goes_on }
    }

    fn signal(&self) -> impl Future<Output = ()> + Send + use<> {
        let stopped = self.lock.acquire();
        async move { drop(stopped.await) }
    }

    fn let_go(&mut self) {
        self.goes_on = None;
    }
}

/// What is left behind by nobody: a name of a chosen one.
fn expect_no_name(bench: &Bench) {
    let path = format!("{}/zl-handover", bench.path);
    eventually("no name of a chosen one is left", || {
        bench.ask(|raw| raw.children(&path)).is_ok_and(|names| names.is_empty())
    });
}

each_queue! {
    fn a_lock_below_an_election_does_not_keep_leaders_from_handing_over(place) {
        let elections = ["a", "b"].map(|name| election(place, name));
        let below = place.lock_at(&format!("{}/handover", place.path)).label("to 7");
        let below = below.acquire().wait().unwrap();
        let leader = elections[0].campaign().wait().unwrap();
        let [second] = queue_up(&[elections[1].clone()], &["a"], ["b"]);
        let there = participants(&elections[0], &["a", "b"]);
        assert!(leader.hand_over(&there[1]).within(TIMEOUT).wait().unwrap());
        drop((second.join().unwrap().unwrap(), below));
    }

    fn the_first_leads_and_the_next_follows_when_it_resigns(place) {
        let elections = ["a", "b"].map(|name| election(place, name));
        let observer = election(place, "nobody");
        let mut leaders = observer.observe();
        let mut leader = move || leaders.wait_timeout(TIMEOUT).expect("it is reported").unwrap().unwrap();
        assert_eq!(leader(), None);
        let first = elections[0].campaign().wait().unwrap();
        assert_eq!(leader().unwrap().label, "a");
        assert_eq!(first.guard().state(), GuardState::Held);
        let [second] = queue_up(&[elections[1].clone()], &["a"], ["b"]);
        assert!(!second.is_finished());
        first.resign().wait().unwrap();
        assert_eq!(first.guard().lost().get(), Some(LostReason::Released));
        assert!(first.resign().wait().unwrap_err().is_lost(), "it was resigned before");
        let second = second.join().unwrap().unwrap();
        assert!(second.term() > first.term());
        while leader().is_none_or(|leader| leader.label != "b") {}
        assert_eq!(observer.leader().wait().unwrap().unwrap().token, second.term());
        // The last clone resigns.
        let clone = second.clone();
        drop(second);
        assert!(!clone.guard().is_lost());
        drop(clone);
        while leader().is_some() {}
        place.expect_free();
    }

    fn work_is_done_by_one_at_a_time_until_it_ends(place) {
        let (working, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let terms = Mutex::new(Vec::new());
        let work = async |leadership: Leadership| {
            assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two lead");
            let works = Works(&working);
            terms.lock().push(leadership.term());
            if begun.fetch_add(1, Ordering::SeqCst) == 9 {
                return "done";
            }
            drop(works);
            // It resigns, and goes no further.
            leadership.resign().await.unwrap();
            pending().await
        };
        let elections = ["a", "b"].map(|name| election(place, name));
        let mut stop = Stop::new();
        thread::scope(|scope| {
            let leads = elections.map(|election| {
                let stop = stop.signal();
                scope.spawn(move || block_on(election.lead(work).until(stop)))
            });
            eventually("one is done", || leads.iter().any(thread::ScopedJoinHandle::is_finished));
            stop.let_go();
            let done = leads.map(|lead| lead.join().unwrap().unwrap());
            assert!(done.contains(&Some("done")), "{done:?}");
        });
        let terms = terms.into_inner();
        assert!(terms.len() >= 10 && terms.is_sorted_by(|a, b| a < b), "{terms:?}");
        place.expect_free();
    }

    fn who_has_lost_its_leadership_takes_part_again(place) {
        let terms = Mutex::new(Vec::new());
        let work = async |leadership: Leadership| {
            terms.lock().push(leadership.term());
            pending::<()>().await;
        };
        let election = election(place, "a");
        let mut stop = Stop::new();
        thread::scope(|scope| {
            let (stopped, election) = (stop.signal(), &election);
            let lead = scope.spawn(move || block_on(election.lead(work).until(stopped)));
            for tenure in 1..=3 {
                eventually("it leads", || terms.lock().len() == tenure);
                if tenure < 3 {
                    place.lose();
                }
            }
            stop.let_go();
            assert_eq!(lead.join().unwrap().unwrap(), None);
        });
        let terms = terms.into_inner();
        assert!(terms.is_sorted_by(|before, after| before < after), "{terms:?}");
        place.expect_free();
    }

    fn who_leads_hands_over_to_the_one_it_chooses_and_the_others_keep_their_order(place) {
        let leader = election(place, "leader").campaign().wait().unwrap();
        let elections = ["a", "b", "chosen", "c"].map(|name| election(place, name));
        let [a, b, chosen, c] =
            queue_up(&elections, &["leader"], ["a", "b", "chosen", "c"]);
        let there = elections[0].participants().wait().unwrap();
        assert!(leader.hand_over(&there[3]).within(TIMEOUT).wait().unwrap());
        assert_eq!(leader.guard().lost().get(), Some(LostReason::Released));
        let chosen = chosen.join().unwrap().unwrap();
        assert_eq!(chosen.term(), there[3].token, "it has kept its claim");
        assert!(!a.is_finished() && !b.is_finished() && !c.is_finished());
        participants(&elections[0], &["chosen", "c", "a", "b"]);
        let mut terms = vec![leader.term(), chosen.term()];
        chosen.resign().wait().unwrap();
        for next in [c, a, b] {
            let next = next.join().unwrap().unwrap();
            terms.push(next.term());
            next.resign().wait().unwrap();
        }
        assert!(terms.is_sorted_by(|before, after| before < after), "{terms:?}");
        place.expect_free();
    }

    fn who_is_no_participant_any_more_is_not_handed_over_to(place) {
        let election = election(place, "leader");
        let leader = election.campaign().wait().unwrap();
        let gone = election.campaign();
        let mut gone = Some(gone);
        let there = {
            let mut there = Vec::new();
            eventually("it takes part", || {
                assert!(is_pending(gone.as_mut().unwrap()));
                there = election.participants().wait().unwrap();
                there.len() == 2
            });
            there
        };
        assert!(leader.hand_over(&there[0]).wait().unwrap(), "it leads itself");
        assert_eq!(leader.guard().state(), GuardState::Held);
        gone = None;
        assert!(gone.is_none());
        participants(&election, &["leader"]);
        assert!(!leader.hand_over(&there[1]).within(TIMEOUT).wait().unwrap());
        assert_eq!(leader.guard().state(), GuardState::Held, "it leads on");
        // Nor does anybody hand over who does not lead.
        leader.resign().wait().unwrap();
        let error = leader.hand_over(&there[0]).wait().unwrap_err();
        assert!(matches!(error, LockError::NotHeld { .. }), "{error:?}");
        place.expect_free();
    }

    fn who_leads_by_its_work_hands_over_and_takes_part_again(place) {
        let elections = ["a", "b"].map(|name| election(place, name));
        let led = Mutex::new(Vec::new());
        let mut stop = Stop::new();
        thread::scope(|scope| {
            let names = [("a", "b"), ("b", "a")];
            let leads = elections.into_iter().zip(names).map(|(election, (name, other))| {
                let (stop, led) = (stop.signal(), &led);
                scope.spawn(move || {
                    let work = async |leadership: Leadership| {
                        led.lock().push(name);
                        // The other one is there, or comes again.
                        loop {
                            let there = election.participants().await.unwrap();
                            let other = there.iter().find(|one| one.label == other);
                            if let Some(other) = other {
                                drop(leadership.hand_over(other).await);
                            }
                            yield_now().await;
                        }
                    };
                    block_on(election.lead(work).until(stop)).unwrap()
                })
            });
            let leads: Vec<_> = leads.collect();
            eventually("each has led", || led.lock().len() >= 8);
            // Once one has stopped, the other may lead again.
            let led = led.lock().clone();
            stop.let_go();
            for lead in leads {
                let never: Option<()> = lead.join().unwrap();
                assert_eq!(never, None);
            }
            assert!(led.windows(2).all(|two| two[0] != two[1]), "they take turns: {led:?}");
        });
        place.expect_free();
    }

    fn a_closed_store_ends_all_that_is_under_way(place) {
        let elections = ["waiting", "leader"].map(|name| election(place, name));
        let leader = elections[1].campaign().wait().unwrap();
        let [waiting] = queue_up(&[elections[0].clone()], &["leader"], ["waiting"]);
        place.close();
        let error = waiting.join().unwrap().unwrap_err();
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
        assert!(leader.guard().is_lost());
        let error = elections[0].lead(|_| ready(())).wait().unwrap_err();
        assert!(matches!(error, LockError::Closed { .. }), "{error:?}");
    }
}

/// A leader behind the proxy, and three who wait: the third is to be chosen.
struct Scene {
    bench: Bench,
    client: Client,
    elections: [Election; 3],
    campaigns: [JoinHandle<Result<Leadership, LockError>>; 3],
    leader: Leadership,
    chosen: Contender,
}

fn scene(bench: Bench) -> Scene {
    let client = bench.client();
    let of = |client: &Client, name: &str| Election::new(client.lock(&bench.path).label(name));
    let leader = of(&client, "leader").campaign().wait().unwrap();
    let elections = ["a", "b", "chosen"].map(|name| of(&bench.direct(), name));
    let campaigns = queue_up(&elections, &["leader"], ["a", "b", "chosen"]);
    let chosen = participants(&elections[0], &["leader", "a", "b", "chosen"]).pop().unwrap();
    Scene { bench, client, elections, campaigns, leader, chosen }
}

impl Scene {
    /// Begins to hand over to the chosen one, up to that frame, which is kept back.
    fn hand_over_until(&self, frame: Rule) -> (Pending<bool, LockError>, Gate) {
        let gate = self.bench.proxy.hold(frame);
        let mut handing = self.leader.hand_over(&self.chosen);
        eventually("it has come so far", || {
            assert!(is_pending(&mut handing));
            gate.is_reached()
        });
        (handing, gate)
    }

    /// All who wait lead in the end, one after the other, and nothing is left.
    fn expect_all_to_lead(self) {
        drop(self.leader);
        let mut terms = Vec::new();
        let mut campaigns = Vec::from(self.campaigns);
        while !campaigns.is_empty() {
            let mut next = None;
            eventually("the next one leads", || {
                next = campaigns.iter().position(JoinHandle::is_finished);
                next.is_some()
            });
            let leadership = campaigns.remove(next.unwrap()).join().unwrap().unwrap();
            let others = campaigns.iter().filter(|campaign| campaign.is_finished()).count();
            assert_eq!((others, leadership.guard().state()), (0, GuardState::Held));
            terms.push(leadership.term());
            leadership.resign().wait().unwrap();
        }
        assert!(terms.is_sorted_by(|before, after| before < after), "{terms:?}");
        expect_no_name(&self.bench);
        self.bench.expect_free(Strategy::Queue);
    }
}

#[test]
fn whatever_reply_is_lost_the_chosen_one_leads_next() {
    for nth in 1.. {
        let scene = scene(Bench::shared());
        let session = session_id(&scene.client);
        let lost = scene.bench.replies().nth(nth);
        let lost = scene.bench.proxy.on(lost, Action::Drop);
        let led = scene.leader.hand_over(&scene.chosen).within(TIMEOUT).wait().unwrap();
        assert!(led, "reply {nth}");
        assert_eq!(session_id(&scene.client), session);
        let Scene { bench, elections, campaigns: [a, b, chosen], .. } = scene;
        let chosen = chosen.join().unwrap().unwrap();
        assert_eq!(elections[0].leader().wait().unwrap().unwrap().token, chosen.term());
        assert!(!a.is_finished() && !b.is_finished());
        chosen.resign().wait().unwrap();
        for next in [a, b] {
            next.join().unwrap().unwrap().resign().wait().unwrap();
        }
        let was_lost = lost.hits() > 0;
        expect_no_name(&bench);
        bench.expect_free(Strategy::Queue);
        if !was_lost {
            assert!(nth > 5, "a hand-over asks more than {nth} times");
            return;
        }
    }
}

#[test]
fn a_chosen_one_that_dies_before_its_turn_is_passed_by() {
    let scene = scene(Bench::shared());
    // It does not go on while the others are asked to give way: its name is written, its turn does not come.
    let (handing, release) = scene.hand_over_until(Rule::request(Op::Delete).once());
    let Scene { bench, elections, campaigns: [a, b, chosen], leader, .. } = scene;
    drop(leader);
    let dies = bench.ask(|raw| raw.children(&bench.path)).unwrap();
    assert_eq!(dies.len(), 5, "{dies:?}");
    let claim = participants(&elections[0], &["leader", "a", "b", "chosen"]).pop().unwrap();
    bench.delete(&claim.path);
    release.release();
    assert!(!handing.within(TIMEOUT).wait().unwrap(), "it has left before its turn came");
    let a = a.join().unwrap().unwrap();
    assert_eq!(a.guard().state(), GuardState::Held);
    a.resign().wait().unwrap();
    // The chosen one has claimed again, at the end of the queue.
    for next in [b, chosen] {
        next.join().unwrap().unwrap().resign().wait().unwrap();
    }
    expect_no_name(&bench);
    bench.expect_free(Strategy::Queue);
}

#[test]
fn a_hand_over_that_is_dropped_before_it_resigns_changes_nothing() {
    let scene = scene(Bench::shared());
    let (handing, naming) = scene.hand_over_until(Rule::reply(Ops::creates()).once());
    drop(handing);
    naming.release();
    expect_no_name(&scene.bench);
    assert_eq!(scene.leader.guard().state(), GuardState::Held);
    scene.leader.resign().wait().unwrap();
    let next = participants(&scene.elections[0], &["a", "b", "chosen"]);
    assert_eq!(next.len(), 3);
    scene.expect_all_to_lead();
}

#[test]
fn a_hand_over_that_is_dropped_after_it_resigned_lets_the_next_one_lead() {
    let scene = scene(Bench::shared());
    let (handing, release) = scene.hand_over_until(Rule::request(Op::Delete).once());
    drop(handing);
    release.release();
    scene.expect_all_to_lead();
}

#[test]
fn who_loses_its_session_before_it_has_resigned_says_so() {
    let scene = scene(Bench::shared());
    let (handing, naming) = scene.hand_over_until(Rule::reply(Ops::creates()).once());
    scene.bench.expire(&scene.client);
    naming.release();
    scene.bench.proxy.reset_all();
    let error = handing.within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(error, LockError::NotHeld { .. } | LockError::Lost { .. }), "{error:?}");
    assert!(scene.leader.guard().is_lost());
    scene.expect_all_to_lead();
}

#[test]
fn who_loses_its_session_after_it_has_resigned_does_not_know_who_leads() {
    let bench = Bench::shared();
    let (client, other) = (bench.client(), bench.direct());
    let election = Election::new(client.lock(&bench.path).label("leader"));
    let leader = election.campaign().wait().unwrap();
    // Somebody whose turn comes first, and who gives way to nobody.
    let mut stranger = bench.stranger(Strategy::Queue);
    let last = Election::new(other.lock(&bench.path).label("last"));
    let campaign = campaign(&last);
    let there = participants(&last, &["leader", "stranger", "last"]);
    let mut handing = leader.hand_over(&there[2]);
    eventually("the stranger's turn has come", || {
        assert!(is_pending(&mut handing));
        last.leader().wait().unwrap().is_some_and(|who| who.label == "stranger")
    });
    bench.expire(&client);
    let error = handing.within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(error, LockError::OutcomeUnknown { source: Some(_), .. }), "{error:?}");
    assert!(error.is_outcome_unknown() && !error.is_timeout());
    stranger.leave();
    campaign.join().unwrap().unwrap().resign().wait().unwrap();
    expect_no_name(&bench);
    bench.expect_free(Strategy::Queue);
}

#[test]
fn a_hand_over_that_takes_too_long_is_of_unknown_outcome_and_the_next_one_leads() {
    let scene = scene(Bench::shared());
    let release = scene.bench.proxy.hold(Rule::request(Op::Delete).once());
    let handing = scene.leader.hand_over(&scene.chosen).within(Duration::from_millis(300));
    let error = handing.wait().unwrap_err();
    assert!(matches!(error, LockError::OutcomeUnknown { .. }), "{error:?}");
    release.release();
    scene.expect_all_to_lead();
}

#[test]
fn the_work_of_a_leader_ends_before_another_leads_when_its_link_is_cut() {
    let bench = Bench::shared();
    let (cut_off, other) = (bench.client(), bench.direct());
    let works = AtomicUsize::new(0);
    let work = async |_| {
        works.fetch_add(1, Ordering::SeqCst);
        let _works = Works(&works);
        pending::<()>().await;
    };
    let first = Election::new(cut_off.lock(&bench.path).label("first"));
    let mut stop = Stop::new();
    thread::scope(|scope| {
        let lead = first.lead(work).until(stop.signal());
        let leading = scope.spawn(move || block_on(lead));
        eventually("the first works", || works.load(Ordering::SeqCst) == 1);
        let second = Election::new(other.lock(&bench.path).label("second"));
        let next = campaign(&second);
        participants(&second, &["first", "second"]);
        bench.proxy.cut();
        let next = next.join().unwrap().unwrap();
        assert_eq!(works.load(Ordering::SeqCst), 0, "another leads, and the work goes on");
        bench.proxy.heal();
        participants(&second, &["second", "first"]);
        next.resign().wait().unwrap();
        eventually("the first works again", || works.load(Ordering::SeqCst) == 1);
        stop.let_go();
        assert_eq!(leading.join().unwrap().unwrap(), None);
    });
    bench.expect_free(Strategy::Queue);
}

#[test]
fn election_takes_one_request_more_than_the_lock() {
    let bench = Bench::shared();
    let (locks, elects) = (bench.client(), bench.client());
    let ask = |client: &Client, elects: bool| {
        let lock = client.lock(&bench.path);
        drop(lock.acquire().wait().unwrap().release().wait());
        bench.proxy.clear_seen();
        if elects {
            Election::new(lock).campaign().wait().unwrap().resign().wait().unwrap();
        } else {
            lock.acquire().wait().unwrap().release().wait().unwrap();
        }
        bench.asked().len()
    };
    // On a busy machine a lock may be held for so long that its znode is watched.
    let least = |client, elects| (0..5).map(|_| ask(client, elects)).min();
    assert_eq!(least(&elects, true), least(&locks, false).map(|lock| lock + 1));
}
