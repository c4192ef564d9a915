//! Where the claim stands by which an upgradeable reader becomes a writer.
//!
//! The reader's claim stays; a second one of its session, a writer's, is made beside it. It holds once nobody holds but the
//! first, and from when it was made nobody new comes to. Two things are in the way of an ordinary place at the end
//! of the queue. A writer that waits before it would be waited for, and waits for the first claim itself. And were it
//! left out, the readers behind that writer would come in if it gave up, beside the upgraded hold. So where a writer waits, ours is
//! made in its place: with its number, and before it.
//!
//! Why it is right then. Let `u` be the first claim, `w` the earliest after it that is no reader's, `x` ours, in the
//! place of `w`.
//! - `w` was there when `x` was made: it was before, and is in a listing that shows `x`. (Where it is not, `x` is
//!   deleted, and the next is made where the queue ends by then, or another waits.)
//! - Readers with numbers above that of `w` were made after `w`. Whatever state of the servers one of them has been shown
//!   since, `w` was in it, or `x` was: so none was let in, and none is while `x` is there.
//! - Readers with lower numbers do not look at `x`, so `x` waits for all of them, and none of them for `x`.
//! - Writers wait for `u`, and so do others that are upgradeable. `x` waits for neither.
//!
//! Without a `w` the servers give `x` the next number, and all that are before it are waited for but `u`. All this
//! needs of others is what they do anyway: readers wait for writers with lower numbers, writers for all.
//!
//! Should `u` be deleted by somebody, its hold is lost, and the upgrade fails. The end of the session takes both.

use std::sync::Arc;

use super::admission::Admission;
use crate::client::TrustedSession;
use crate::error::Result;
use crate::lock::Kind;
use crate::zookeeper::acquire::attempt::{Attempt, ClaimStatus};
use crate::zookeeper::acquire::listing::Listing;
use crate::zookeeper::acquire::scan::Scan;
use crate::zookeeper::name;
use crate::zookeeper::refusal::{GONE, NO_PLACE_LEFT};
use crate::zookeeper::spec::{Part, Spec};

/// Where our claim stands.
pub(crate) enum Standing<'a> {
    Decided(ClaimStatus),
    /// Of these, nearest first, those are to be waited for that its admission says.
    Behind(Vec<&'a str>),
}

/// Where our claim stands behind those that were before it, nearest first.
pub(crate) async fn stand<'a>(
    attempt: &mut Attempt,
    session: &TrustedSession,
    listing: &Listing,
    part: &Part,
    before: impl Iterator<Item = &'a str>,
) -> Result<Standing<'a>> {
    let decided = |status| Ok(Standing::Decided(status));
    // It was made before ours, so what shows ours would show it.
    if listing.find(name::last(&part.of)).is_none() {
        return decided(ClaimStatus::Impossible(GONE));
    }
    let own = attempt.claim.node().and_then(|node| name::sequence(&node.path));
    if own.is_none_or(name::is_out_of_turn) {
        return decided(ClaimStatus::Impossible(NO_PLACE_LEFT));
    }
    if attempt.spec.admission == Admission::InPlace {
        return decided(ClaimStatus::Held);
    }
    let (spec, mut before) = (Arc::clone(&attempt.spec), before.collect::<Vec<&str>>());
    let waits = match &mut attempt.in_place_of {
        Some((_, true)) => None,
        Some((waits, was_there)) if listing.find(waits).is_some() => {
            *was_there = true;
            None
        }
        Some(_) => Some(None),
        None => first_that_waits(&spec, session, listing, &before).await?.map(Some),
    };
    if let Some(waits) = waits {
        attempt.claim.give_up();
        attempt.claim.take_place(waits.and_then(name::sequence));
        attempt.in_place_of = waits.map(|waits| (waits.to_owned(), false));
        return decided(ClaimStatus::Again);
    }
    let own_hold = name::last(&part.of);
    before.retain(|claim| *claim != own_hold);
    Ok(Standing::Behind(before))
}

/// The earliest of those claims that can't hold as long as ours does, but for those that are upgradeable, and
/// for one of ours that is being deleted.
async fn first_that_waits<'a>(
    spec: &Spec,
    session: &TrustedSession,
    listing: &Listing,
    before: &[&'a str],
) -> Result<Option<&'a str>> {
    let waits = |claim: &&str| {
        let kind = name::kind(claim);
        !kind.reads() && kind != Kind::Upgrade
    };
    let waiting = before.iter().rev().copied().filter(waits);
    let mut waiting = Scan::new(spec, session, listing.directory.czxid, waiting);
    Ok(waiting.next().await?.map(|claim| claim.name))
}
