//! The claim by which an upgradeable reader becomes a writer.
//!
//! The reader's claim stays. A second claim of its session, a writer's, is created beside it. It holds once only the first
//! claim holds, and from its creation on no other claim is admitted. It cannot simply go to the end of the queue: a waiting
//! writer before it waits for the first claim itself. If the upgrade ignored that writer and the writer was cancelled,
//! the readers behind the writer would be admitted beside the upgraded hold. So if a writer waits, our claim takes its
//! place: it has the writer's number, and goes before it.
//!
//! Why this is safe: let `u` be the first claim, `w` the earliest claim after it that is no reader's, and `x` ours, in the
//! place of `w`.
//! - `w` was there when `x` was created: it was there before, and is in a listing that shows `x`. (If not, `x` is deleted,
//!   and created again at the end of the queue or in the place of another writer.)
//! - Readers with numbers above that of `w` were created after `w`. Every state of the servers that they have seen since
//!   has `w` or `x` in it. So none was admitted, and none is while `x` is there.
//! - Readers with lower numbers ignore `x`. So `x` waits for all of them, and none of them waits for `x`.
//! - Writers and other upgradeable claims wait for `u`. `x` waits for neither.
//!
//! Without a `w`, the server gives `x` the next number, and `x` waits for all claims before it but `u`. All this needs no
//! more of other claims than their usual rules: readers wait for writers with lower numbers, writers for all.
//!
//! If another client deletes `u`, its hold is lost, and the upgrade fails. The end of the session deletes both claims.

use crate::lock::Kind;
use crate::zookeeper::acquire::listing::Listing;
use crate::zookeeper::name;
use crate::zookeeper::spec::PresentHold;

/// The next step of a claim that changes a hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    /// The claim of the hold was deleted.
    HoldIsGone,
    /// The directory's counter is at its end.
    NoPlaceLeft,
    Holds,
    /// The claim that it replaces is gone: ours is deleted, and made at the end of the queue.
    Recreate,
    /// It waits for the claims in `before`, nearest first. If one of `writers` is a claim and no data, it is deleted, and
    /// made in the place of the first of these.
    Waits {
        before: Vec<&'a str>,
        writers: Vec<&'a str>,
    },
}

/// The waiting claim that ours takes the place of.
#[derive(Debug)]
pub(crate) struct Replaced {
    pub(crate) name: String,
    /// Whether it was there after ours was made.
    pub(crate) is_seen: bool,
    /// The czxid of our claim at that time.
    pub(crate) beside: i64,
}

/// Decides for the claim `own` of that kind, behind the claims in `before`, nearest first.
pub(crate) fn decide<'a>(
    kind: Kind,
    own: &str,
    hold: &PresentHold,
    replaced: Option<&Replaced>,
    listing: &Listing,
    before: impl Iterator<Item = &'a str>,
) -> Decision<'a> {
    let hold = name::last(&hold.claim);
    // It was made before ours, so a listing that shows ours shows it.
    if listing.find(hold).is_none() {
        return Decision::HoldIsGone;
    }
    if name::number_in_turn(own).is_none() {
        return Decision::NoPlaceLeft;
    }
    if kind != Kind::Upgrade {
        return Decision::Holds;
    }
    let before: Vec<&str> = before.collect();
    let writers = match replaced {
        Some(replaced) if !replaced.is_seen && listing.find(&replaced.name).is_none() => {
            return Decision::Recreate;
        }
        Some(_) => Vec::new(),
        None => before.iter().rev().copied().filter(|claim| waits_for_hold(claim)).collect(),
    };
    let before = before.into_iter().filter(|claim| *claim != hold).collect();
    Decision::Waits { before, writers }
}

/// Whether that claim waits for the upgradeable hold. Other upgradeable claims wait too, but keep no reader out.
fn waits_for_hold(claim: &str) -> bool {
    let kind = name::kind(claim);
    !kind.reads() && kind != Kind::Upgrade
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::znode::Stat;

    const HOLD: &str = "zl-7-up-__READ__0000000003";
    const READER: &str = "zl-7-__READ__0000000004";
    const WRITER: &str = "zl-7-__WRIT__0000000005";
    const LATER_WRITER: &str = "zl-7-__WRIT__0000000006";
    const LATER_READER: &str = "zl-7-__READ__0000000007";
    const OTHER: &str = "zl-7-up-__READ__0000000008";
    const AT_END: &str = "zl-7-upgrade-__WRIT__0000000009";
    const IN_PLACE: &str = "zl-7-upgrade-00c5a1e27b9d4f36-__WRIT__0000000005";

    fn decided<'a>(
        listing: &'a Listing,
        kind: Kind,
        own: &str,
        replaced: Option<bool>,
    ) -> Decision<'a> {
        let hold = PresentHold { claim: format!("/l/{HOLD}").into(), token: 1 };
        let replaced =
            replaced.map(|is_seen| Replaced { name: WRITER.to_owned(), is_seen, beside: 1 });
        let before = listing.before(listing.find(own).unwrap());
        decide(kind, own, &hold, replaced.as_ref(), listing, before)
    }

    #[test]
    fn an_upgrade_waits_for_readers_and_takes_the_place_of_the_first_writer() {
        let waits = |before: &[&'static str], writers: &[&'static str]| Decision::Waits {
            before: before.to_vec(),
            writers: writers.to_vec(),
        };
        for (others, own, replaced, decision) in [
            (&[HOLD][..], AT_END, None, waits(&[], &[])),
            (&[HOLD, READER], AT_END, None, waits(&[READER], &[])),
            (&[HOLD, READER, OTHER], AT_END, None, waits(&[OTHER, READER], &[])),
            (
                &[HOLD, READER, WRITER, LATER_WRITER],
                AT_END,
                None,
                waits(&[LATER_WRITER, WRITER, READER], &[WRITER, LATER_WRITER]),
            ),
            (&[HOLD, READER, WRITER, LATER_READER], IN_PLACE, Some(false), waits(&[READER], &[])),
            // The writer gave up before our claim took its place, or after that.
            (&[HOLD, READER, LATER_READER], IN_PLACE, Some(false), Decision::Recreate),
            (&[HOLD, READER, LATER_READER], IN_PLACE, Some(true), waits(&[READER], &[])),
            (&[READER], AT_END, None, Decision::HoldIsGone),
            (&[HOLD], "zl-7-upgrade-__WRIT__2147483647", None, Decision::NoPlaceLeft),
        ] {
            let names = others.iter().chain([&own]).map(|name| (*name).to_owned()).collect();
            let listing = Listing::new(names, Stat::default());
            let found = decided(&listing, Kind::Upgrade, own, replaced);
            assert_eq!(found, decision, "{others:?} {own} {replaced:?}");
        }
    }

    #[test]
    fn a_downgrade_holds_as_long_as_the_claim_that_it_replaces_is_there() {
        let own = "zl-7-read-00c5a1e27b9d4f36-__READ__0000000003";
        for (others, decision) in
            [(&[HOLD, WRITER][..], Decision::Holds), (&[WRITER], Decision::HoldIsGone)]
        {
            let names = others.iter().chain([&own]).map(|name| (*name).to_owned()).collect();
            let listing = Listing::new(names, Stat::default());
            assert_eq!(decided(&listing, Kind::Read, own, None), decision, "{others:?}");
        }
    }
}
