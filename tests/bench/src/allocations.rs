//! `allocations WHOSE HOSTS PATH N SECONDS`: what an uncontended acquire and its release allocate, in all threads of the
//! process; a line of JSON. N and SECONDS mean nothing here.

use dhat::{Alloc, HeapStats, Profiler};
use serde_json::json;
use zklock::Client;
use zookeeper_client::{Acls, LockPrefix};

#[global_allocator]
static ALLOC: Alloc = Alloc;

const CYCLES: u64 = 500;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, whose, hosts, path, ..] = &arguments[..] else {
        return Err("usage: allocations zklock|zookeeper-client HOSTS PATH".into());
    };
    match whose.as_str() {
        "zklock" => {
            let lock = Client::connect(hosts).wait()?.lock(path);
            count(|| Ok(lock.acquire().wait()?.release().wait()?))
        }
        "zookeeper-client" => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            // It deletes what is dropped in a task that it spawns.
            let _entered = runtime.enter();
            let client = runtime.block_on(zookeeper_client::Client::connect(hosts))?;
            count(|| {
                let prefix = LockPrefix::new_curator(path, "lock-")?;
                drop(runtime.block_on(client.lock(prefix, b"", Acls::anyone_all()))?);
                Ok(())
            })
        }
        other => Err(format!("{other}: zklock or zookeeper-client").into()),
    }
}

/// After as many cycles that are not counted: tables grow.
fn count(cycle: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
    let cycles = || (0..CYCLES).try_for_each(|_| cycle());
    cycles()?;
    let profiler = Profiler::builder().testing().build();
    let before = HeapStats::get();
    cycles()?;
    let after = HeapStats::get();
    drop(profiler);
    let each = |before: u64, after: u64| (after - before) as f64 / CYCLES as f64;
    let blocks = each(before.total_blocks, after.total_blocks);
    println!(
        "{}",
        json!({ "blocks": blocks, "bytes": each(before.total_bytes, after.total_bytes) })
    );
    Ok(())
}
