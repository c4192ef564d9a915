//! Acquires a lock with a limit on a thread, works, and releases it.
//!
//! Run: `cargo run -p zklock-examples --bin blocking zookeeper://127.0.0.1:2181`
//! (`make server ARGS='--port 2181'` starts a server to try it with; `sqlite:FILE` needs none.)

use std::time::Duration;

use zklock::LockError;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let store = zklock::connect(&address).wait()?;
    let lock = store.lock("/examples/blocking").label("the example");
    match lock.acquire().within(Duration::from_secs(5)).wait() {
        Ok(guard) => {
            println!("working with token {}", guard.fencing_token());
            // Waits until the servers have confirmed it. Dropping the guard releases it in the background.
            guard.release().wait()?;
        }
        Err(LockError::TimedOut { ahead: Some(holder), .. }) => println!("{holder} has it"),
        Err(error) => return Err(error.into()),
    }
    store.close().wait()?;
    Ok(())
}
