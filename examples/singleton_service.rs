//! A service with one active copy. Another copy takes over when the active one stops or is cut off. The store rejects
//! stale writes. Ctrl-C ends it, even while no server answers.
//!
//! Run two of them: `cargo run -p zklock-examples --bin singleton_service 127.0.0.1:2181 /tmp/service.db`

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use zklock::{Client, Guard};

/// Writes with the token of the lock. A holder that was cut off changes nothing once the next holder has written: that
/// one's token is larger.
fn write(store: &Connection, token: i64, line: &str) -> rusqlite::Result<bool> {
    let written = store.execute(
        "UPDATE state SET token = ?1, line = ?2 WHERE token <= ?1",
        rusqlite::params![token, line],
    )?;
    Ok(written == 1)
}

async fn serve(guard: Arc<Guard>, store: &Connection) -> rusqlite::Result<()> {
    let token = guard.fencing_token();
    println!("active with token {token}");
    for number in 1_u64.. {
        if !write(store, token, &format!("line {number} of {}", std::process::id()))? {
            println!("refused: a newer holder has written");
        }
        // At each await it may be dropped, because the lock is lost or the service stops.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let hosts = arguments.next().unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let file = arguments.next().unwrap_or_else(|| "service.db".to_owned());
    let store = Connection::open(file)?;
    store.busy_timeout(Duration::from_secs(10))?;
    store.execute_batch(
        "CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 1), token INTEGER, line TEXT);
         INSERT OR IGNORE INTO state VALUES (1, 0, '');",
    )?;
    let zk = Client::options().session_timeout(Duration::from_secs(6)).connect(&hosts).await?;
    let lock = zk.lock("/examples/singleton_service").label("the service");
    let stop = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("no signal can be awaited: {error}");
        }
    };
    println!("waiting");
    match lock.whenever_held(|guard| serve(guard, &store)).until(stop).await? {
        None => println!("stopped"),
        Some(failed) => failed?,
    }
    // In an outage, the session expires instead.
    let _ = zk.close().within(Duration::from_secs(1)).await;
    Ok(())
}
