//! A store that rejects stale tokens.
//!
//! A holder's write can arrive after the next holder's. This program makes such a late write on purpose.
//!
//! Run: `cargo run -p zklock-examples --bin fenced_store zookeeper://127.0.0.1:2181`

use rusqlite::{Connection, params};
struct Store(Connection);

impl Store {
    fn open() -> rusqlite::Result<Store> {
        let store = Connection::open_in_memory()?;
        store.execute_batch(
            "CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER, token INTEGER);
             INSERT INTO accounts VALUES ('a', 100, 0);",
        )?;
        Ok(Store(store))
    }

    /// Writes in one statement, unless the store has seen a larger token. Returns whether it was written.
    fn set_balance(&self, name: &str, balance: i64, token: i64) -> rusqlite::Result<bool> {
        let written = self.0.execute(
            "UPDATE accounts SET balance = ?2, token = ?3 WHERE name = ?1 AND token <= ?3",
            params![name, balance, token],
        )?;
        Ok(written == 1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let store = Store::open()?;
    let locks = zklock::connect(&address).wait()?;
    let lock = locks.lock("/examples/fenced_store");

    let first = lock.acquire().wait()?;
    let late = first.fencing_token();
    first.release().wait()?;

    let second = lock.acquire().wait()?;
    let token = second.fencing_token();
    println!("second holder, token {token}: {}", said(store.set_balance("a", 90, token)?));
    println!("first holder, token {late}: {}", said(store.set_balance("a", 80, late)?));
    second.release().wait()?;
    Ok(())
}

fn said(written: bool) -> &'static str {
    if written { "written" } else { "refused" }
}
