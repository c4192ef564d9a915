//! Thousands of locks on one session: two threads and one connection for all of them.
//!
//! Run: `cargo run --release -p zklock-examples --bin many_locks zookeeper://127.0.0.1:2181 10000`

use std::time::Instant;

use zklock::{Guard, LockError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let number: usize = arguments.next().map_or(Ok(1_000), |number| number.parse())?;
    let store = zklock::connect(&address).wait()?;

    let begun = Instant::now();
    // All of them are submitted before the first wait.
    let acquires: Vec<_> =
        (0..number).map(|key| store.lock(&format!("/examples/many/{key}")).acquire()).collect();
    let guards: Vec<Guard> =
        acquires.into_iter().map(|acquire| acquire.wait()).collect::<Result<_, LockError>>()?;
    println!("{} locks held after {:?}", guards.len(), begun.elapsed());

    let begun = Instant::now();
    let releases: Vec<_> = guards.into_iter().map(Guard::release).collect();
    for release in releases {
        release.wait()?;
    }
    println!("released after {:?}", begun.elapsed());
    store.close().wait()?;
    Ok(())
}
