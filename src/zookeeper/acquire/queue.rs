//! Create a numbered child of the lock's znode; hold when it is the first, else watch the one
//! before it.

use std::cmp::Reverse;
use std::sync::Arc;

use super::attempt::{Attempt, ClaimStatus};
use super::claiming::{self, Made};
use super::listing::Listing;
use super::scan::Scan;
use crate::client::{TrustedSession, WatchFor, Znode};
use crate::error::Result;
use crate::lock::Kind;
use crate::zookeeper::kinds::permits;
use crate::zookeeper::kinds::upgrade::{self, Decision, Replaced};
use crate::zookeeper::name;
use crate::zookeeper::refusal::{GONE, NO_PLACE_LEFT, found};
use crate::zookeeper::shortcuts::following::Before;
use crate::zookeeper::shortcuts::prove;

/// Whose turn comes soon: with at most so many before it.
const NEAR: usize = 100;

pub(super) async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    let status = look(attempt, session).await?;
    Ok(if attempt.abandon_if_deleted() { ClaimStatus::Again } else { status })
}

async fn look(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    let spec = Arc::clone(&attempt.spec);
    let behind = attempt.behind.take();
    let listed = if attempt.claim.node().is_none() {
        match claiming::make(attempt, session).await? {
            Made::Listed(listed) => listed,
            Made::Decided(status) => return Ok(status),
        }
    } else if prove::holds_after_its_wait(attempt, session, behind).await? {
        return Ok(ClaimStatus::Held);
    } else {
        spec.lock.memory.list(session, &spec.lock.path).await
    };
    if let Some(listing) = found(listed)? {
        return stand(attempt, session, &listing).await;
    }
    // The directory is gone, and every claim with it, ours too.
    spec.lock.memory.saw_no_directory();
    attempt.claim.abandon();
    Ok(ClaimStatus::Again)
}

/// Where the claim stands among those that are listed.
async fn stand(
    attempt: &mut Attempt,
    session: &TrustedSession,
    listing: &Listing,
) -> Result<ClaimStatus> {
    let spec = Arc::clone(&attempt.spec);
    let node = attempt.claim.node().map(|node| (Arc::clone(&node.path), node.czxid));
    let (own, czxid) = node.unwrap_or_default();
    let own = name::last(&own);
    // Otherwise somebody has deleted it, or the directory that it was in.
    let place = listing.find(own).filter(|_| attempt.claim.is_in(listing));
    let before: Option<Box<dyn Iterator<Item = &str> + Send>> = match place {
        Some(_) if listing.is_out_of_turn => {
            match made_before(session, &spec.lock.path, listing, own, czxid).await? {
                MadeBefore::Claims(claims) => Some(Box::new(claims.into_iter())),
                MadeBefore::OwnIsGone => None,
                MadeBefore::MayBeReplaced => return Ok(ClaimStatus::Again),
            }
        }
        place => place.map(|place| Box::new(listing.before(place)) as _),
    };
    let (Some(place), Some(before)) = (place, before) else {
        attempt.claim.abandon();
        return Ok(ClaimStatus::Again);
    };
    if let Some(tell) = &spec.naming.on_position {
        tell(own, listing.before(place).last().unwrap_or(own));
    }
    attempt.purpose = if listing.rank(place) <= NEAR { WatchFor::Next } else { WatchFor::Later };
    match (spec.naming.kind, &spec.hold.changes) {
        (Kind::Permits(wanted), _) => {
            permits::wait_behind(attempt, session, listing, wanted, before).await
        }
        (_, None) => wait_behind(attempt, session, listing.directory.czxid, before).await,
        (kind, Some(hold)) => {
            if let Some(replaced) = &mut attempt.in_place_of {
                // Our claim may be a new one: somebody deleted the one that it was seen with.
                replaced.is_seen &= replaced.beside == czxid;
            }
            let replaced = attempt.in_place_of.as_ref();
            let decision = upgrade::decide(kind, own, hold, replaced, listing, before);
            change_hold(attempt, session, (listing.directory.czxid, czxid), decision).await
        }
    }
}

async fn change_hold(
    attempt: &mut Attempt,
    session: &TrustedSession,
    (directory, czxid): (i64, i64),
    decision: Decision<'_>,
) -> Result<ClaimStatus> {
    let lock = Arc::clone(&attempt.spec.lock);
    let writer = match decision {
        Decision::HoldIsGone => return Ok(ClaimStatus::Impossible(GONE)),
        Decision::NoPlaceLeft => return Ok(ClaimStatus::Impossible(NO_PLACE_LEFT)),
        Decision::Holds => return Ok(ClaimStatus::Held),
        Decision::Recreate => None,
        Decision::Waits { before, writers } => {
            let mut writers = Scan::new(&lock, session, directory, writers.into_iter());
            let Some(writer) = writers.next().await? else {
                if let Some(replaced) = &mut attempt.in_place_of {
                    (replaced.is_seen, replaced.beside) = (true, czxid);
                }
                return wait_behind(attempt, session, directory, before.into_iter()).await;
            };
            Some(writer.name)
        }
    };
    attempt.claim.abandon();
    attempt.claim.take_place(writer.and_then(name::sequence));
    let replaced = |name: &str| Replaced { name: name.to_owned(), is_seen: false, beside: 0 };
    attempt.in_place_of = writer.map(replaced);
    Ok(ClaimStatus::Again)
}

/// Watches the nearest claim before ours, and no other. When it is deleted, the next one is looked up. So
/// a cancelled waiter hands the lock to nobody.
async fn wait_behind<'a>(
    attempt: &mut Attempt,
    session: &TrustedSession,
    directory: i64,
    before: impl Iterator<Item = &'a str>,
) -> Result<ClaimStatus> {
    let spec = Arc::clone(&attempt.spec);
    let claims = before.filter(|child| !spec.lock.memory.is_data(directory, child));
    let mut blockers = spec.naming.blockers(claims).peekable();
    if let Some(nearest) = blockers.next() {
        // What can become a claim of another kind goes when that has come to stand before ours.
        let is_only = blockers.peek().is_none() && !name::kind(nearest).can_change();
        if let Some(status) = watch_claim(attempt, session, nearest, is_only).await? {
            return Ok(status);
        }
        // Somebody's data with a claim's name.
        spec.lock.memory.saw_data(directory, nearest);
        let mut rest = Scan::new(&spec.lock, session, directory, blockers).wide();
        if let Some(claim) = rest.next().await? {
            let status = watch_claim(attempt, session, claim.name, false).await?;
            return Ok(status.unwrap_or(ClaimStatus::Again));
        }
        // What was before went after the listing that has shown our claim, which may be gone too by now.
        if rest.missed_one {
            return Ok(ClaimStatus::Again);
        }
    }
    spec.lock.memory.set_contended(attempt.attempts > 0);
    prove::saw_first(attempt);
    Ok(ClaimStatus::Held)
}

/// Watches that child of the lock's directory, which may be the only one before ours; `None` if it is somebody's data.
async fn watch_claim(
    attempt: &mut Attempt,
    session: &TrustedSession,
    child: &str,
    is_only: bool,
) -> Result<Option<ClaimStatus>> {
    let path = name::join(&attempt.spec.lock.path, child);
    let before = Before { is_only, is_in_our_directory: true };
    let watched = found(attempt.watch_before(session, &path, before).await)?;
    Ok(watched.unwrap_or(Some(ClaimStatus::Again)))
}

/// The claims before ours, where numbers do not show the order.
enum MadeBefore<'a> {
    /// These, nearest first.
    Claims(Vec<&'a str>),
    /// Ours is gone, even if another claim has its name.
    OwnIsGone,
    /// A claim of the listing is gone, and since then another may have taken its place.
    MayBeReplaced,
}

/// The claims that were made before ours. The order is that of the transactions that made them.
///
/// A claim in the place of another has a number that was given in turn. It comes before claims with numbers out of
/// turn.
async fn made_before<'a>(
    session: &TrustedSession,
    directory: &str,
    listing: &'a Listing,
    own: &str,
    czxid: i64,
) -> Result<MadeBefore<'a>> {
    let look = |child| (child, session.get(&name::join(directory, child)));
    // Ours at the end: a claim that is deleted from outside must not be taken for the first because those
    // before it went later.
    let (ours, others) = listing.in_order().partition::<Vec<_>, _>(|child| *child == own);
    let looks: Vec<_> = others.into_iter().chain(ours).map(look).collect();
    let mut before = Vec::new();
    let (mut is_there, mut may_be_replaced) = (false, false);
    for (child, look) in looks {
        let Some(Znode { stat, .. }) = found(look.await)? else {
            may_be_replaced |= child != own;
            continue;
        };
        if child == own {
            is_there |= stat.czxid == czxid;
        } else if listing.is_placed_before(child, own).unwrap_or(stat.czxid < czxid) {
            before.push((stat.czxid, child));
        }
    }
    before.sort_unstable_by_key(|claim| Reverse(*claim));
    Ok(match (is_there, may_be_replaced) {
        (false, _) => MadeBefore::OwnIsGone,
        (true, true) => MadeBefore::MayBeReplaced,
        (true, false) => MadeBefore::Claims(before.into_iter().map(|(_, child)| child).collect()),
    })
}
