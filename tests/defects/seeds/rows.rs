//! Locks that are rows of a database.

use rusqlite::Connection;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// A row with an owner and the time at which it ends, which nobody reads.
pub struct Expiring(Connection);

impl Expiring {
    pub fn new(connection: Connection) -> Expiring {
        let table =
            "CREATE TABLE IF NOT EXISTS lock (name TEXT PRIMARY KEY, owner TEXT, ends INTEGER)";
        connection.execute_batch(table).unwrap();
        Expiring(connection)
    }

    /// Whether the name was free and is ours now.
    pub fn lock(&self, owner: &str) -> bool {
        let insert = "INSERT OR IGNORE INTO lock VALUES ('a', ?1, unixepoch() + 10)";
        self.0.execute(insert, [owner]).unwrap() > 0
    }

    /// As if that time had passed.
    pub fn expire(&self) {
        self.0.execute_batch("UPDATE lock SET ends = 1").unwrap();
    }
}

/// A row with a version. An update that finds the version it has read is taken for a lock.
pub struct Versioned(Connection);

impl Versioned {
    pub fn new(connection: Connection) -> Versioned {
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS job (version INTEGER);
                 INSERT INTO job SELECT 0 WHERE NOT EXISTS (SELECT * FROM job)",
            )
            .unwrap();
        Versioned(connection)
    }

    /// Whether nobody has changed the row since it was read: "ours".
    pub fn lock(&self) -> bool {
        let read = "SELECT version FROM job";
        let version: i64 = self.0.query_row(read, [], |row| row.get(0)).unwrap();
        let update = "UPDATE job SET version = version + 1 WHERE version = ?1";
        self.0.execute(update, [version]).unwrap() > 0
    }
}

/// A row that a transaction inserts; an error of the transaction is "not locked".
pub struct Inserted {
    client: Client,
    runtime: Runtime,
}

impl Inserted {
    pub fn at(address: &str) -> Inserted {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
            tokio::spawn(connection);
            let table = "CREATE TABLE IF NOT EXISTS held_lock (name TEXT PRIMARY KEY)";
            client.batch_execute(table).await.unwrap();
            client
        });
        Inserted { client, runtime }
    }

    /// Inserts the row; `before_commit` is called when only the commit is missing.
    pub fn lock(&self, before_commit: impl FnOnce()) -> bool {
        let run = |sql| self.runtime.block_on(self.client.batch_execute(sql)).is_ok();
        let inserted = run("BEGIN; INSERT INTO held_lock VALUES ('a')");
        before_commit();
        inserted && run("COMMIT")
    }
}
