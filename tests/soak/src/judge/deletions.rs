//! Who deleted which claim: nobody but an operator deletes another's, and nobody its own while it is
//! held.

use std::collections::HashMap;

use super::{Account, Belief, Case, Kind, Verdict, Violation};
use crate::clock::Moment;
use crate::history::{Hand, Tenure};

impl Case<'_> {
    /// Whether a claim went before its holder released it.
    fn is_before_its_release(&self, belief: &Belief, end: Moment) -> bool {
        belief.release.is_none_or(|release| end + self.tolerance < release)
    }

    /// Whether a claim went while its holder believed to hold.
    fn is_believed(&self, belief: &Belief, end: Moment) -> bool {
        belief.knew().is_none_or(|knew| end + self.tolerance < knew)
    }

    /// Whether its process stood still when the claim went. The claim of a hold that is lost is deleted, and its holder
    /// can hear of the loss only once its thread runs.
    fn slept_through(&self, account: &Account, belief: &Belief, end: Moment) -> bool {
        let (Some(since), Some(knew)) = (belief.last_believed(end), belief.knew_lost()) else {
            return false;
        };
        self.was_frozen(belief.process, since, knew) || account.stood_still(since, knew)
    }

    /// When an operator took a holder's claim away, or what an operator did led to it.
    pub(super) fn robbed(&self, tenure: &Tenure, belief: &Belief) -> Option<Moment> {
        let by_its_own = || {
            let end = tenure.end.filter(|_| tenure.ended_by == Some(Hand::Owner))?.at;
            let is = tenure.follows_a_robbery && self.is_before_its_release(belief, end);
            is.then_some(end)
        };
        tenure.robbed().map(|end| end.at).or_else(by_its_own)
    }

    pub(super) fn judge_deletions(&self, accounts: &[Account], verdict: &mut Verdict) {
        let mut beliefs: HashMap<(usize, i64), (&Account, &Belief)> = HashMap::new();
        for account in accounts {
            let of = account.beliefs.iter();
            beliefs.extend(of.map(|belief| ((belief.lock, belief.token), (account, belief))));
        }
        for (number, lock) in self.history.locks.iter().enumerate() {
            let name = self.lock_name(number);
            for theft in &lock.thefts {
                let what = format!(
                    "{name}: session {:#x} deleted {} ({:#x}) of session {:#x}",
                    theft.thief, theft.node, theft.token, theft.owner
                );
                let violation = Violation::new(Kind::Theft, what).at(theft.point.at);
                let sessions = [theft.thief, theft.owner];
                verdict.violations.push(violation.about(number, Some(&theft.node), &sessions));
            }
            for tenure in &lock.tenures {
                verdict.counts.robbed += u64::from(tenure.robbed().is_some());
                let end = tenure.end.filter(|_| tenure.ended_by == Some(Hand::Owner));
                let belief = beliefs.get(&(number, tenure.token)).copied();
                let (Some(end), Some((account, belief))) = (end, belief) else {
                    continue;
                };
                // The release was noted before it was sent, and the leader saw it later still.
                let is_expected = tenure.follows_a_robbery || tenure.broken.is_some();
                if self.is_believed(belief, end.at)
                    && !is_expected
                    && !self.slept_through(account, belief, end.at)
                {
                    let what = format!(
                        "{}: session {:#x} deleted its own {} while it was held",
                        self.who(belief),
                        tenure.session,
                        tenure.node
                    );
                    let violation = Violation::new(Kind::Undermined, what).at(end.at);
                    let (node, sessions) = (Some(tenure.node.as_str()), [tenure.session]);
                    verdict.violations.push(violation.about(number, node, &sessions));
                }
            }
        }
    }
}
