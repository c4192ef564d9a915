//! Read/write locks: readers hold together, writers alone, and nobody overtakes.

use std::time::Duration;

use test_support::{TIMEOUT, acquire_in_background, eventually, session_id};
use zklock::{Access, Code, Guard, GuardState, LockError, ReadWriteLock, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{CreateMode, Op};

use crate::bench::Bench;
use crate::line::{Waiting, held, join, release};
use crate::place::{each_queue, late};

const QUEUE: Strategy = Strategy::Queue;
const SOON: Duration = Duration::from_millis(200);

each_queue! {
    fn readers_hold_together(place) {
        let guards: Vec<Guard> =
            (0..4).map(|_| place.read_write().read().acquire().within(TIMEOUT).wait().unwrap()).collect();
        assert!(guards.iter().all(|guard| guard.state() == GuardState::Held));
        assert!(guards.is_sorted_by(|a, b| a.fencing_token() < b.fencing_token()));
        assert!(guards.iter().all(|guard| guard.access() == Some(Access::Read)));
        let tried = place.read_write().read().try_acquire().wait().unwrap();
        release(guards.into_iter().chain(tried));
        place.expect_free();
    }

    fn readers_hold_together_however_many_pages_the_store_reads(place) {
        // Stores read 16 or 32 claims at a time.
        let lock = place.read_write().read();
        let mut readers: Vec<Guard> =
            (0..33).map(|_| lock.acquire().within(TIMEOUT).wait().unwrap()).collect();
        let seen = lock.contenders().wait().unwrap();
        assert_eq!(seen.len(), readers.len());
        assert!(seen.iter().all(|reader| reader.held_since.is_some()));
        let writer = join(&place.read_write().write(), 34);
        let last = readers.pop();
        release(readers);
        assert!(!writer.is_finished(), "a reader holds");
        release(last);
        release([held(writer)]);
        place.expect_free();
    }

    fn a_reader_knows_the_writer_ahead_of_it_behind_any_number_of_readers(place) {
        let writer = place.read_write().write().acquire().wait().unwrap();
        let lock = place.read_write().read();
        let readers: Vec<_> = (0..33).map(|before| join(&lock, before + 2)).collect();
        let (_, ahead) = late(|limit| lock.acquire().within(limit).wait().unwrap_err());
        assert_eq!(ahead.token, writer.fencing_token());
        release([writer]);
        release(readers.into_iter().map(held));
        place.expect_free();
    }

    fn a_writer_holds_alone(place) {
        let guard = place.read_write().write().acquire().wait().unwrap();
        assert_eq!(guard.access(), Some(Access::Write));
        let others = place.read_write();
        for lock in [others.read(), others.write()] {
            assert!(lock.try_acquire().wait().unwrap().is_none());
            let (_, ahead) = late(|limit| lock.acquire().within(limit).wait().unwrap_err());
            assert_eq!((&*ahead.path, ahead.token), (&*guard.claim_path(), guard.fencing_token()));
        }
        release([guard]);
        place.expect_free();
    }

    fn a_writer_waits_for_all_readers_before_it_whoever_of_them_goes_last(place) {
        for last in 0..3 {
            let mut readers: Vec<Guard> =
                (0..3).map(|_| place.read_write().read().acquire().wait().unwrap()).collect();
            let writer = join(&place.read_write().write(), 4);
            let stays = readers.remove(last);
            release(readers);
            let looker = place.read_write().write();
            assert!(looker.try_acquire().wait().unwrap().is_none());
            assert!(!writer.is_finished(), "a reader holds");
            let token = stays.fencing_token();
            release([stays]);
            let writer = held(writer);
            assert!(writer.fencing_token() > token);
            release([writer]);
        }
        place.expect_free();
    }

    fn no_reader_overtakes_a_writer_that_waits(place) {
        let reading = place.read_write().read().acquire().wait().unwrap();
        let writer = join(&place.read_write().write(), 2);
        let late = join(&place.read_write().read(), 3);
        let tries = place.read_write();
        assert!(tries.read().try_acquire().wait().unwrap().is_none());
        assert!(tries.read().acquire().within(SOON).wait().unwrap_err().is_timeout());
        assert!(!late.is_finished() && !writer.is_finished());
        let before = reading.fencing_token();
        release([reading]);
        let writing = held(writer);
        assert!(!late.is_finished(), "the writer holds");
        let between = writing.fencing_token();
        release([writing]);
        let late = held(late);
        // So a store that has seen the writer refuses the reader before it, and not the one after.
        assert!(before < between && between < late.fencing_token());
        release([late]);
        place.expect_free();
    }

    fn readers_behind_a_writer_come_in_when_it_gives_up(place) {
        let reading = place.read_write().read().acquire().wait().unwrap();
        let writer = place.read_write().write();
        let mut giving_up = writer.acquire();
        test_support::poll_until(&mut giving_up, || writer.contenders().wait().unwrap().len() == 2);
        let late: Vec<Waiting> = (3..6).map(|place_in_line| join(&place.read_write().read(), place_in_line)).collect();
        assert!(late.iter().all(|late| !late.is_finished()));
        drop(giving_up);
        release(late.into_iter().map(held));
        assert_eq!(reading.state(), GuardState::Held);
        release([reading]);
        place.expect_free();
    }

    fn all_readers_behind_a_writer_come_in_when_it_lets_go_and_none_behind_the_next(place) {
        let writing = place.read_write().write().acquire().wait().unwrap();
        let readers: Vec<Waiting> = (2..5).map(|in_line| join(&place.read_write().read(), in_line)).collect();
        let next = join(&place.read_write().write(), 5);
        let behind = join(&place.read_write().read(), 6);
        release([writing]);
        let readers: Vec<Guard> = readers.into_iter().map(held).collect();
        assert!(!next.is_finished() && !behind.is_finished());
        release(readers);
        let next = held(next);
        assert!(!behind.is_finished());
        release([next]);
        release([held(behind)]);
        place.expect_free();
    }

    fn an_exclusive_lock_on_the_path_excludes_readers_and_writers(place) {
        let exclusive = place.lock().acquire().wait().unwrap();
        let reader = join(&place.read_write().read(), 2);
        let also = join(&place.lock(), 3);
        assert!(place.read_write().read().try_acquire().wait().unwrap().is_none());
        release([exclusive]);
        let reading = held(reader);
        assert!(place.lock().try_acquire().wait().unwrap().is_none());
        assert!(!also.is_finished());
        release([reading]);
        release([held(also)]);
        place.expect_free();
    }

    fn who_holds_and_who_waits_can_be_seen(place) {
        let readers: Vec<Guard> =
            (0..2).map(|_| place.read_write().label("reader").read().acquire().wait().unwrap()).collect();
        let writer = join(&place.read_write().label("writer").write(), 3);
        let late = join(&place.read_write().label("late").read(), 4);
        let seen = place.read_write().read().contenders().wait().unwrap();
        let labels: Vec<_> = seen.iter().map(|contender| &*contender.label).collect();
        assert_eq!(labels, ["reader", "reader", "writer", "late"]);
        let holds: Vec<bool> = seen.iter().map(|contender| contender.held_since.is_some()).collect();
        assert_eq!(holds, [true, true, false, false]);
        let first = place.read_write().write().holder().wait().unwrap().unwrap();
        assert_eq!(first.token, readers[0].fencing_token());
        release(readers);
        release([held(writer)]);
        release([held(late)]);
        assert!(!place.read_write().read().is_locked().wait().unwrap());
        place.expect_free();
    }

    fn a_reader_that_is_lost_lets_the_writer_in_and_knows(place) {
        let reading = place.read_write().read().acquire().wait().unwrap();
        let writer = join(&place.read_write().write(), 2);
        place.lose();
        let writing = held(writer);
        assert!(place.is_its_loss(reading.lost().wait_timeout(TIMEOUT).expect("it is lost")));
        assert!(reading.release().wait().unwrap_err().is_lost());
        release([writing]);
        place.expect_free();
    }

    fn work_under_a_read_lock_ends_with_it(place) {
        let lock = place.read_write().read();
        let other = place.read_write().read();
        let work = async move {
            // While one reads, so does the other.
            other.acquire().within(TIMEOUT).await.unwrap().release().await.unwrap();
            7
        };
        assert_eq!(lock.while_held(|_| work).wait().unwrap(), 7);
        place.expect_free();
    }

    fn only_a_queue_knows_readers_and_writers(place) {
        let locks = place.read_write();
        for lock in [locks.read(), locks.write()] {
            for strategy in [Strategy::Poll, Strategy::Watch] {
                let refused = lock.clone().strategy(strategy).acquire().wait().unwrap_err();
                assert!(matches!(refused, LockError::Unusable { .. }), "{refused:?}");
                assert_eq!(refused.code(), Code::BAD_ARGUMENTS);
            }
        }
    }
}

/// A claim of another client, called so.
fn stranger(bench: &Bench, name: &str) -> test_support::Stranger {
    let prefix = format!("{}/{name}", bench.path);
    test_support::Stranger::claims(bench.raw(), &prefix, CreateMode::EphemeralSequential)
}

#[test]
fn curators_claims_are_known_for_what_they_are() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut reads = stranger(&bench, "_c_8a7ed3a3-3e4f-44c2-a8f0-3b6e6d0a9c11-__READ__");
    let client = bench.direct();
    let lock = client.read_write(&bench.path);
    let reading = lock.read().acquire().within(TIMEOUT).wait().unwrap();
    assert!(lock.write().try_acquire().wait().unwrap().is_none());
    let mut writes = stranger(&bench, "_c_5d1c1d2e-9f1e-4b56-8f8e-0a1b2c3d4e5f-__WRIT__");
    assert!(lock.read().try_acquire().wait().unwrap().is_none());
    let late = acquire_in_background(&lock.read());
    eventually("it watches the writer", || bench.watches_of(session_id(&client)) >= 1);
    reads.leave();
    release([reading]);
    assert!(!late.is_finished());
    writes.leave();
    release([held(late)]);
    bench.expect_free(QUEUE);
}

#[test]
fn claims_are_called_as_curator_calls_its_own_before_the_number() {
    let bench = Bench::shared();
    let lock = bench.direct().read_write(&bench.path);
    for (lock, mark) in [(lock.read(), "-__READ__"), (lock.write(), "-__WRIT__")] {
        let guard = lock.acquire().wait().unwrap();
        let path = guard.claim_path();
        let (before, number) = path.split_at(path.len() - 10);
        assert!(before.ends_with(mark), "{path}");
        assert!(number.bytes().all(|digit| digit.is_ascii_digit()), "{path}");
        release([guard]);
    }
}

#[test]
fn each_reader_that_waits_watches_the_nearest_writer_before_it_alone() {
    const READERS: usize = 6;
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let mut holds = stranger(&bench, "a-__WRIT__");
    let mut waits = stranger(&bench, "b-__WRIT__");
    let clients: Vec<_> = (0..READERS).map(|_| bench.direct()).collect();
    let readers: Vec<Waiting> = clients
        .iter()
        .map(|client| acquire_in_background(&client.read_write(&bench.path).read()))
        .collect();
    let watched = |path: &str| bench.server.watches().unwrap().get(path).map_or(0, Vec::len);
    eventually("all watch the nearest writer", || watched(&waits.path) == READERS);
    assert_eq!(watched(&holds.path), 0);
    waits.leave();
    eventually("all watch the writer before", || watched(&holds.path) == READERS);
    holds.leave();
    release(readers.into_iter().map(held));
    for client in &clients {
        eventually("no watch is left", || bench.watches_of(session_id(client)) == 0);
    }
    bench.expect_free(QUEUE);
}

#[test]
fn a_free_read_or_write_lock_costs_a_create_a_list_and_a_delete() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.client();
    let locks = client.read_write(&bench.path);
    release([locks.read().acquire().wait().unwrap()]);
    for lock in [locks.read(), locks.write()] {
        let asked = bench.asked_by(|| release([lock.acquire().wait().unwrap()]));
        assert_eq!(asked, [Op::Create2, Op::GetChildren2, Op::Delete]);
    }
}

#[test]
fn a_writer_behind_readers_asks_little_when_they_go_in_their_order() {
    const READERS: usize = 8;
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let reading: Vec<Guard> = (0..READERS)
        .map(|_| bench.direct().read_write(&bench.path).read().acquire().wait().unwrap())
        .collect();
    let client = bench.client();
    let lock = client.read_write(&bench.path).write();
    bench.proxy.clear_seen();
    let writing = acquire_in_background(&lock);
    eventually("it watches", || bench.watches_of(session_id(&client)) > 0);
    release(reading);
    release([held(writing)]);
    // The directory, the claim, the listing, the last reader, and all once more when that has gone.
    let asked = bench.asked();
    // A client that waits or holds for long watches its own claim, so it hears when that is deleted.
    assert!(asked.len() <= 7, "{asked:?}");
    assert!((1..=2).contains(&bench.proxy.count(&Rule::event())));
}

#[test]
fn a_reader_behind_a_writer_asks_five_times_and_is_woken_once() {
    let bench = Bench::shared();
    bench.prepare(QUEUE);
    let client = bench.client();
    let lock = client.read_write(&bench.path).read();
    // The first on a path asks for the directory.
    release([lock.acquire().wait().unwrap()]);
    let asked = bench.asked_by(|| {
        let mut writer = stranger(&bench, "a-__WRIT__");
        let reading = acquire_in_background(&lock);
        eventually("it watches", || bench.watches_of(session_id(&client)) > 0);
        writer.leave();
        release([held(reading)]);
    });
    let waited = [Op::Create2, Op::GetChildren2, Op::GetData, Op::GetChildren2, Op::Delete];
    assert_eq!(asked, waited);
    assert_eq!(bench.proxy.count(&Rule::event()), 1);
}

#[test]
fn readers_and_writers_of_one_client_stand_in_one_line() {
    let bench = Bench::shared();
    let client = bench.direct();
    let locks: ReadWriteLock = client.read_write(&bench.path);
    let first = locks.read().acquire().wait().unwrap();
    let second = locks.read().acquire().wait().unwrap();
    let writer = join(&locks.write(), 3);
    let plain = join(&client.lock(&bench.path), 4);
    release([first]);
    assert!(!writer.is_finished() && !plain.is_finished());
    release([second]);
    let writing = held(writer);
    assert!(!plain.is_finished());
    release([writing]);
    release([held(plain)]);
    bench.expect_free(QUEUE);
}
