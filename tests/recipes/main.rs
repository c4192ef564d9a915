//! What is built on the client beside locks, under faults, on real servers.

mod barriers;
mod contract;
mod counter;
mod group;
mod queue;
mod queue_history;
mod receipts;

use std::thread;

use test_support::{Bench, TIMEOUT};
use zklock::Client;
use zklock_testing::{Action, Rule};

/// How a frame is lost.
const LOSSES: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];

/// Runs an operation whose session ends while that frame is on its way, so that nobody can ask any more what became of it.
fn while_its_session_ends<T: Send>(
    bench: &Bench,
    client: &Client,
    frame: Rule,
    operation: impl FnOnce() -> T + Send,
) -> T {
    let gate = bench.proxy.hold(frame.once());
    thread::scope(|scope| {
        let running = scope.spawn(operation);
        gate.wait_reached(TIMEOUT).unwrap();
        // No way back before it has ended.
        bench.proxy.refuse();
        bench.expire(client);
        gate.release();
        bench.proxy.heal();
        running.join().unwrap()
    })
}

/// What the paths of a test begin with: that of the recipe, and what the recipe keeps beside it.
fn around(bench: &Bench) -> &str {
    bench.path.rsplit_once('/').unwrap().0
}

/// What a client asked for around a path: not what keeps its session alive.
fn asked(bench: &Bench) -> Vec<zklock_testing::Op> {
    let seen = bench.proxy.seen();
    let ours = Rule::request(zklock_testing::Ops::any()).path_prefix(around(bench));
    seen.iter().filter(|seen| ours.matches(seen)).map(|seen| seen.op).collect()
}
