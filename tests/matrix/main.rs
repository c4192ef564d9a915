//! The step-fault matrix: each request of each operation of each recipe meets each fault.
//!
//! Nobody writes the cases. A clean run of an operation counts the frames that it sends through a
//! proxy and gets back ([`step`]); each of them is then lost, late, cut off, caught by the end of the
//! session, by a link that carries one direction only or by a restart of the server ([`fault`]), or
//! by what a client of another kind does to the tree ([`foreign`]), one in each run. Where a fault
//! leaves something to repair, a run with that fault counts the steps of the recovery, and each kind
//! of them meets a second one ([`plan`]). After every run the same is checked ([`checks`],
//! [`guarding`]): the result is right or an honest error, there was one holder at most and its
//! token is its claim's, a guard says of itself what the faults allow ([`allowed`]), the next
//! contender gets in, and nothing is left on the server.
//!
//! A case that fails prints the command that repeats it. `ZKLOCK_CASE` takes the beginning of a
//! case's name, too: `ZKLOCK_CASE=queue/release` runs all that begins so. `ZKLOCK_MATRIX=all` plays all cases
//! (`make matrix`); without it, a sample ([`plan::Wanted`]).

mod allowed;
mod armed;
mod bench;
mod case;
mod checks;
mod contending;
mod drive;
mod fault;
mod flag;
mod foreign;
mod guarding;
mod operation;
mod operations;
mod plan;
mod pool;
mod recipe;
mod run;
mod scenario;
mod silence;
mod step;
mod summary;
mod tree;

use parking_lot::Mutex;

use plan::{Plan, Wanted};
use pool::Pool;

/// Each of them takes the whole machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn every_operation_of_every_recipe_withstands_every_fault_at_every_step() {
    play(Wanted::faults, [300, 9_000]);
}

#[test]
fn every_recovery_from_a_fault_withstands_a_second_one() {
    play(Wanted::pairs, [60, 3_000]);
}

#[test]
fn every_operation_withstands_a_foreign_client_between_any_two_steps() {
    play(Wanted::interfering, [100, 3_000]);
}

/// `at_least`: fewer cases, of the sample or of all, would mean that the matrix has lost a part.
fn play(plan: fn(&Wanted, &Pool) -> Plan, at_least: [usize; 2]) {
    let _alone = ONE_AT_A_TIME.lock();
    let wanted = Wanted::by_environment();
    let pool = Pool::start();
    let (cases, mut failures) = plan(&wanted, &pool);
    let results = pool.run(cases);
    summary::print(&results);
    failures.extend(results.iter().filter_map(|result| result.failure.clone()));
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    let reached = results.iter().filter(|result| result.reached).count();
    if wanted.is_everything() {
        assert!(reached >= at_least[usize::from(wanted.is_all())], "only {reached} cases");
        // What goes on in the background is counted as it comes, so a few steps may never come again.
        let unmet = results.len() - reached;
        assert!(unmet <= results.len() / 50, "{unmet} cases never came to their step");
    } else {
        assert!(results.is_empty() || reached > 0, "none of these cases came to its step");
    }
}
