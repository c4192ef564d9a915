//! One of several participants leads, and hands over to a participant that it chooses.
//!
//! Run: `cargo run -p zklock-examples --bin election zookeeper://127.0.0.1:2181`

use zklock::Election;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let store = zklock::connect(&address).await?;
    let take_part = |name: &str| Election::new(store.lock("/examples/election").label(name));

    let first = take_part("first").campaign().await?;
    println!("first leads with term {}", first.term());
    // Two more wait, in this order.
    let elections = ["second", "third"].map(take_part);
    let [second, third] = elections.each_ref().map(Election::campaign);
    let mut campaigns = (tokio::spawn(second), tokio::spawn(third));
    let chosen = loop {
        let there = elections[0].participants().await?;
        match there.into_iter().find(|participant| participant.label == "third") {
            Some(third) => break third,
            None => tokio::task::yield_now().await,
        }
    };
    if first.hand_over(&chosen).await? {
        let third = (&mut campaigns.1).await??;
        println!("third leads with term {}", third.term());
        third.resign().await?;
    }
    let second = campaigns.0.await??;
    println!("second leads with term {}", second.term());
    Ok(())
}
