//! What is built on the client beside locks, under faults, on real servers.

mod barriers;
mod counter;
mod group;
mod queue;

use test_support::Bench;
use zklock_testing::{Action, Rule};

/// How a frame is lost.
const LOSSES: [fn() -> Action; 2] = [|| Action::Drop, || Action::Reset];

/// What a client asked for at a path: not what keeps its session alive.
fn asked(bench: &Bench) -> Vec<zklock_testing::Op> {
    let seen = bench.proxy.seen();
    let ours = Rule::request(zklock_testing::Ops::any()).path_prefix(&bench.path);
    seen.iter().filter(|seen| ours.matches(seen)).map(|seen| seen.op).collect()
}
