//! Work that watches its lock: it pauses while the connection is lost, and ends when the lock is lost.
//! (`Lock::while_held` ends work at the loss without any of this.)
//!
//! Run: `cargo run -p zklock-examples --bin work_or_loss zookeeper://127.0.0.1:2181`

use std::time::Duration;

use tokio::time::sleep;
use zklock::StoreOptions;
use zklock::{Guard, GuardState};

/// Does steps until the lock is lost. Returns how many were done.
async fn work(guard: &Guard, steps: u32) -> u32 {
    let mut states = guard.states();
    let mut state = GuardState::Held;
    let mut done = 0;
    while done < steps && state != GuardState::Lost {
        tokio::select! {
            // The first state arrives at once, later ones at each change.
            Some(changed) = states.next() => {
                println!("the lock is {changed:?}");
                state = changed;
            }
            () = sleep(Duration::from_millis(100)), if state == GuardState::Held => {
                done += 1;
                println!("step {done}");
            }
        }
    }
    done
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let steps = arguments.next().map_or(Ok(10), |steps| steps.parse())?;
    let store =
        StoreOptions::new().session_timeout(Duration::from_secs(6)).connect(&address).await?;
    let guard = store.lock("/examples/work_or_loss").acquire().await?;
    let done = work(&guard, steps).await;
    match guard.lost().get() {
        None => println!("all {done} steps are done"),
        Some(reason) => println!("stopped after {done} steps: the lock is lost ({reason:?})"),
    }
    Ok(())
}
