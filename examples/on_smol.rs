//! The same on smol: zklock needs no particular runtime.
//!
//! Run: `cargo run -p zklock-examples --bin on_smol zookeeper://127.0.0.1:2181`

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    smol::block_on(async {
        let store = zklock::connect(&address).await?;
        let lock = store.lock("/examples/on_smol");
        let tasks: Vec<_> = (1..=3)
            .map(|task| {
                let acquire = lock.acquire();
                smol::spawn(async move {
                    let guard = acquire.await?;
                    println!("task {task} holds with token {}", guard.fencing_token());
                    guard.release().await
                })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        store.close().await?;
        Ok(())
    })
}
