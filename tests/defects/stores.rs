//! Locks of other stores than ZooKeeper: keys that expire, rows that nobody owns.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use test_support::{Link, Lost, TIMEOUT, eventually};
use zklock::{GuardState, Owner};
use zklock::{Store, StoreOptions};
use zklock_testing::Database;

use crate::seeds::redis_key::Key;
use crate::seeds::rows::{Expiring, Inserted, Versioned};

const PATH: &str = "/locks/a";
const LEASE: Duration = Duration::from_secs(1);
/// Longer than any of these tests.
const LONG: Duration = Duration::from_secs(3_600);

/// A server of Redis, as if zklock's locks had been there since long before its start.
fn redis() -> Database {
    let server = Database::redis().unwrap();
    let info: String = ask(&server, &["INFO", "server"]);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
    let _: () = ask(&server, &["HSET", "zklock:state", "run", run.trim()]);
    server
}

fn ask<T: redis::FromRedisValue>(server: &Database, command: &[&str]) -> T {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd(command[0]).arg(&command[1..]).query(&mut connection).unwrap()
}

/// Has zklock's session end that holds the lock, as if its time had passed.
fn expire(server: &Database) {
    let claims: Vec<String> = ask(server, &["ZRANGE", &format!("zklock:queue:{PATH}"), "0", "0"]);
    let session: String = ask(server, &["HGET", &format!("zklock:claim:{}", claims[0]), "session"]);
    let _: i64 = ask(server, &["ZADD", "zklock:sessions", "1", &session]);
}

fn connect(address: &str, lease: Duration) -> Store {
    let options = StoreOptions::new().session_timeout(lease).connect_timeout(TIMEOUT);
    options.connect(address).wait().unwrap()
}

fn file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("locks.db");
    (directory, file)
}

fn open(file: &PathBuf) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(TIMEOUT).unwrap();
    connection
}

#[test]
fn work_that_takes_longer_than_the_lease_stays_locked() {
    let server = redis();
    let (mut first, mut second) =
        (Key::at(&server.url(), LEASE / 10), Key::at(&server.url(), LEASE / 10));
    assert!(first.lock());
    // The first is at work.
    eventually("two hold", || second.lock());

    let (store, other) = (connect(&server.url(), LEASE), connect(&server.url(), LEASE));
    let guard = store.lock(PATH).acquire().wait().unwrap();
    assert!(other.lock(PATH).acquire().within(LEASE + LEASE / 4).wait().unwrap_err().is_timeout());
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
}

#[test]
fn a_release_after_the_expiry_does_not_free_the_next_holders_lock() {
    let server = redis();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Key::at(&server.url(), LONG));
    assert!(first.lock());
    first.expire();
    assert!(second.lock());
    first.unlock();
    assert!(third.lock(), "two hold");

    let (store, other) = (connect(&server.url(), LONG), connect(&server.url(), LONG));
    let guard = store.lock(PATH).acquire().wait().unwrap();
    expire(&server);
    let next = other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(guard.release().wait().unwrap_err().is_lost());
    let third = connect(&server.url(), LONG);
    assert!(third.lock(PATH).try_acquire().wait().unwrap().is_none());
    assert_eq!(next.state(), GuardState::Held);
    next.release().wait().unwrap();
}

#[test]
fn a_set_whose_reply_was_lost_is_not_called_a_refusal() {
    let server = redis();
    let link = Link::to(server.addr());
    let (mut first, mut second) =
        (Key::at(&server.url_at(link.address), LONG), Key::at(&server.url(), LONG));
    link.lose(Lost::Reply, 0);
    assert!(!first.lock());
    assert!(!second.lock(), "nobody holds it, and nobody gets it");

    let (store, other) =
        (connect(&server.url_at(link.address), LONG), connect(&server.url(), LONG));
    // Its session is there.
    store.lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
    link.lose(Lost::Reply, 0);
    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(link.has_lost());
    assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
    other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn an_owner_whose_lock_has_expired_does_not_enter_again() {
    let server = redis();
    let (mut first, mut second) = (Key::at(&server.url(), LONG), Key::at(&server.url(), LONG));
    assert!(first.lock_again());
    first.expire();
    assert!(second.lock_again());
    assert!(first.lock_again(), "two hold");

    let (store, other) = (connect(&server.url(), LONG), connect(&server.url(), LONG));
    let (lock, owner) = (store.lock(PATH).reentrant(), Owner::new());
    let guard = lock.acquire(&owner).wait().unwrap();
    expire(&server);
    let next = other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    // It notices by its next renewal or look, or is told by this acquire.
    assert!(guard.lost().wait_timeout(TIMEOUT).is_some());
    assert!(lock.try_acquire(&owner).wait().unwrap_err().is_lost());
    assert_eq!(next.state(), GuardState::Held);
    next.release().wait().unwrap();
}

#[test]
fn a_row_whose_time_has_passed_does_not_lock_for_ever() {
    let (_directory, file) = file();
    let rows = Expiring::new(open(&file));
    assert!(rows.lock("a program that has crashed"));
    rows.expire();
    assert!(!rows.lock("the next one"), "nobody holds it, and nobody ever will");

    let address = format!("sqlite:{}", file.display());
    let (store, other) = (connect(&address, LONG), connect(&address, LONG));
    let guard = store.lock(PATH).acquire().wait().unwrap();
    open(&file).execute_batch("UPDATE zklock_session SET expires = 1").unwrap();
    other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    assert!(guard.release().wait().unwrap_err().is_lost());
}

#[test]
fn a_commit_whose_answer_was_lost_is_not_called_a_failure() {
    let server = Database::postgres().unwrap();
    let link = Link::to(server.addr());
    let (first, second) = (Inserted::at(&server.url_at(link.address)), Inserted::at(&server.url()));
    assert!(!first.lock(|| link.lose(Lost::Reply, 0)));
    assert!(!second.lock(|| {}), "nobody holds it, and nobody gets it");

    let (store, other) =
        (connect(&server.url_at(link.address), LONG), connect(&server.url(), LONG));
    store.lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
    // One of them is the commit's. The last is beyond those of an acquire.
    let mut are_lost = [false; 8];
    for (frame, is_lost) in are_lost.iter_mut().enumerate() {
        link.lose(Lost::Reply, frame as u32);
        let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
        *is_lost = link.has_lost();
        assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none(), "{frame}");
        guard.release().wait().unwrap();
        other.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }
    assert!(are_lost[0] && !are_lost[7], "{are_lost:?}");
}

#[test]
fn an_update_that_finds_the_version_it_has_read_is_no_lock() {
    let (_directory, file) = file();
    let [first, second] = [(); 2].map(|()| Versioned::new(open(&file)));
    assert!(first.lock());
    // The first is at work.
    assert!(second.lock(), "two hold");

    let address = format!("sqlite:{}", file.display());
    let (store, other) = (connect(&address, LONG), connect(&address, LONG));
    let guard = store.lock(PATH).acquire().wait().unwrap();
    assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
}
