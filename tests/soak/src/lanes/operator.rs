//! An operator who deletes locks that are in use, and breaks holds.

use std::time::{Duration, Instant};

use super::{Record, Until, drive};
use crate::clock::Moment;
use crate::fault::{Fault, FaultKind};
use crate::locks::LockName;
use crate::operator::Operator;
use crate::plan::{Draw, Lane};
use crate::trouble::Trouble;

/// Holds that are as old as that, at least, are broken: younger ones end before they hear of it.
const OLD: Duration = Duration::from_millis(120);
/// How long to wait for such a one.
const AIMS_FOR: Duration = Duration::from_secs(3);

/// Deletes locks with all their claims, and breaks holds, until it is over. Contenders make them anew.
///
/// # Errors
/// None: while no server does it there is nothing to be done, and it comes to that again.
pub fn operate(
    operator: &Operator,
    locks: &[LockName],
    lane: Lane,
    until: &Until,
    record: &Record,
) -> Result<(), Trouble> {
    drive(lane, until, record, |draw| {
        if draw.kind == FaultKind::HoldBroken {
            break_holds(operator, locks, draw, until, record);
            return Ok(None);
        }
        let target = draw.victim_of(locks.len());
        let from = Moment::now();
        for _ in 0..draw.times {
            if operator.delete_all(&locks[target]).is_err() || !until.sleep(draw.lasts) {
                break;
            }
        }
        let (kind, until) = (draw.kind, Moment::now());
        Ok(Some(Fault { kind, from, until, target: target as u32 }))
    })
}

/// Breaks holds that last, wherever they are, and records those that were broken.
fn break_holds(
    operator: &Operator,
    locks: &[LockName],
    draw: &Draw,
    until: &Until,
    record: &Record,
) {
    let aimed = Instant::now() + AIMS_FOR;
    let mut broken = 0;
    let mut before = operator.holders(locks);
    while broken < draw.times && Instant::now() < aimed && until.sleep(OLD) {
        let now = operator.holders(locks);
        let first = draw.victim_of(locks.len());
        for target in (first..locks.len()).chain(0..first) {
            let (Some(was), Some(is)) = (&before[target], &now[target]) else { continue };
            if was.token != is.token || broken == draw.times {
                continue;
            }
            let (kind, from) = (draw.kind, Moment::now());
            if operator.break_hold(&locks[target], is, draw.lasts).is_ok_and(|it| it) {
                broken += 1;
                record.add(Fault { kind, from, until: Moment::now(), target: target as u32 });
            }
        }
        before = now;
    }
}
