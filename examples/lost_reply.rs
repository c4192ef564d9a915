//! How to test your service under a lost reply: a real server, and a proxy that drops the reply you name.
//! It starts the server itself (Debian: `apt-get install libzookeeper-java`).
//!
//! Run: `cargo run -p zklock-examples --bin lost_reply`

use std::time::Duration;

use zklock::Client;
use zklock_testing::{Action, Ops, Proxy, Rule, Server};

/// The service under test: does its work under a lock.
fn service(zk: &Client) -> Result<i64, zklock::LockError> {
    let guard = zk.lock("/examples/lost_reply").acquire().within(Duration::from_secs(30)).wait()?;
    let token = guard.fencing_token();
    guard.release().wait()?;
    Ok(token)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start()?;
    let proxy = Proxy::start(server.addr())?;
    let zk = Client::connect(&proxy.hosts()).wait()?;
    let before = service(&zk)?;

    // The server creates the claim, and the connection breaks before the client learns of it: is the lock
    // orphaned, or taken twice?
    let lost = proxy
        .on(Rule::reply(Ops::creates()).path_prefix("/examples/lost_reply").once(), Action::Reset);
    let token = service(&zk)?;
    lost.wait_hits(1, Duration::from_secs(10))?; // else nothing was tested
    println!("held with token {token} though the reply was lost");

    let left = zk.lock("/examples/lost_reply").contenders().wait()?;
    println!("{} claims are left behind", left.len());
    assert!(token > before && left.is_empty());
    Ok(())
}
