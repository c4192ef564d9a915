//! smoke
use std::time::*;
use zklock::*;
fn main() -> Result<()> {
    let server = zklock_testing::Server::start().unwrap();
    let t = Instant::now();
    let zk = Client::connect(&server.hosts()).wait()?;
    println!("connected {:?} {zk:?}", t.elapsed());
    println!("{:?}", zk.create("/a", b"x", CreateMode::Persistent).wait());
    println!("{:?}", zk.create("/a", b"x", CreateMode::Persistent).wait());
    println!("{:?}", zk.get("/a").wait());
    println!(
        "{:?}",
        zk.multi(&[
            Op::check("/a"),
            Op::create("/b", "x", CreateMode::PersistentSequential),
            Op::set("/a", "y")
        ])
        .wait()
    );
    println!(
        "{:?}",
        zk.multi(&[
            Op::check("/a"),
            Op::create("/b/c", "x", CreateMode::PersistentSequential),
            Op::set("/a", "y")
        ])
        .wait()
    );
    for s in [Strategy::Queue, Strategy::Watch, Strategy::Poll] {
        let lock = zk.lock(&format!("/locks/{s}")).strategy(s).label("smoke");
        let g = lock.acquire().wait()?;
        println!("{g:?} {:?}", lock.contenders().wait()?);
        println!("{:?}", lock.try_acquire().wait());
        println!("{:?}", lock.acquire_within(Duration::from_millis(50)).wait());
        g.release().wait()?;
        let t = Instant::now();
        for _ in 0..3000 {
            let g = lock.acquire().wait()?;
            g.release().wait()?;
        }
        println!("{s} {:?}/cycle", t.elapsed() / 3000);
        let t = Instant::now();
        for _ in 0..3000 {
            let _g = lock.acquire().wait()?;
        }
        println!("{s} {:?}/cycle drop", t.elapsed() / 3000);
    }
    let t = Instant::now();
    drop(zk);
    println!("closed {:?}", t.elapsed());
    Ok(())
}
