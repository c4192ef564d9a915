//! Three tokio tasks take turns with one lock.
//!
//! Run: `cargo run -p zklock-examples --bin on_tokio zookeeper://127.0.0.1:2181`

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).unwrap_or_else(|| "zookeeper://127.0.0.1:2181".to_owned());
    let store = zklock::connect(&address).await?;
    let lock = store.lock("/examples/on_tokio");
    let tasks: Vec<_> = (1..=3)
        .map(|task| {
            // `acquire` submits the request; `.await` waits until the lock is held.
            let acquire = lock.acquire();
            tokio::spawn(async move {
                let guard = acquire.await?;
                println!("task {task} holds with token {}", guard.fencing_token());
                guard.release().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    store.close().await?;
    Ok(())
}
