//! A database of a test's own.

#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::sync::{
    LazyLock,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use crate::leased::database::{Database, StepError};

/// Opens it once more.
type Connect =
    Box<dyn FnOnce(&dyn Fn(&str) -> bool) -> Result<Box<dyn Database>, StepError> + Send>;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
const COUNT: &str =
    "SELECT (SELECT count(*) FROM zklock_claim) + (SELECT count(*) FROM zklock_session)";

pub(super) enum Place {
    #[cfg(feature = "mysql")]
    MySql(String),
    #[cfg(feature = "postgres")]
    Postgres(String),
    #[cfg(feature = "redis")]
    Redis(zklock_testing::Database),
    #[cfg(feature = "sqlite")]
    Sqlite(tempfile::TempDir),
}

#[cfg(feature = "sqlite")]
pub(super) fn sqlite() -> Place {
    Place::Sqlite(tempfile::tempdir().unwrap())
}

#[cfg(feature = "mysql")]
pub(super) fn mysql() -> Place {
    static SHARED: LazyLock<zklock_testing::Database> =
        LazyLock::new(|| shared("mariadb", zklock_testing::Database::mariadb));
    let name = format!("zklock_{}", unused());
    ask_mysql(&SHARED.url(), &format!("CREATE DATABASE {name}"));
    let url = SHARED.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    Place::MySql(format!("{server}/{name}"))
}

/// The first number of its answer.
#[cfg(feature = "mysql")]
fn ask_mysql(url: &str, statement: &str) -> Option<i64> {
    use mysql::prelude::Queryable;
    mysql::Conn::new(url).unwrap().query_first(statement).unwrap()
}

/// The server of that name which all test processes of a run share, or one of this process's own.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn shared(
    name: &str,
    start: fn() -> zklock_testing::Result<zklock_testing::Database>,
) -> zklock_testing::Database {
    let run = std::env::var_os("ZKLOCK_TEST_SHARED").map(std::path::PathBuf::from);
    let attach = |run: std::path::PathBuf| zklock_testing::Database::attach(&run.join(name));
    run.map_or_else(start, attach).unwrap()
}

/// A name that no other place has, of this process or another.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn unused() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // The id of a process can come again within one run.
    static PROCESS: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().simple().to_string());
    format!("{}_{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(feature = "postgres")]
pub(super) fn postgres() -> Place {
    static SHARED: LazyLock<zklock_testing::Database> =
        LazyLock::new(|| shared("postgres", zklock_testing::Database::postgres));
    let schema = format!("place_{}", unused());
    ask_postgres(&SHARED.url(), &format!("CREATE SCHEMA {schema}"));
    Place::Postgres(format!("{}?options=-csearch_path%3D{schema}", SHARED.url()))
}

/// The first number of its answer.
#[cfg(feature = "postgres")]
fn ask_postgres(url: &str, statement: &str) -> Option<i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        Some(client.query(statement, &[]).await.unwrap().first()?.get(0))
    })
}

/// A server that has been running for long.
#[cfg(feature = "redis")]
pub(super) fn redis() -> Place {
    let server = zklock_testing::Database::redis().unwrap();
    let info: String = ask_redis(&server, redis::cmd("INFO").arg("server"));
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
    let () = ask_redis(&server, redis::cmd("HSET").arg(&["zklock:state", "run", run.trim()]));
    Place::Redis(server)
}

#[cfg(feature = "redis")]
fn ask_redis<T: redis::FromRedisValue>(
    server: &zklock_testing::Database,
    command: &redis::Cmd,
) -> T {
    let client = redis::Client::open(server.url()).unwrap();
    command.query(&mut client.get_connection().unwrap()).unwrap()
}

impl Place {
    pub(super) fn connect(&self, lease: Duration) -> Connect {
        match self {
            #[cfg(feature = "mysql")]
            Place::MySql(url) => {
                let address = url.clone();
                let open = crate::sql::mysql::MySql::open;
                Box::new(move |given_up| Ok(Box::new(open(&address, None, lease, given_up)?)))
            }
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => {
                let address = url.clone();
                let open = crate::sql::postgres::Postgres::open;
                Box::new(move |given_up| Ok(Box::new(open(&address, None, lease, given_up)?)))
            }
            #[cfg(feature = "redis")]
            Place::Redis(server) => {
                let address = server.url();
                let open = crate::redis::Redis::open;
                Box::new(move |given_up| Ok(Box::new(open(&address, None, lease, given_up)?)))
            }
            #[cfg(feature = "sqlite")]
            Place::Sqlite(_) => {
                let (file, _) = (self.file(), lease);
                let open = crate::sql::sqlite::Sqlite::open;
                Box::new(move |given_up| Ok(Box::new(open(&file, given_up)?)))
            }
        }
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn file(&self) -> std::path::PathBuf {
        match self {
            Place::Sqlite(directory) => directory.path().join("locks.db"),
            #[allow(unreachable_patterns, reason = "not every build has others")]
            _ => unreachable!("it is no file"),
        }
    }

    /// How many claims and sessions there are.
    pub(super) fn rows(&self) -> i64 {
        match self {
            #[cfg(feature = "mysql")]
            Place::MySql(url) => ask_mysql(url, COUNT).unwrap(),
            #[cfg(feature = "postgres")]
            Place::Postgres(url) => ask_postgres(url, COUNT).unwrap(),
            #[cfg(feature = "redis")]
            Place::Redis(server) => {
                let sessions: i64 = ask_redis(server, redis::cmd("ZCARD").arg("zklock:sessions"));
                let claims = redis::cmd("KEYS").arg("zklock:claim*").to_owned();
                sessions + ask_redis::<Vec<String>>(server, &claims).len() as i64
            }
            #[cfg(feature = "sqlite")]
            Place::Sqlite(_) => {
                let connection = rusqlite::Connection::open(self.file()).unwrap();
                connection.query_row(COUNT, [], |row| row.get(0)).unwrap_or(-1)
            }
        }
    }
}
