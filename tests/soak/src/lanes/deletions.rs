//! An operator who deletes locks that are in use.

use super::{Record, Until, drive};
use crate::clock::Moment;
use crate::fault::Fault;
use crate::locks::LockName;
use crate::operator::Operator;
use crate::plan::Lane;
use crate::trouble::Trouble;

/// Deletes locks with all their claims, until it is over. Contenders make them anew.
///
/// # Errors
/// None: while no server does it there is nothing to be deleted, and it comes to that again.
pub fn delete_locks(
    operator: &Operator,
    locks: &[LockName],
    lane: Lane,
    until: &Until,
    record: &Record,
) -> Result<(), Trouble> {
    drive(lane, until, record, |draw| {
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
