//! Three workers begin a job together and end it together. Another client waits until all of it is done.
//!
//! Run: `cargo run -p zklock-examples --bin barriers 127.0.0.1:2181`

use zklock::{Client, Result};

const PARTS: u16 = 3;

fn part(zk: &Client, job: &str, number: u16) -> Result<()> {
    let entered = zk.double_barrier(&format!("{job}/parts"), PARTS).enter().wait()?;
    println!("part {number} works");
    zk.latch(&format!("{job}/done")).count_down().wait()?;
    // Waits for the others.
    entered.leave().wait()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let zk = Client::connect(&hosts).wait()?;
    let job = format!("/examples/job-{}", std::process::id());
    let start = zk.barrier(&format!("{job}/start"));
    let done = zk.latch(&format!("{job}/done"));
    start.set().wait()?;
    done.set(PARTS.into()).wait()?;
    std::thread::scope(|scope| {
        let parts = (1..=PARTS).map(|number| {
            let (zk, job, start) = (&zk, &job, &start);
            scope.spawn(move || start.pass().wait().and_then(|()| part(zk, job, number)))
        });
        let parts: Vec<_> = parts.collect();
        println!("go");
        start.remove().wait()?;
        done.opened().wait()?;
        println!("all parts are done");
        parts.into_iter().try_for_each(|part| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    zk.delete_all(&job).wait()?;
    Ok(())
}
