//! What is checked in all runs, and the flaws that have to be found.

use super::*;

fn violations(flaw: Option<Flaw>, runs: u64) -> (Option<u64>, u64) {
    let mut proven = 0;
    for seed in 0..runs {
        match Run::new(seed, flaw).run() {
            Ok(steps) => proven += steps,
            Err(_) => return (Some(seed), proven),
        }
    }
    (None, proven)
}

/// How many runs there are: more by `ZKLOCK_SCHEDULES`.
fn runs() -> u64 {
    let set = std::env::var("ZKLOCK_SCHEDULES").ok().and_then(|count| count.parse().ok());
    set.unwrap_or(4_000)
}

#[test]
fn no_session_is_called_proven_after_a_leader_has_ended_it() {
    let (violation, proven) = violations(None, runs());
    assert_eq!(violation, None, "the seed of the run");
    // Not by calling none proven: at least as long as one without a fault would be.
    assert!(proven > runs() * T, "proven for {proven} steps in all");
}

/// Without a fault, what is held once stays held: also on a handle that was connected for some time
/// when it was taken over, of which less is known at first.
#[test]
fn a_lease_that_nothing_disturbs_is_renewed_before_it_ends() {
    for seed in 0..300 {
        for is_adopted in [false, true] {
            let mut run = Run::new(seed, None);
            run.is_calm = true;
            if is_adopted {
                (run.connected, run.connects_at) = (true, END);
                run.lease.adopted(at(0));
                // The first claim.
                run.send(Request::Write);
            }
            let mut was_proven = false;
            while run.now < END {
                run.step();
                let is_proven = run.lease.is_proven_at(at(run.now));
                assert!(is_proven || !was_proven, "seed {seed}, {is_adopted}: at {}", run.now);
                was_proven = is_proven;
                run.now += 1;
            }
            assert!(was_proven);
        }
    }
}

#[test]
fn every_way_to_take_an_answer_for_more_than_it_proves_is_found() {
    for flaw in [
        Flaw::SyncsCountAsWrites,
        Flaw::ReadsCountAsWrites,
        Flaw::AnswersCountFromTheirArrival,
        Flaw::TheTickIsTakenForLess,
        Flaw::ConnectionsCountFromTheirArrival,
        Flaw::NoMargin,
    ] {
        let (violation, _) = violations(Some(flaw), 20_000);
        println!("{flaw:?}: found by the run of seed {violation:?}");
        assert!(violation.is_some(), "{flaw:?} was not found");
    }
}
