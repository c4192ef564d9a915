//! smoke
use std::time::*;
use zklock::*;
fn main() -> Result<()> {
    let server = zklock_testing::Server::start().unwrap();
    let zk = Client::connect(&server.hosts()).wait()?;
    zk.create("/pair", b"", CreateMode::Persistent).wait()?;
    let lock = zk.lock("/locks/q");
    for _ in 0..4000 {
        lock.acquire().wait()?.release().wait()?;
    }
    for _ in 0..7 {
        const N: u32 = 3000;
        let t = Instant::now();
        for _ in 0..N {
            zk.create("/pair/x", b"", CreateMode::Ephemeral).wait()?;
            zk.delete("/pair/x", None).wait()?;
        }
        let pair = t.elapsed() / N;
        let t = Instant::now();
        for _ in 0..N {
            lock.acquire().wait()?.release().wait()?;
        }
        let waited = t.elapsed() / N;
        let t = Instant::now();
        for _ in 0..N {
            drop(lock.acquire().wait()?);
        }
        let dropped = t.elapsed() / N;
        println!(
            "pair {pair:?} lock waited {waited:?} dropped {dropped:?}  ratio {:.2} {:.2}",
            pair.as_secs_f64() / waited.as_secs_f64(),
            pair.as_secs_f64() / dropped.as_secs_f64()
        );
    }
    Ok(())
}
