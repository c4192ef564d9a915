//! Locks in a database file: what becomes of them when others lock the file, when somebody deletes it, and when the machine
//! was started anew.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use test_support::{Process, TIMEOUT, acquire_in_background, child_about, eventually, say};
use zklock::StoreOptions;
use zklock::{Access, Code, GuardState, LockError, LostReason};

use crate::elsewhere;
use crate::endurance::{self, Fault, pause};
use crate::place::Elsewhere;

/// A database file of a test's own.
pub struct File {
    directory: TempDir,
    pub session_timeout: Duration,
}

impl File {
    pub fn new() -> File {
        File { directory: tempfile::tempdir().unwrap(), session_timeout: Duration::from_secs(10) }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }

    /// As another program uses it.
    pub fn open(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
    }
}

impl Elsewhere for File {
    fn address(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn lose(&self, path: &str) {
        let mut connection = self.open();
        let behaviour = rusqlite::TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behaviour).unwrap();
        let holder = "SELECT session FROM zklock_claim WHERE path = ?1 ORDER BY number LIMIT 1";
        let holder: String = transaction.query_row(holder, [path], |row| row.get(0)).unwrap();
        transaction.execute("DELETE FROM zklock_claim WHERE session = ?1", [&holder]).unwrap();
        transaction.execute("DELETE FROM zklock_session WHERE id = ?1", [&holder]).unwrap();
        transaction.commit().unwrap();
    }
}

const PATH: &str = "/locks/file";
const SHORT: Duration = Duration::from_secs(2);
const BRIEF: Duration = Duration::from_millis(700);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

pub fn file_with(session_timeout: Duration) -> File {
    File { session_timeout, ..File::new() }
}

#[test]
fn a_file_that_another_program_locks_for_longer_than_the_lease_costs_the_lock_and_nothing_else() {
    let file = file_with(SHORT);
    let (store, other) = (file.connect(), file.connect());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let mut states = guard.states();
    assert_eq!(states.wait(), Some(GuardState::Held));
    let program = file.open();
    program.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let waiting = acquire_in_background(&other.lock(PATH));
    let try_in_vain = other.lock("/locks/beside").try_acquire().wait();
    let late = try_in_vain.unwrap_err();
    assert!(late.is_timeout() && late.to_string().contains("database is locked"), "{late}");
    let late = zklock::connect(&file.address()).within(SHORT).wait().unwrap_err();
    assert!(late.to_string().contains("database is locked"), "{late}");
    let options = StoreOptions::new().connect_timeout(Duration::from_millis(50));
    let refused = options.connect(&file.address()).wait().unwrap_err();
    assert_eq!(refused.code(), Code::API_ERROR, "{refused}");
    assert!(refused.to_string().contains("database is locked"), "{refused}");
    while states.wait_timeout(TIMEOUT).expect("it is lost in time") != Some(GuardState::Lost) {}
    assert_eq!(guard.lost().get(), Some(LostReason::Session));
    assert!(!waiting.is_finished());
    program.execute_batch("COMMIT").unwrap();
    let next = waiting.join().unwrap().unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    let error = guard.release().wait().unwrap_err();
    assert!(matches!(error, LockError::Lost { reason: LostReason::Session, .. }), "{error:?}");
    assert_eq!(next.state(), GuardState::Held);
    next.release().wait().unwrap();
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_file_that_is_deleted_takes_its_locks_along_and_tokens_go_on() {
    let file = file_with(SHORT);
    let (store, waiter) = (file.connect(), file.connect());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&waiter.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.path().display()));
    }
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
    // It waits on in the file that is there now.
    let next = waiting.join().unwrap().unwrap();
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(guard.release().wait().unwrap_err().is_lost());
    assert_eq!(next.state(), GuardState::Held);
    let third = file.connect();
    assert!(third.lock(PATH).try_acquire().wait().unwrap().is_none());
    next.release().wait().unwrap();
}

#[test]
fn a_row_that_somebody_deletes_is_a_lock_that_is_lost_or_a_claim_that_is_made_anew() {
    let delete = |file: &File, number| {
        file.open().execute("DELETE FROM zklock_claim WHERE number = ?1", [number]).unwrap();
    };
    elsewhere::rows_are_deleted(file_with, delete);
}

/// As if another machine had begun to use the file, and holds the lock in it.
fn by_another_clock(file: &File, lease: Duration) {
    drop(file.connect());
    let connection = file.open();
    let set = "UPDATE zklock_meta SET value = 'another' WHERE name = 'clock'";
    connection.execute(set, []).unwrap();
    let insert = "INSERT INTO zklock_session VALUES ('theirs', ?1, 1)";
    connection.execute(insert, [i64::try_from(lease.as_nanos()).unwrap()]).unwrap();
    let insert = "INSERT INTO zklock_claim
        (id, session, path, kind, permits, since, host, pid, thread, label)
        VALUES ('one', 'theirs', ?1, 0, 0, 0, 'theirs', 1, '', '')";
    connection.execute(insert, [PATH]).unwrap();
}

#[test]
fn what_was_held_before_the_machine_was_started_anew_is_waited_for_by_our_own_clock() {
    let file = file_with(SHORT);
    by_another_clock(&file, SHORT);
    let begun = Instant::now();
    let before: i64 = {
        let last = "SELECT max(number) FROM zklock_claim";
        file.open().query_row(last, [], |row| row.get(0)).unwrap()
    };
    let store = file.connect();
    assert!(begun.elapsed() >= SHORT, "its lease has a meaning by its own clock only");
    let guard = store.lock(PATH).try_acquire().wait().unwrap().expect("nobody is left");
    assert!(guard.fencing_token() > before);
    // Above what the last commits can have given that the disk has not kept.
    assert!(guard.fencing_token() - before >= 1 << 20);
    guard.release().wait().unwrap();
}

#[test]
fn a_file_that_another_machine_uses_is_refused_and_one_that_it_takes_over_is_lost() {
    let file = file_with(SHORT);
    by_another_clock(&file, LONG);
    let connecting = StoreOptions::new().connect(&file.address());
    let connecting = std::thread::spawn(move || connecting.within(TIMEOUT).wait());
    let connection = file.open();
    eventually("it is refused", || {
        let renew = "UPDATE zklock_session SET expires = expires + 1";
        connection.execute(renew, []).unwrap();
        connecting.is_finished()
    });
    let error = connecting.join().unwrap().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS);
    assert!(error.to_string().contains("another machine"), "{error}");
    let file = file_with(SHORT);
    let store = file.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let take_over = "UPDATE zklock_meta SET value = 'another' WHERE name = 'clock'";
    file.open().execute(take_over, []).unwrap();
    assert_eq!(guard.lost().wait_timeout(TIMEOUT), Some(LostReason::Session));
    let error = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
}

#[test]
fn what_can_be_no_store_is_refused_with_what_is_wrong() {
    let file = File::new();
    std::fs::write(
        file.path(),
        "no database, but a text that is longer than a header of one ".repeat(20),
    )
    .unwrap();
    let refused = |address: &str| zklock::connect(address).within(TIMEOUT).wait().unwrap_err();
    assert!(refused(&file.address()).to_string().contains("not a database"));
    let nowhere = format!("sqlite:{}/no/such.db", file.path().parent().unwrap().display());
    assert_eq!(refused(&nowhere).code(), Code::BAD_ARGUMENTS);
    let other = File::new();
    drop(other.connect());
    other.open().execute("UPDATE zklock_meta SET value = '2' WHERE name = 'version'", []).unwrap();
    assert!(refused(&other.address()).to_string().contains("version 2"));
    let short = StoreOptions::new().session_timeout(Duration::from_millis(1));
    let error = short.connect(&File::new().address()).wait().unwrap_err();
    assert!(error.to_string().contains("100 ms"), "{error}");
}

#[test]
fn a_store_that_is_not_used_writes_nothing_and_begins_anew_when_it_is() {
    let file = file_with(Duration::from_millis(300));
    let store = file.connect();
    let lock = store.lock(PATH);
    let token = {
        let guard = lock.acquire().wait().unwrap();
        let token = guard.fencing_token();
        guard.release().wait().unwrap();
        token
    };
    let sessions = || -> i64 {
        let count = "SELECT count(*) FROM zklock_session";
        file.open().query_row(count, [], |row| row.get(0)).unwrap()
    };
    eventually("its session is gone", || sessions() == 0);
    let guard = lock.acquire().wait().unwrap();
    assert!(guard.fencing_token() > token);
    guard.release().wait().unwrap();
}

#[test]
fn a_capability_says_what_a_store_lacks_and_an_error_what_would_do() {
    let file = File::new();
    let store = file.connect();
    let can = store.capabilities();
    assert!(can.fair && can.lasting_tokens && can.read_write && can.semaphores);
    assert!(can.between_processes && !can.between_machines && !can.guarded_writes);
    assert!(!can.upgrades);
    let error = store.read_write(PATH).upgradeable().acquire().wait().unwrap_err();
    assert!(error.to_string().contains("acquire as a writer"), "{error}");
    let guard = store.read_write(PATH).write().acquire().wait().unwrap();
    let error = guard.downgrade(Access::Read).wait().unwrap_err();
    assert!(error.to_string().contains("acquire the other"), "{error}");
    assert_eq!((guard.access(), guard.state()), (Some(Access::Write), GuardState::Held));
    let error = guard.multi(&[]).wait().unwrap_err();
    assert!(error.to_string().contains("token"), "{error}");
    assert!(store.client().is_none());
}

#[test]
fn a_thousand_waiters_of_a_process_take_their_turns() {
    let file = File::new();
    let store = file.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiters: Vec<_> = (0..1_000).map(|_| store.lock(PATH).acquire()).collect();
    drop(guard);
    let mut last = 0;
    for waiter in waiters {
        let guard = waiter.within(TIMEOUT).wait().unwrap();
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
    }
    eventually("nobody has it", || store.lock(PATH).contenders().wait().unwrap().is_empty());
}

fn refused(file: &Path) -> String {
    let address = format!("sqlite:{}", file.display());
    let error = zklock::connect(&address).within(TIMEOUT).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
    let error = error.to_string();
    assert!(error.contains("share its directory"), "{error}");
    error
}

#[test]
fn a_file_with_two_names_is_refused_by_each_of_them() {
    let file = file_with(SHORT);
    let store = file.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let other = file.path().with_file_name("other.db");
    std::fs::hard_link(file.path(), &other).unwrap();
    for name in [&file.path(), &other] {
        assert!(refused(name).contains("2 names"));
    }
    let error = store.lock(PATH).try_acquire().wait().unwrap_err();
    assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
    std::fs::remove_file(&other).unwrap();
    assert!(store.lock(PATH).try_acquire().wait().unwrap().is_none() || guard.is_lost());
    file.connect();
}

#[test]
fn a_symbolic_link_is_no_other_name() {
    let file = File::new();
    let (store, elsewhere) = (file.connect(), tempfile::tempdir().unwrap());
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let other = zklock::connect(&format!("sqlite:{}", link.display())).wait().unwrap();
    assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none());
    guard.release().wait().unwrap();
    assert!(other.lock(PATH).try_acquire().wait().unwrap().is_some());
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1, "it has no -wal there");
}

fn mount(arguments: &[&str]) {
    let mounted = Command::new("mount").args(arguments).status().unwrap();
    assert!(mounted.success(), "{arguments:?}: {mounted}");
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_file_is_mounted() {
    let Some(about) = child_about() else { return };
    let directory = Path::new(&about);
    let (file, point) = (directory.join("locks.db"), directory.join("a mount\\point"));
    std::fs::write(&point, "").unwrap();
    mount(&["--bind", file.to_str().unwrap(), point.to_str().unwrap()]);
    say(refused(&point));
    let shared = directory.join("shared");
    std::fs::create_dir(&shared).unwrap();
    mount(&["--bind", about.as_str(), shared.to_str().unwrap()]);
    let address = format!("sqlite:{}", shared.join("locks.db").display());
    let store = zklock::connect(&address).wait().unwrap();
    say(store.lock(PATH).try_acquire().wait().unwrap().is_none());
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused_and_one_in_a_mounted_directory_is_not() {
    let file = File::new();
    let guard = file.connect().lock(PATH).acquire().wait().unwrap();
    let test = "sqlite::in_a_child_process_a_file_is_mounted";
    let about = file.path().parent().unwrap().display().to_string();
    let Some(mut child) = Process::start_test_with_own_mounts(test, &about) else { return };
    let error = child.hear().unwrap();
    assert!(error.contains("mounted"), "{error}");
    child.expect("true");
    assert!(child.end().success());
    guard.release().wait().unwrap();
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_the_directory_changes() {
    let Some(about) = child_about() else { return };
    std::env::set_current_dir(&about).unwrap();
    let store = zklock::connect("sqlite:locks.db").wait().unwrap();
    let guard = store.lock("/locks/beside").acquire().wait().unwrap();
    let elsewhere = Path::new(&about).join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::env::set_current_dir(&elsewhere).unwrap();
    say(store.lock(PATH).try_acquire().wait().unwrap().is_none());
    say(guard.state() == GuardState::Held);
    say(elsewhere.join("locks.db").exists());
}

#[test]
fn a_program_that_changes_its_directory_stays_with_its_file() {
    let file = File::new();
    let guard = file.connect().lock(PATH).acquire().wait().unwrap();
    let test = "sqlite::in_a_child_process_the_directory_changes";
    let about = file.path().parent().unwrap().display().to_string();
    let mut child = Process::start_test(test, &about);
    for said in ["true", "true", "false"] {
        child.expect(said);
    }
    assert!(child.end().success());
    guard.release().wait().unwrap();
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_disk_is_full() {
    let Some(about) = child_about() else { return };
    mount(&["-t", "tmpfs", "-o", "size=1m", "none", &about]);
    let (file, rest) = (Path::new(&about).join("locks.db"), Path::new(&about).join("rest"));
    let options = StoreOptions::new().session_timeout(SHORT);
    let store = options.connect(&format!("sqlite:{}", file.display())).wait().unwrap();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let program = Connection::open(&file).unwrap();
    // The tables lie in the file, and the log is short.
    program.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let beside = store.lock("/locks/beside");
    for _ in 0..4 {
        beside.acquire().wait().unwrap().release().wait().unwrap();
    }
    let mut full = std::fs::File::create(&rest).unwrap();
    while full.write_all(&[0; 4_096]).is_ok() {}
    drop(full);
    let refused = loop {
        if let Err(error) = beside.acquire().within(TIMEOUT).wait() {
            break error;
        }
    };
    assert!(matches!(refused, LockError::Store { .. }), "{refused:?}");
    assert!(refused.to_string().contains("full") && !refused.is_outcome_unknown(), "{refused}");
    let expires = || -> i64 {
        let expires = "SELECT max(expires) FROM zklock_session";
        program.query_row(expires, [], |row| row.get(0)).unwrap()
    };
    beside
        .acquire()
        .within(TIMEOUT)
        .wait()
        .expect("it has the log's room")
        .release()
        .wait()
        .unwrap();
    let before = expires();
    eventually("it is renewed on a full disk", || expires() > before);
    eventually("and held", || guard.state() == GuardState::Held);
    std::fs::remove_file(&rest).unwrap();
    beside.acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    guard.release().wait().unwrap();
    say("done");
}

#[test]
fn a_full_disk_fails_an_acquire_at_once_and_costs_no_lock_that_is_held() {
    let directory = tempfile::tempdir().unwrap();
    let (test, about) =
        ("sqlite::in_a_child_process_a_disk_is_full", directory.path().display().to_string());
    let Some(mut child) = Process::start_test_with_own_mounts(test, &about) else { return };
    child.expect("\"done\"");
    assert!(child.end().success());
}

#[test]
fn a_claim_whose_session_somebody_deletes_is_its_holder_s_for_one_more_lease_and_free_after_that() {
    let file = file_with(BRIEF);
    let (store, other) = (file.connect(), file.connect());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let connection = file.open();
    let insert = "INSERT INTO zklock_claim
        (id, session, path, kind, permits, since, host, pid, thread, label)
        VALUES ('one', 'deleted', '/locks/orphan', 0, 0, 0, 'theirs', 1, '', '')";
    connection.execute(insert, []).unwrap();
    let orphan = other.lock("/locks/orphan");
    assert!(orphan.try_acquire().wait().unwrap().is_none());
    // Nobody waits for it.
    eventually("it is free", || orphan.try_acquire().wait().unwrap().is_some());
    // A holder that lives goes on, or is told before another holds.
    connection.execute("DELETE FROM zklock_session", []).unwrap();
    let tried = other.lock(PATH).try_acquire().wait().unwrap();
    assert!(tried.is_none() || guard.is_lost(), "two hold");
}

/// As if another client held the lock, on a session that lasts so many of its leases from now on.
fn by_another(file: &File, lease: Duration, leases: i64) -> Connection {
    let connection = file.open();
    // A session of a store's own shows what time it is by the clock of the file.
    let beside = file.connect();
    beside.lock("/locks/time").acquire().wait().unwrap().release().wait().unwrap();
    let insert = "INSERT INTO zklock_session
        SELECT 'theirs', ?1, max(expires - lease) + ?1 * ?2 FROM zklock_session";
    let lease = i64::try_from(lease.as_nanos()).unwrap();
    connection.execute(insert, [lease, leases]).unwrap();
    let insert = "INSERT INTO zklock_claim
        (id, session, path, kind, permits, since, host, pid, thread, label)
        VALUES ('one', 'theirs', ?1, 0, 0, 0, 'theirs', 1, '', '')";
    connection.execute(insert, [PATH]).unwrap();
    connection
}

#[test]
fn a_holder_whose_session_somebody_deletes_goes_on_for_the_longest_lease_that_is_known() {
    let file = file_with(LONG);
    let (store, other) = (file.connect(), file.connect());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    // Its session's lease is the longest that is known then.
    let beside = other.lock("/locks/beside").acquire().wait().unwrap();
    let delete = "DELETE FROM zklock_session WHERE id =
        (SELECT session FROM zklock_claim WHERE path = ?1)";
    assert_eq!(file.open().execute(delete, [PATH]).unwrap(), 1);
    for _ in 0..3 {
        assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none());
    }
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    beside.release().wait().unwrap();
    drop(other.lock(PATH).try_acquire().wait().unwrap().unwrap());
}

#[test]
fn a_session_that_a_clock_which_was_set_back_keeps_for_long_ends_after_two_leases() {
    let file = file_with(BRIEF);
    let store = file.connect();
    by_another(&file, BRIEF, 1_000_000);
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_session_that_ends_before_those_that_are_known_is_not_waited_for_longer() {
    let file = file_with(LONG);
    let (store, other) = (file.connect(), file.connect());
    // It knows when the next session ends, once it has waited.
    let held = other.lock("/locks/held").acquire().wait().unwrap();
    let waiting = acquire_in_background(&store.lock("/locks/held"));
    eventually("it waits", || other.lock("/locks/held").contenders().wait().unwrap().len() == 2);
    held.release().wait().unwrap();
    let guard = waiting.join().unwrap().unwrap();
    by_another(&file, SHORT, 1);
    // Longer than between two looks of one that waits for nothing.
    std::thread::sleep(SHORT / 4);
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    guard.release().wait().unwrap();
}

#[test]
fn one_who_waits_already_for_a_claim_whose_session_is_deleted_comes_to_hold() {
    let file = file_with(BRIEF);
    let store = file.connect();
    let connection = by_another(&file, LONG, 1);
    let waiting = acquire_in_background(&store.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    connection.execute("DELETE FROM zklock_session WHERE id = 'theirs'", []).unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_everything_fails() {
    let Some(about) = child_about() else { return };
    mount(&["-t", "tmpfs", "-o", "size=16m", "none", &about]);
    let (file, rest) = (Path::new(&about).join("locks.db"), Path::new(&about).join("rest"));
    let options = StoreOptions::new().session_timeout(endurance::LEASE);
    let connect = |_| options.connect(&format!("sqlite:{}", file.display())).wait().unwrap();
    drop(connect(0));
    let faults = [
        Fault::new("disk full", |dice| {
            let mut full = std::fs::File::create(&rest).unwrap();
            while full.write_all(&[0; 4_096]).is_ok() {}
            std::thread::sleep(pause(dice, 200));
            std::fs::remove_file(&rest).unwrap();
        }),
        Fault::new("file locked", |dice| {
            let program = Connection::open(&file).unwrap();
            program.busy_timeout(TIMEOUT).unwrap();
            program.execute_batch("BEGIN EXCLUSIVE").unwrap();
            std::thread::sleep(pause(dice, 200));
        }),
        Fault::new("session deleted", |_| {
            let program = Connection::open(&file).unwrap();
            program.busy_timeout(TIMEOUT).unwrap();
            let delete =
                "DELETE FROM zklock_session WHERE id = (SELECT min(id) FROM zklock_session)";
            // A full disk lets go of nothing.
            let _ = program.execute(delete, []);
        }),
    ];
    endurance::try_hard("sqlite", connect, &faults, say);
}

#[test]
fn nobody_holds_beside_another_whatever_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (test, about) =
        ("sqlite::in_a_child_process_everything_fails", directory.path().display().to_string());
    let Some(mut child) = Process::start_test_with_own_mounts(test, &about) else { return };
    while let Some(news) = child.hear() {
        println!("{news}");
    }
    assert!(child.end().success());
}
