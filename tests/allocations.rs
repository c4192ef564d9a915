//! What an uncontended acquire and its release allocate, counted in all threads of the process.

use dhat::{Alloc, HeapStats, Profiler};
use zklock::Client;
use zklock_testing::Server;

#[global_allocator]
static ALLOC: Alloc = Alloc;

const CYCLES: usize = 200;

#[test]
fn an_uncontended_acquire_and_release_allocate_little() {
    let server = Server::start().unwrap();
    let client = Client::connect(&server.hosts()).wait().unwrap();
    let lock = client.lock("/locks/allocations");
    let cycle = || lock.acquire().wait().unwrap().release().wait().unwrap();
    // Tables grow, and the lock's directory is made.
    (0..CYCLES).for_each(|_| cycle());
    let profile = std::env::var_os("ZKLOCK_HEAP_PROFILE");
    let profiler = match &profile {
        Some(file) => Profiler::builder().file_name(file).trim_backtraces(Some(24)).build(),
        None => Profiler::builder().testing().build(),
    };
    let count = || {
        let before = HeapStats::get();
        cycle();
        let after = HeapStats::get();
        (after.total_blocks - before.total_blocks, after.total_bytes - before.total_bytes)
    };
    let counts: Vec<(u64, u64)> = (0..CYCLES).map(|_| count()).collect();
    drop(profiler);
    // Heartbeats add to the others: to more of them, the slower the machine is.
    let (blocks, bytes) = counts.iter().min().unwrap();
    println!("{blocks} blocks and {bytes} bytes a cycle");
    // Two fewer if both replies are there before anybody waits for them.
    assert!(*blocks <= 21, "{counts:?}");
}
