//! Semaphores: never more permits taken than there are, in the order of the requests, however large.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{TIMEOUT, acquire_in_background, eventually, poll_until, session_id};
use zklock::zookeeper::{Acl, CreateMode, Permissions};
use zklock::{Client, Code, Guard, GuardState, LockError, Semaphore, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{Op, Ops};

use crate::bench::Bench;
use crate::line::{Waiting, held, join, release};
use crate::place::{each_queue, late};

const QUEUE: Strategy = Strategy::Queue;

fn take(semaphore: &Semaphore, permits: u32) -> Guard {
    semaphore.permits(permits).acquire().within(TIMEOUT).wait().unwrap()
}

each_queue! {
    fn as_many_hold_as_there_are_permits(place) {
        // More than one page of a database.
        let most = 20;
        let many = place.semaphore(most);
        let mut guards: Vec<Guard> = (3..most).map(|_| take(&many, 1)).collect();
        guards.extend((0..3).map(|_| take(&place.semaphore(most), 1)));
        assert!(guards.iter().all(|guard| guard.state() == GuardState::Held));
        let other = place.semaphore(most);
        assert!(other.permit().try_acquire().wait().unwrap().is_none());
        let (_, ahead) = late(|limit| other.permit().acquire().within(limit).wait().unwrap_err());
        assert_eq!(ahead.token, guards[most as usize - 1].fencing_token());
        release(guards);
        place.expect_free();
    }

    fn a_lock_below_a_semaphore_does_not_keep_its_limit_from_being_changed(place) {
        let below = place.lock_at(&format!("{}/limit", place.path)).acquire().wait().unwrap();
        let semaphore = place.semaphore(1);
        let first = take(&semaphore, 1);
        let next = join(&place.semaphore(1).permit(), 2);
        semaphore.set_limit(2).within(TIMEOUT).wait().unwrap();
        release([held(next), first, below]);
        place.expect_free();
    }

    fn whoever_goes_first_lets_the_next_one_in(place) {
        for goes in 0..3 {
            let mut guards: Vec<Guard> = (0..3).map(|_| take(&place.semaphore(3), 1)).collect();
            let next = join(&place.semaphore(3).permit(), 4);
            let after = join(&place.semaphore(3).permit(), 5);
            release([guards.remove(goes)]);
            let next = held(next);
            assert!(!after.is_finished());
            // The claim before the one that waits has not moved, and holds by now.
            release([guards.remove(0)]);
            let after = held(after);
            release(guards.into_iter().chain([next, after]));
        }
        place.expect_free();
    }

    fn a_request_for_many_is_not_overtaken_by_those_for_few(place) {
        let one = take(&place.semaphore(3), 1);
        let many = join(&place.semaphore(3).permits(3), 2);
        let few = join(&place.semaphore(3).permit(), 3);
        assert!(place.semaphore(3).permit().try_acquire().wait().unwrap().is_none());
        assert!(!many.is_finished() && !few.is_finished(), "two permits are free, and not for them");
        release([one]);
        let many = held(many);
        assert!(!few.is_finished());
        release([many]);
        release([held(few)]);
        place.expect_free();
    }

    fn those_behind_a_request_that_is_given_up_are_served(place) {
        let one = take(&place.semaphore(3), 1);
        let lock = place.semaphore(3).permits(3);
        let mut giving_up = lock.acquire();
        test_support::poll_until(&mut giving_up, || lock.contenders().wait().unwrap().len() == 2);
        let few: Vec<Waiting> = (3..5).map(|in_line| join(&place.semaphore(3).permit(), in_line)).collect();
        drop(giving_up);
        release(few.into_iter().map(held));
        release([one]);
        place.expect_free();
    }

    fn permits_of_several_sizes_add_up(place) {
        let two = take(&place.semaphore(3), 2);
        let one = take(&place.semaphore(3), 1);
        assert!(place.semaphore(3).permit().try_acquire().wait().unwrap().is_none());
        release([two]);
        assert!(place.semaphore(3).permits(3).try_acquire().wait().unwrap().is_none());
        let again = place.semaphore(3).permits(2).try_acquire().wait().unwrap().unwrap();
        release([one, again]);
        release([take(&place.semaphore(3), 3)]);
        place.expect_free();
    }

    fn more_permits_are_given_to_those_who_wait(place) {
        let semaphore = place.semaphore(1);
        let first = take(&semaphore, 1);
        let waiting: Vec<Waiting> = (2..5).map(|in_line| join(&place.semaphore(1).permit(), in_line)).collect();
        semaphore.set_limit(4).wait().unwrap();
        let others: Vec<Guard> = waiting.into_iter().map(held).collect();
        assert_eq!(place.semaphore(1).limit().wait().unwrap(), 4, "what a program gives counts no more");
        assert!(place.semaphore(9).permit().try_acquire().wait().unwrap().is_none());
        release(others.into_iter().chain([first]));
        place.expect_free();
    }

    fn fewer_permits_take_nobody_s_away_and_let_nobody_in_until_enough_are_back(place) {
        let mut guards: Vec<Guard> = (0..3).map(|_| take(&place.semaphore(3), 1)).collect();
        place.semaphore(3).set_limit(2).wait().unwrap();
        // The claim before theirs holds, though there are too few permits for it by now.
        let next = join(&place.semaphore(3).permit(), 4);
        let after = join(&place.semaphore(3).permit(), 5);
        assert!(guards.iter().all(|guard| guard.state() == GuardState::Held));
        // It is asked to release its permit all the same.
        let asks = place.semaphore(3).permit();
        let last = asks.contenders().wait().unwrap().swap_remove(2);
        assert_eq!(last.token, guards[2].fencing_token());
        assert!(asks.request_release(&last, "fewer").wait().unwrap());
        let heard = guards[2].release_requests().wait_timeout(TIMEOUT);
        assert_eq!(heard.unwrap().as_deref(), Some("fewer"));
        release([guards.remove(0)]);
        assert!(place.semaphore(3).permit().try_acquire().wait().unwrap().is_none());
        assert!(!next.is_finished());
        release([guards.remove(0)]);
        let next = held(next);
        assert!(!after.is_finished());
        release(guards);
        let after = held(after);
        release([next, after]);
        place.expect_free();
    }

    fn a_request_for_more_than_there_are_fails_also_while_it_waits(place) {
        let semaphore = place.semaphore(3);
        let one = take(&semaphore, 1);
        let unusable = |error: LockError| {
            assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
            assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        };
        unusable(semaphore.permits(4).acquire().wait().unwrap_err());
        unusable(semaphore.permits(4).try_acquire().wait().unwrap_err());
        unusable(semaphore.permits(0).acquire().wait().unwrap_err());
        unusable(place.semaphore(0).permit().acquire().wait().unwrap_err());
        unusable(semaphore.set_limit(0).wait().unwrap_err());
        let waits = join(&semaphore.permits(3), 2);
        place.semaphore(3).set_limit(2).wait().unwrap();
        unusable(waits.join().unwrap().unwrap_err());
        release([take(&semaphore, 1), one]);
        place.expect_free();
    }

    fn an_exclusive_lock_on_the_path_takes_all_permits(place) {
        let one = take(&place.semaphore(2), 1);
        let exclusive = join(&place.lock(), 2);
        assert!(place.semaphore(2).permit().try_acquire().wait().unwrap().is_none());
        let behind = join(&place.semaphore(2).permit(), 3);
        release([one]);
        let alone = held(exclusive);
        assert!(!behind.is_finished());
        release([alone]);
        release([held(behind)]);
        place.expect_free();
    }

    fn permits_of_a_holder_that_is_lost_come_back(place) {
        let first = take(&place.semaphore(2), 1);
        let second = take(&place.semaphore(2), 1);
        let next = join(&place.semaphore(2).permit(), 3);
        place.lose();
        let next = held(next);
        assert!(place.is_its_loss(first.lost().wait_timeout(TIMEOUT).expect("it is lost")));
        release([second, next]);
        place.expect_free();
    }

    fn who_holds_permits_and_who_waits_can_be_seen(place) {
        let guards = [take(&place.semaphore(3).label("one"), 1), take(&place.semaphore(3).label("two"), 2)];
        let waits = join(&place.semaphore(3).label("waits").permit(), 3);
        let seen = place.semaphore(3).permit().contenders().wait().unwrap();
        let seen: Vec<_> = seen.iter().map(|it| (&*it.label, it.held_since.is_some())).collect();
        assert_eq!(seen, [("one", true), ("two", true), ("waits", false)]);
        release(guards);
        release([held(waits)]);
        place.expect_free();
    }

    fn never_more_permits_are_taken_than_there_are_whoever_asks_for_how_many(place) {
        const LIMIT: u32 = 4;
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (semaphore, taken) = (place.semaphore(LIMIT), &taken);
                scope.spawn(move || {
                    for round in 0..12 {
                        let permits = 1 + (thread + round) % LIMIT;
                        let guard = take(&semaphore, permits);
                        let before = taken.fetch_add(permits, Ordering::SeqCst);
                        assert!(before + permits <= LIMIT, "{before} and {permits}");
                        taken.fetch_sub(permits, Ordering::SeqCst);
                        guard.release().wait().unwrap();
                    }
                });
            }
        });
        place.expect_free();
    }
}

#[test]
fn a_free_semaphore_costs_a_create_a_list_and_a_delete() {
    let bench = Bench::shared();
    let client = bench.client();
    let semaphore = client.semaphore(&bench.path, 2);
    release([take(&semaphore, 1)]);
    let asked = bench.asked_by(|| {
        release([take(&semaphore, 1), take(&semaphore, 1)].into_iter().rev());
    });
    let one = [Op::Create2, Op::GetChildren2];
    assert_eq!(asked, [one.as_slice(), &one, &[Op::Delete, Op::Delete]].concat());
}

#[test]
fn who_is_next_in_line_asks_six_times() {
    let bench = Bench::shared();
    let client = bench.client();
    let semaphore = client.semaphore(&bench.path, 1);
    // The first on a path asks for the directory, and makes it.
    release([take(&semaphore, 1)]);
    let other = bench.direct();
    let asked = bench.asked_by(|| {
        let holds = take(&other.semaphore(&bench.path, 1), 1);
        let next = acquire_in_background(&semaphore.permit());
        let watching = Rule::reply(Op::GetChildren2).watching(true);
        eventually("it watches", || bench.proxy.count(&watching) == 1);
        release([holds]);
        release([held(next)]);
    });
    let list = Op::GetChildren2;
    assert_eq!(asked, [Op::Create2, list, list, Op::GetData, list, Op::Delete]);
}

#[test]
fn all_who_wait_but_the_next_in_line_watch_the_claim_before_their_own() {
    const WAITERS: usize = 5;
    let bench = Bench::shared();
    let holders: Vec<Guard> =
        (0..2).map(|_| take(&bench.direct().semaphore(&bench.path, 2), 1)).collect();
    let clients: Vec<_> = (0..WAITERS).map(|_| bench.client()).collect();
    bench.proxy.clear_seen();
    let waiters: Vec<Waiting> = clients
        .iter()
        .enumerate()
        .map(|(place, client)| join(&client.semaphore(&bench.path, 2).permit(), place + 3))
        .collect();
    let claims = bench.claims(QUEUE);
    // Without the first, which is next in line and watches the directory.
    let waits: Vec<i64> = clients.iter().map(session_id).collect();
    let watched = |claim: usize| {
        let watches = bench.server.watches().unwrap();
        let by = watches.get(&claims[claim].path);
        by.is_some_and(|by| by.iter().any(|session| waits.contains(session)))
    };
    eventually("each watches the one before", || (2..WAITERS + 1).all(watched));
    assert!(!watched(0) && !watched(1) && !watched(WAITERS + 1));
    release(holders);
    // One after the other: two hold at a time.
    for waiter in waiters {
        release([held(waiter)]);
    }
    let events = bench.proxy.count(&Rule::event());
    // Each is woken when the one before is admitted, and when permits come back; late comers wake the next in line.
    assert!(events <= 4 * WAITERS, "{events} events");
    for client in &clients {
        eventually("no watch is left", || bench.watches_of(session_id(client)) == 0);
    }
    bench.expect_free(QUEUE);
}

#[test]
fn what_is_asked_of_a_claim_before_it_knows_that_it_holds_is_heard() {
    let bench = Bench::shared();
    let (first, second, third) = (bench.direct(), bench.client(), bench.direct());
    let permit = |client: &Client| client.semaphore(&bench.path, 1).permit();
    let guard = permit(&first).acquire().within(TIMEOUT).wait().unwrap();
    let next = acquire_in_background(&permit(&second));
    let lists = |rule: fn(Ops) -> Rule| bench.proxy.count(&rule(Ops::lists()));
    eventually("it watches the directory", || {
        let watching = Rule::request(Ops::lists()).watching(true);
        bench.proxy.count(&watching) > 0 && lists(Rule::request) == lists(Rule::reply)
    });
    // It has to be woken once the second holds.
    let behind = acquire_in_background(&permit(&third));
    eventually("it waits", || !bench.watched_by(session_id(&third)).is_empty());
    let look = bench.proxy.hold(Rule::request(Ops::lists()).once());
    guard.release().wait().unwrap();
    look.wait_reached(TIMEOUT).unwrap();
    let asks = permit(&first);
    let holder = asks.holder().wait().unwrap().unwrap();
    assert!(asks.request_release(&holder, "please").wait().unwrap());
    look.release();
    let next = next.join().unwrap().unwrap();
    assert_eq!(next.fencing_token(), holder.token);
    let heard = next.release_requests().wait_timeout(TIMEOUT);
    assert_eq!(heard.ok().flatten().as_deref(), Some("please"));
    next.release().wait().unwrap();
    behind.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn the_limit_outlives_those_who_know_it() {
    let bench = Bench::shared();
    {
        let client = bench.direct();
        client.semaphore(&bench.path, 2).set_limit(5).wait().unwrap();
        client.close().wait().unwrap();
    }
    let client = bench.direct();
    let semaphore = client.semaphore(&bench.path, 2);
    assert_eq!(semaphore.limit().wait().unwrap(), 5);
    release([take(&semaphore, 5)]);
    let zklock::zookeeper::Znode { data, stat, .. } = client.get(&bench.path).wait().unwrap();
    assert_eq!(String::from_utf8(data).unwrap(), "zklock/1 semaphore\nlimit=5\nmost=5\n");
    assert_eq!(stat.ephemeral_owner, 0, "a container would go when it is empty");
}

#[test]
fn a_number_that_somebody_has_written_by_hand_or_over_counts() {
    let bench = Bench::shared();
    let client = bench.direct();
    let semaphore = client.semaphore(&bench.path, 2);
    release([take(&semaphore, 2)]);
    client.set(&bench.path, b"limit=3", None).wait().unwrap();
    release([take(&semaphore, 3)]);
    // What can't be read is as good as nothing.
    client.set(&bench.path, b"many", None).wait().unwrap();
    assert!(semaphore.permits(3).acquire().wait().unwrap_err().code() == Code::BAD_ARGUMENTS);
    release([take(&semaphore, 2)]);
    assert_eq!(semaphore.limit().wait().unwrap(), 2);
}

#[test]
fn a_number_written_by_hand_counts_for_waiters_once_a_child_has_come_and_gone() {
    let bench = Bench::shared();
    let client = bench.direct();
    let semaphore = client.semaphore(&bench.path, 2);
    let held = take(&semaphore, 2);
    let waiting = acquire_in_background(&semaphore.permit());
    eventually("it waits", || bench.watches_of(session_id(&client)) > 0);
    client.set(&bench.path, b"limit=3", None).wait().unwrap();
    let child = format!("{}/any", bench.path);
    client.create(&child, b"", CreateMode::Persistent).wait().unwrap();
    client.delete(&child, None).wait().unwrap();
    release([waiting.join().unwrap().unwrap(), held]);
}

#[test]
fn who_may_not_write_the_limit_is_told() {
    let bench = Bench::shared();
    let client = bench.direct();
    let all_but_write = Permissions::READ | Permissions::CREATE | Permissions::DELETE;
    let acl = [Acl::new(all_but_write, "world", "anyone")];
    client.create_with_acl(&bench.path, b"", CreateMode::Persistent, &acl).wait().unwrap();
    let semaphore = client.semaphore(&bench.path, 2);
    for refused in [
        semaphore.permit().acquire().wait().map(drop).unwrap_err(),
        semaphore.set_limit(3).wait().unwrap_err(),
    ] {
        assert!(matches!(refused, LockError::NotPermitted { .. }), "{refused:?}");
        let missing = format!("no WRITE permission on {}", bench.path);
        assert!(refused.to_string().contains(&missing), "{refused}");
    }
    eventually("no claim is left", || bench.claims(QUEUE).is_empty());
}

#[test]
fn of_two_limits_that_are_set_at_once_the_later_keeps_what_the_earlier_has_written() {
    let bench = Bench::shared();
    let semaphore = bench.client().semaphore(&bench.path, 2);
    release([take(&semaphore, 1)]);
    let late = bench.proxy.hold(Rule::request(Op::Multi).once());
    let setting = thread::spawn(move || semaphore.set_limit(3).within(TIMEOUT).wait());
    late.wait_reached(TIMEOUT).unwrap();
    let other = bench.direct();
    other.semaphore(&bench.path, 2).set_limit(7).wait().unwrap();
    late.release();
    setting.join().unwrap().unwrap();
    let data = other.get(&bench.path).wait().unwrap().data;
    assert_eq!(String::from_utf8(data).unwrap(), "zklock/1 semaphore\nlimit=3\nmost=7\n");
}

#[test]
fn a_limit_whose_reply_is_late_or_lost_for_good_may_be_set() {
    let bench = Bench::shared();
    let client = bench.client();
    let semaphore = client.semaphore(&bench.path, 2);
    release([take(&semaphore, 1)]);
    let set = |limit| {
        let late = bench.proxy.hold(Rule::reply(Op::Multi).once());
        let mut setting = semaphore.set_limit(limit);
        poll_until(&mut setting, || late.is_reached());
        (late, setting)
    };
    let (late, setting) = set(3);
    let error = setting.within(Duration::from_millis(100)).wait().unwrap_err();
    assert!(error.is_outcome_unknown() && !error.is_timeout(), "{error:?}");
    assert_eq!(bench.direct().semaphore(&bench.path, 2).limit().wait().unwrap(), 3);
    drop(late);
    let (late, setting) = set(4);
    bench.proxy.cut();
    drop(client.close());
    drop(late);
    let error = setting.within(TIMEOUT).wait().unwrap_err();
    assert!(error.is_outcome_unknown(), "{error:?}");
}

#[test]
fn a_limit_is_set_once_though_its_reply_is_lost() {
    let bench = Bench::shared();
    let client = bench.client();
    let semaphore = client.semaphore(&bench.path, 2);
    release([take(&semaphore, 1)]);
    let lost = bench.proxy.on(Rule::reply(Op::Multi).once(), zklock_testing::Action::Drop);
    semaphore.set_limit(3).wait().unwrap();
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert_eq!(semaphore.limit().wait().unwrap(), 3);
    assert_eq!(client.get(&bench.path).wait().unwrap().stat.version, 1);
    assert_eq!(bench.children(), [""; 0]);
}
