//! Locks in a database of PostgreSQL: what is lost with requests, replies, connections and the server.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use test_support::{Process, TIMEOUT, acquire_in_background, child_about, eventually, say};
use tokio_postgres::SimpleQueryMessage;
use zklock::{Code, GuardState, LockError};
use zklock_testing::Database;

use crate::elsewhere;
use crate::endurance;
use crate::place::{Elsewhere, patient};
use crate::servers::{self, Refusals};

/// A server, and how long sessions last there.
pub struct Server {
    database: Arc<Database>,
    pub session_timeout: Duration,
}

impl Server {
    pub fn shared() -> Server {
        Server {
            database: Arc::clone(test_support::shared::postgres()),
            session_timeout: Duration::from_secs(10),
        }
    }

    /// One of the test's own.
    pub fn with(session_timeout: Duration) -> Server {
        let database = Arc::new(Database::postgres().unwrap());
        Server { database, session_timeout }
    }

    /// As another program works on it.
    fn ask(&self, statements: &str) {
        drop(self.begin(statements));
    }

    /// Inserts fail as on a full disk.
    fn fill_disk(&self) {
        self.refuse("53100", "could not extend file: No space left on device");
    }

    fn make_room(&self) {
        self.ask("DROP TRIGGER refuse ON zklock_claim");
    }

    /// Inserts fail by this code.
    fn refuse(&self, code: &str, why: &str) {
        let refuse = format!("BEGIN RAISE '{why}' USING ERRCODE = '{code}'; END");
        self.ask(&format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {refuse} $$;
             CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON zklock_claim EXECUTE FUNCTION refuse()"
        ));
    }

    /// As another program works on it that stays connected until that is dropped.
    fn begin(&self, statements: &str) -> (tokio::runtime::Runtime, tokio_postgres::Client) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let url = self.database.url();
            let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
            let (client, connection) = connected.unwrap();
            tokio::spawn(connection);
            client.batch_execute(statements).await.unwrap();
            client
        });
        (runtime, client)
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
        let (runtime, client) = self.begin("");
        Box::new(move |statement| {
            let answer = runtime.block_on(client.simple_query(statement)).unwrap();
            answer.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
                _ => None,
            })
        })
    }

    fn waiting_for_rows(&self) -> i64 {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        self.program()(count).unwrap()
    }
}

const PATH: &str = "/locks/postgres";
const SHORT: Duration = Duration::from_secs(3);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn who_may_not_enter_or_finds_no_database_is_told_and_no_password_is_shown() {
    let server = Server::with(LONG);
    drop(server.connect());
    server.ask("CREATE ROLE app LOGIN PASSWORD 'right-secret'; CREATE ROLE poor LOGIN");
    let connect = |user: &str, database: &str| {
        let address = server.database.addr();
        let address = format!("postgres://{user}:wrong-secret@{address}/{database}");
        zklock::connect(&address).within(TIMEOUT).wait()
    };
    for (user, database, code) in [
        ("nobody", "postgres", Code::NO_AUTH),
        ("poor", "postgres", Code::NO_AUTH),
        ("app", "missing", Code::BAD_ARGUMENTS),
    ] {
        let error = connect(user, database).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn a_server_that_takes_no_writes_and_a_user_who_may_make_none_are_refused_at_connect() {
    let server = Server::with(LONG);
    drop(server.connect());
    server.ask("CREATE ROLE reader LOGIN SUPERUSER; ALTER ROLE reader SET default_transaction_read_only = on");
    server.ask(
        "CREATE ROLE poor LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO poor;
         CREATE ROLE taker LOGIN; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO taker;
         CREATE ROLE giver LOGIN; GRANT SELECT, DELETE, UPDATE ON ALL TABLES IN SCHEMA public TO giver;
         CREATE ROLE mute LOGIN; GRANT SELECT, INSERT, DELETE ON ALL TABLES IN SCHEMA public TO mute;
         GRANT UPDATE ON zklock_gate, zklock_session TO mute",
    );
    for (user, code, why) in [
        ("reader", Code::API_ERROR, "does not allow writes"),
        ("poor", Code::NO_AUTH, "permission denied for table zklock_gate"),
        ("taker", Code::NO_AUTH, "permission denied for table zklock_session"),
        ("giver", Code::NO_AUTH, "permission denied for table zklock_session"),
        ("mute", Code::NO_AUTH, "permission denied for table zklock_claim"),
    ] {
        let address = format!("postgres://{user}@{}/postgres", server.database.addr());
        let refused = || zklock::connect(&address).within(TIMEOUT).wait().unwrap_err();
        // A busy machine may keep its server from answering in time.
        let busy = |error: &zklock::Error| error.to_string().contains("has not answered in time");
        let error = (0..10).map(|_| refused()).find(|error| !busy(error)).unwrap();
        assert!(error.code() == code && error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_row_that_somebody_deletes_is_a_lock_that_is_lost_or_a_claim_that_is_made_anew() {
    let delete = |server: &Server, number| {
        server.ask(&format!("DELETE FROM zklock_claim WHERE number = {number}"));
    };
    elsewhere::rows_are_deleted(Server::with, delete);
}

#[test]
fn a_release_that_is_not_permitted_says_so_and_ends_the_session_once_it_holds_nothing_else() {
    let server = Server::with(SHORT);
    drop(server.connect());
    server.ask("CREATE ROLE app LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO app");
    let address = format!("postgres://app@{}/postgres", server.database.addr());
    let (store, other) = (patient(SHORT).connect(&address).wait().unwrap(), server.connect());
    let kept = store.lock("/locks/kept").acquire().wait().unwrap();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    server.ask("REVOKE DELETE ON zklock_claim FROM app");
    let error = guard.release().within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(error, LockError::NotPermitted { .. }), "{error:?}");
    assert!(error.to_string().contains("permission denied for table zklock_claim"), "{error}");
    let waiting = acquire_in_background(&other.lock(PATH));
    assert_eq!(kept.lost().wait_timeout(2 * SHORT), None, "it is not lost for that");
    assert!(!waiting.is_finished());
    kept.release().within(TIMEOUT).wait().unwrap_err();
    eventually("it is free though the client goes on", || {
        // It fails where it finds a session that has to be ended.
        drop(store.lock("/locks/kept").try_acquire().wait());
        waiting.is_finished()
    });
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

#[test]
fn a_session_whose_time_has_passed_takes_no_claim_though_nobody_has_ended_it() {
    let server = Server::with(LONG);
    let (store, other) = (server.connect(), server.connect());
    let before = store.lock("/locks/before").acquire().wait().unwrap();
    server.ask("UPDATE zklock_session SET expires = 1");
    let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
    assert!(other.lock(PATH).try_acquire().within(TIMEOUT).wait().unwrap().is_none());
    assert_eq!((guard.state(), before.is_lost()), (GuardState::Held, true));
}

#[test]
fn a_step_waits_for_the_disk_where_the_server_s_default_is_not_to() {
    let server = Server::with(LONG);
    let store = server.connect();
    server.ask(
        "ALTER DATABASE postgres SET synchronous_commit = off;
         CREATE TABLE seen (value text);
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
         CREATE TRIGGER see BEFORE INSERT ON zklock_claim FOR EACH ROW EXECUTE FUNCTION see()",
    );
    drop(store);
    server.connect().lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
    let (runtime, program) = server.begin("");
    let seen = runtime.block_on(program.query_one("SELECT value FROM seen", &[])).unwrap();
    assert_eq!(seen.get::<_, &str>(0), "on");
}

#[test]
fn a_store_whose_server_is_down_closes_once_its_session_is_over() {
    let server = Server::with(SHORT);
    let store = server.connect();
    let guard = store.lock(PATH).acquire().wait().unwrap();
    server.database.kill();
    store.close().within(TIMEOUT).wait().unwrap();
    assert!(guard.is_lost());
}

#[test]
fn a_session_that_a_clock_which_was_set_back_keeps_for_years_ends_after_two_leases() {
    let server = Server::with(SHORT);
    let store = server.connect();
    server.ask(&format!(
        "INSERT INTO zklock_session VALUES ('theirs', {}, 9000000000000000000);
         INSERT INTO zklock_claim VALUES (1, 'one', 'theirs', '{PATH}', 0, 0, 0, 'theirs', 1, '', '')",
        SHORT.as_nanos()
    ));
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn tokens_go_on_when_the_server_has_lost_its_memory() {
    let server = Server::with(SHORT);
    let guard = server.connect().lock(PATH).acquire().wait().unwrap();
    let token = guard.fencing_token();
    guard.release().wait().unwrap();
    server.ask("DROP TABLE zklock_claim, zklock_session, zklock_gate, zklock_limit, zklock_meta");
    let guard = server.connect().lock(PATH).acquire().wait().unwrap();
    assert!(guard.fencing_token() > token);
    guard.release().wait().unwrap();
}

#[test]
fn one_that_is_another_version_s_is_left_alone() {
    let server = Server::with(SHORT);
    drop(server.connect());
    server.ask("UPDATE zklock_meta SET value = '3' WHERE name = 'version'");
    let options = patient(SHORT);
    let error = options.connect(&server.database.url()).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{error}");
    assert!(error.to_string().contains("version 3"), "{error}");
}

#[test]
fn a_transaction_that_stays_open_on_one_lock_s_row_delays_no_other_lock() {
    let server = Server::with(LONG);
    crate::gates::other_locks_go_on(&server, || {
        let program =
            server.begin("BEGIN; SELECT gate FROM zklock_gate WHERE changes > 0 FOR UPDATE");
        || drop(program)
    });
}

#[test]
fn a_full_disk_fails_an_acquire_at_once() {
    let server = Server::with(LONG);
    let store = server.connect();
    server.fill_disk();
    let error = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap_err();
    assert!(matches!(error, LockError::Store { .. }), "{error:?}");
    assert!(error.to_string().contains("No space left") && !error.is_outcome_unknown(), "{error}");
    server.make_room();
    store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
}

#[test]
fn each_refusal_is_taken_for_what_it_is() {
    let refusals = Refusals {
        waited_for: &[
            "08006", "40001", "40P01", "53200", "53300", "55P03", "57014", "57P01", "25P03",
            "25006",
        ],
        not_permitted: &["28000", "42501"],
        unusable: &["3D000", "54000"],
        failed: &["53100", "22012", "25001", "42P01", "XX000"],
    };
    let server = Server::with(LONG);
    refusals.are_taken_for_what_they_are(&server, |code| server.refuse(code, "refused here"));
}

#[test]
fn the_next_host_is_tried_where_one_accepts_a_connection_and_does_not_answer() {
    let server = Server::with(SHORT);
    // The kernel accepts for it.
    let frozen = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = format!("{},{}", frozen.local_addr().unwrap(), server.database.addr());
    let connect = |options: &str| {
        let address = format!("postgres://zklock@{hosts}/postgres?{options}");
        patient(SHORT).connect(&address).wait()
    };
    let (store, other) = (connect("").unwrap(), connect("connect_timeout=1").unwrap());
    let guard = store.lock(PATH).acquire().wait().unwrap();
    let waiting = acquire_in_background(&other.lock(PATH));
    eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
    guard.release().wait().unwrap();
    waiting.join().unwrap().unwrap().release().wait().unwrap();
}

/// What a child process does, where the hosts file is its own; nothing in any other.
#[test]
fn in_a_child_process_a_name_has_two_addresses() {
    let Some(about) = child_about() else { return };
    let [address, silent, file] = about.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{about}")
    };
    std::fs::write(file, format!("{silent} database.test\n127.0.0.1 database.test\n")).unwrap();
    let mounted = std::process::Command::new("mount").args(["--bind", file, "/etc/hosts"]).status();
    assert!(mounted.unwrap().success());
    let address = address.replace("127.0.0.1", "database.test");
    let store = zklock::connect(&address).within(TIMEOUT).wait().unwrap();
    store.lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
    say("done");
}

#[test]
fn the_next_address_of_a_name_is_tried_where_one_does_not_answer() {
    let server = Server::shared();
    let port = server.database.addr().port();
    // It accepts, and says nothing.
    let _silent = TcpListener::bind(("127.0.0.9", port)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    std::fs::write(&file, "").unwrap();
    let about = format!("{} 127.0.0.9 {}", server.address(), file.display());
    let test = "postgres::in_a_child_process_a_name_has_two_addresses";
    let Some(mut child) = Process::start_test_with_own_mounts(test, &about) else { return };
    child.expect("\"done\"");
    assert!(child.end().success());
}

#[test]
fn nobody_holds_beside_another_whatever_fails() {
    let server = Server::with(endurance::LEASE);
    let links = servers::links(&server);
    let full = servers::full_disk(|| server.fill_disk(), || server.make_room());
    let steps = servers::clock_steps(|by| {
        server.ask(&format!("UPDATE zklock_session SET expires = expires + {by}"));
    });
    servers::try_server("postgres", &server, &links, steps.into_iter().chain([full]));
}

/// The statement that is recommended in `docs/stores.md`.
#[test]
fn a_job_runs_once_per_period_and_a_late_holder_is_refused() {
    const TABLE: &str = "CREATE TABLE job_run (job text PRIMARY KEY, began timestamptz NOT NULL, token bigint NOT NULL)";
    let page = include_str!("../../docs/stores.md");
    let (_, after) = page.split_once("```sql\nINSERT INTO job_run").unwrap();
    let statement = &format!("INSERT INTO job_run{}", after.split_once("```").unwrap().0);
    let server = Server::shared();
    let (runtime, _program) = server.begin(TABLE);
    drop(runtime);
    let may_run = |token: i64| {
        let (runtime, program) = server.begin("");
        runtime.block_on(program.execute(statement, &[&"nightly", &token])).unwrap() == 1
    };
    let with_lock = |work: &dyn Fn(i64) -> bool| {
        let store = zklock::connect(&server.address()).wait().unwrap();
        let guard = store.lock("/jobs/nightly").acquire().within(TIMEOUT).wait().unwrap();
        let (token, result) = (guard.fencing_token(), work(guard.fencing_token()));
        guard.release().wait().unwrap();
        (token, result)
    };
    let all_try = || {
        std::thread::scope(|scope| {
            let all = [(); 8].map(|()| scope.spawn(|| with_lock(&may_run).1));
            all.into_iter().filter_map(|one| one.join().unwrap().then_some(())).count()
        })
    };
    assert_eq!(all_try(), 1);
    assert_eq!(all_try(), 0, "the period is not over");
    server.ask("UPDATE job_run SET began = began - interval '21 hours'");
    let (late, _) = with_lock(&|_| true);
    assert!(with_lock(&may_run).1);
    server.ask("UPDATE job_run SET began = began - interval '21 hours'");
    assert!(!may_run(late), "another has run it since");
}
