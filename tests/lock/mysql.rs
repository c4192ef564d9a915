//! Locks in a database of MariaDB.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use rustix::process::Pid;
use test_support::{TIMEOUT, eventually};
use zklock::{Code, Store};
use zklock_testing::Database;

use crate::elsewhere;
use crate::endurance;
use crate::place::Elsewhere;
use crate::servers::{self, Refusals};

/// A server, and how long sessions last there.
pub struct Server {
    database: Arc<Database>,
    pub session_timeout: Duration,
}

impl Server {
    pub fn shared() -> Server {
        Server {
            database: Arc::clone(test_support::shared::mariadb()),
            session_timeout: Duration::from_secs(10),
        }
    }

    /// One of the test's own.
    pub fn with(session_timeout: Duration) -> Server {
        Server { database: Arc::new(Database::mariadb().unwrap()), session_timeout }
    }

    /// As another program works on it.
    fn ask(&self, statement: &str) {
        self.try_to_ask(statement).unwrap();
    }

    /// Inserts fail by this code.
    fn refuse(&self, code: &str, why: &str) {
        self.ask(&format!(
            "CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON zklock_claim FOR EACH ROW
             SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = '{why}'"
        ));
    }

    fn try_to_ask(&self, statement: &str) -> mysql::Result<()> {
        mysql::Conn::new(self.database.url().as_str())?.query_drop(statement)
    }

    /// For a user without a password.
    fn address_of(&self, user: &str) -> String {
        let url = self.database.url();
        format!("mysql://{user}@{}/{}", self.database.addr(), url.rsplit_once('/').unwrap().1)
    }
}

impl Elsewhere for Server {
    fn address(&self) -> String {
        self.database.url()
    }

    fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    fn lose(&self, path: &str) {
        // Its time has passed.
        self.ask(&format!(
            "UPDATE zklock_session SET expires = 1 WHERE id =
             (SELECT session FROM zklock_claim WHERE path = '{path}' ORDER BY number LIMIT 1)"
        ));
    }
}

impl servers::Server for Server {
    fn addr(&self) -> SocketAddr {
        self.database.addr()
    }

    fn address_at(&self, address: SocketAddr) -> String {
        self.database.url_at(address)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.database.pid().unwrap()).unwrap()).unwrap()
    }

    fn kill(&self) {
        self.database.kill();
    }

    fn start_again(&self) {
        self.database.start_again().unwrap();
    }
}

impl servers::Tables for Server {
    fn program(&self) -> servers::Program {
        let mut program = mysql::Conn::new(self.database.url().as_str()).unwrap();
        Box::new(move |statement| program.query_first(statement).unwrap())
    }

    fn waiting_for_rows(&self) -> i64 {
        // What `innodb_trx` has is as old as the first of many looks.
        let count = "SELECT variable_value FROM information_schema.global_status
             WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'";
        self.program()(count).unwrap()
    }
}

const PATH: &str = "/locks/mysql";
/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn a_server_that_takes_no_writes_is_named_by_acquires_and_refused_at_connect() {
    let server = Server::with(Duration::from_secs(3));
    drop(server.connect());
    server.ask("CREATE USER app");
    server.ask("GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO app");
    let address = server.address_of("app");
    let store = zklock::connect(&address).within(TIMEOUT).wait().unwrap();
    // Administrators may write yet.
    server.ask("SET GLOBAL read_only = 1");
    eventually("an acquire that is too late says why", || {
        let late =
            store.lock(PATH).acquire().within(Duration::from_millis(300)).wait().unwrap_err();
        late.is_timeout() && late.to_string().contains("read-only")
    });
    let error = zklock::connect(&address).within(TIMEOUT).wait().unwrap_err();
    assert!(error.code() == Code::API_ERROR && error.to_string().contains("read-only"), "{error}");
    server.ask("SET GLOBAL read_only = 0");
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_user_who_may_take_locks_and_not_release_them_is_refused_at_connect() {
    let server = Server::with(Duration::from_secs(3));
    drop(server.connect());
    server.ask("CREATE USER taker");
    server.ask("GRANT SELECT, INSERT, UPDATE ON *.* TO taker");
    let error = zklock::connect(&server.address_of("taker")).within(TIMEOUT).wait().unwrap_err();
    assert!(error.code() == Code::NO_AUTH && error.to_string().contains("DELETE"), "{error}");
}

#[test]
fn tokens_go_on_when_the_server_has_lost_its_memory() {
    let server = Server::with(Duration::from_secs(3));
    let guard = server.connect().lock(PATH).acquire().wait().unwrap();
    let token = guard.fencing_token();
    guard.release().wait().unwrap();
    for table in ["claim", "session", "gate", "limit", "meta"] {
        server.ask(&format!("DROP TABLE zklock_{table}"));
    }
    let guard = server.connect().lock(PATH).acquire().wait().unwrap();
    assert!(guard.fencing_token() > token);
    guard.release().wait().unwrap();
}

#[test]
fn a_session_that_a_clock_which_was_set_back_keeps_for_years_ends_after_two_leases() {
    let lease = Duration::from_secs(3);
    let server = Server::with(lease);
    let store = server.connect();
    server.ask(&format!(
        "INSERT INTO zklock_session VALUES ('theirs', {}, 9000000000000000000)",
        lease.as_nanos()
    ));
    server.ask(&format!(
        "INSERT INTO zklock_claim VALUES (1, 'one', 'theirs', '{PATH}', 0, 0, 0, 'theirs', 1, '', '', NULL, NULL)"
    ));
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn a_transaction_that_stays_open_on_one_lock_s_row_delays_no_other_lock() {
    // Longer than any test.
    let server = Server::with(Duration::from_secs(3_600));
    crate::gates::other_locks_go_on(&server, || {
        let mut program = mysql::Conn::new(server.database.url().as_str()).unwrap();
        let used = "SELECT gate FROM zklock_gate WHERE changes > 0";
        let gate: i64 = program.query_first(used).unwrap().unwrap();
        program.query_drop("START TRANSACTION").unwrap();
        let lock = format!("SELECT gate FROM zklock_gate WHERE gate = {gate} FOR UPDATE");
        program.query_drop(lock).unwrap();
        || drop(program)
    });
}

#[test]
fn each_refusal_is_taken_for_what_it_is() {
    let refusals = Refusals {
        waited_for: &[
            "1205", "1213", "1040", "1047", "1053", "1203", "1290", "1317", "1836", "1927", "1969",
            "3024", "4031",
        ],
        not_permitted: &["1044", "1045", "1142", "1227", "1698"],
        unusable: &["1049", "1406"],
        failed: &["1021", "1064", "1146"],
    };
    let server = Server::with(LONG);
    refusals.are_taken_for_what_they_are(&server, |code| server.refuse(code, "refused here"));
}

#[test]
fn a_row_that_somebody_deletes_is_a_lock_that_is_lost_or_a_claim_that_is_made_anew() {
    let delete = |server: &Server, number| {
        let delete = format!("DELETE FROM zklock_claim WHERE number = {number}");
        // It may be the one that ends a deadlock.
        eventually("the row is deleted", || server.try_to_ask(&delete).is_ok());
    };
    elsewhere::rows_are_deleted(Server::with, delete);
}

#[test]
fn nobody_holds_beside_another_whatever_fails() {
    let server = Server::with(endurance::LEASE);
    let links = servers::links(&server);
    let fill = || server.refuse("1021", "Disk full");
    let full = servers::full_disk(fill, || server.ask("DROP TRIGGER refuse"));
    let steps = servers::clock_steps(|by| {
        let step = format!("UPDATE zklock_session SET expires = expires + {by}");
        // It may be the one that ends a deadlock.
        eventually("the clock steps", || server.try_to_ask(&step).is_ok());
    });
    servers::try_server("mysql", &server, &links, steps.into_iter().chain([full]));
}

#[test]
fn a_hand_off_costs_few_looks_at_other_locks() {
    const LOCKS: u64 = 60;
    let server = Server::with(Duration::from_secs(60));
    let (holder, waiter) = (server.connect(), server.connect());
    let lock = |store: &Store, at: u64| store.lock(&format!("{PATH}/{at}"));
    let guards: Vec<_> = (0..LOCKS).map(|at| lock(&holder, at).acquire().wait().unwrap()).collect();
    let waiting: Vec<_> = (0..LOCKS).map(|at| lock(&waiter, at).acquire()).collect();
    eventually("all wait", || {
        (0..LOCKS).all(|at| lock(&holder, at).contenders().wait().unwrap().len() == 2)
    });
    let mut program = mysql::Conn::new(server.database.url().as_str()).unwrap();
    let mut questions = || {
        let status = "SHOW GLOBAL STATUS LIKE 'Questions'";
        program.query_first::<(String, u64), _>(status).unwrap().unwrap().1
    };
    let (before, begun) = (questions(), Instant::now());
    for (guard, waiting) in guards.into_iter().zip(waiting) {
        guard.release().wait().unwrap();
        drop(waiting.within(TIMEOUT).wait().unwrap());
    }
    let asked = questions() - before;
    // Two releases and a few looks, none of which is at all locks; each client looks by itself, too.
    let most = 40 * LOCKS + 200 * (begun.elapsed().as_secs() + 1);
    assert!(asked <= most, "{asked} queries, at most {most}");
}

#[test]
fn the_end_of_a_session_is_seen_by_all_who_wait_for_its_locks() {
    // Nobody looks for ended sessions by itself that soon.
    let server = Server::with(Duration::from_secs(3_600));
    let (holder, waiter) = (server.connect(), server.connect());
    let guards = ["/a", "/b"].map(|name| {
        let lock = holder.lock(&format!("{PATH}{name}"));
        lock.acquire().wait().unwrap()
    });
    let waiting = ["/a", "/b"].map(|name| waiter.lock(&format!("{PATH}{name}")).acquire());
    eventually("both wait", || {
        let of = |name| waiter.lock(&format!("{PATH}{name}")).contenders().wait().unwrap().len();
        of("/a") == 2 && of("/b") == 2
    });
    holder.close().wait().unwrap();
    for waiting in waiting {
        waiting.within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }
    drop(guards);
}
