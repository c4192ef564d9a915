//! Workers join a group with their addresses, and each sees who joins and leaves.
//!
//! Run: `cargo run -p zklock-examples --bin group 127.0.0.1:2181`

use zklock::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let workers = Client::connect(&hosts).wait()?.group("/examples/workers");
    let mut members = workers.watch_members();
    let mut hear = || -> Result<(), Box<dyn std::error::Error>> {
        let there = members.wait().ok_or("it has ended")??;
        let addresses: Vec<_> =
            there.iter().map(|member| String::from_utf8_lossy(&member.data).into_owned()).collect();
        println!("there are {addresses:?}");
        Ok(())
    };
    hear()?;
    let first = workers.join("10.0.0.1:8000").wait()?;
    hear()?;
    let second = workers.join("10.0.0.2:8000").wait()?;
    hear()?;
    first.leave().wait()?;
    hear()?;
    drop(second);
    Ok(())
}
