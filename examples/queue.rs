//! Jobs that are done at least once: if a worker returns a job or dies, another worker gets it.
//!
//! Run: `cargo run -p zklock-examples --bin queue 127.0.0.1:2181`

use zklock::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hosts = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2181".to_owned());
    let jobs = Client::connect(&hosts).wait()?.queue("/examples/jobs");
    for job in ["wash", "dry"] {
        jobs.put(job).wait()?;
    }
    jobs.put_with_priority(1, "hurry").wait()?;
    let given_back = jobs.take().wait()?;
    println!("{} is given back", String::from_utf8_lossy(given_back.data()));
    drop(given_back);
    for _ in 0..3 {
        let job = jobs.take().wait()?;
        println!("{} is done", String::from_utf8_lossy(job.data()));
        job.done().wait()?;
    }
    Ok(())
}
