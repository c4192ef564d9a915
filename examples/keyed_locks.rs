//! A lock for each of many orders. The locks leave nothing on the servers.
//!
//! Run: `cargo run -p zklock-examples --bin keyed_locks 127.0.0.1:2181 1000`

use zklock::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let hosts = arguments.next().unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let orders: u32 = arguments.next().map_or(Ok(1_000), |number| number.parse())?;
    let zk = Client::connect(&hosts).wait()?;
    let locks = zk.locks("/examples/orders");
    for order in 0..orders {
        let guard = locks.lock(format!("2026/{order}")).acquire().wait()?;
        // ... the order is ours ...
        guard.release().wait()?;
    }
    // Confirmed only after the deletions in the background.
    zk.create("/examples/done", b"", zklock::zookeeper::CreateMode::Ephemeral).wait()?;
    let left = zk.children("/examples/orders").wait().map_or(0, |children| children.names.len());
    println!("{orders} orders, {left} of their znodes are left");
    Ok(())
}
