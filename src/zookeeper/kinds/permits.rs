//! Which claims on permits of a semaphore hold.
//!
//! A claim's name says how many permits it wants, and the directory's data how many there are. A claim holds when the
//! permits suffice for it and for all claims before it. So large requests are served in turn, and a holder keeps its
//! permits whatever comes behind it.
//!
//! Any holder may release first, so the next waiter watches the directory's children. Every other waiter watches the claim
//! before its own. A claim keeps its place once it holds. So if others are behind it, it sets its own data
//! again, which wakes the next one. In two cases the claim before ours holds without such a signal. It held before we
//! looked: then its data was set. Or the semaphore had more permits: so the directory's data keeps the most that there
//! ever were. Then our claim is the next waiter as well.

use std::collections::HashSet;
use std::sync::Arc;

use super::limit::Limit;
use super::limit_node::limit;
use crate::client::{Children, TrustedSession, WatchFor, Watched, Znode};
use crate::error::{Code, Result};
use crate::lock::Kind;
use crate::retry::WITHOUT_A_WATCH;
use crate::zookeeper::acquire::attempt::{Ahead, Attempt, ClaimStatus, clear_orphan};
use crate::zookeeper::acquire::listing::Listing;
use crate::zookeeper::acquire::scan::Scan;
use crate::zookeeper::name;
use crate::zookeeper::refusal::{TOO_FEW_PERMITS, found};
use crate::zookeeper::spec::LockSpec;

/// How many permits these claims ask for; no number is large enough for one that asks for none.
fn sum<'a>(claims: impl Iterator<Item = &'a str>) -> u64 {
    claims.fold(0, |sum, claim| match name::kind(claim) {
        Kind::Permits(number) => sum + u64::from(number),
        _ => u64::MAX / 2,
    })
}

/// Where a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// There are never enough permits for it.
    TooFew,
    Holds,
    /// Some of those before it may hold, and any of them may go first.
    Next,
    /// The one before it does not hold yet.
    Behind,
}

/// Where a claim stands that asks for so many permits, behind these that ask for permits too.
fn decide(before: &[&str], wanted: u32, limit: Limit) -> Decision {
    if wanted > limit.now {
        return Decision::TooFew;
    }
    let taken = sum(before.iter().copied());
    if taken + u64::from(wanted) <= u64::from(limit.now) {
        return Decision::Holds;
    }
    if taken > u64::from(limit.most) { Decision::Behind } else { Decision::Next }
}

/// Waits behind those that are before our claim, nearest first, unless there are permits enough for all.
pub(crate) async fn wait_behind(
    attempt: &mut Attempt,
    session: &TrustedSession,
    listing: &Listing,
    wanted: u32,
    before: impl Iterator<Item = &str>,
) -> Result<ClaimStatus> {
    let lock = Arc::clone(&attempt.spec.lock);
    let directory = listing.directory.czxid;
    let before: Vec<&str> = before.filter(|claim| !lock.memory.is_data(directory, claim)).collect();
    let is_of_another_kind = |claim: &&str| !matches!(name::kind(claim), Kind::Permits(_));
    let others = before.iter().copied().filter(is_of_another_kind);
    let mut others = Scan::new(&lock, session, directory, others);
    if let Some(claim) = others.next().await? {
        return look_ahead(attempt, session, listing, claim.name).await.map(|(status, _)| status);
    }
    // What went after the listing took our claim with it perhaps.
    if others.missed_one {
        return Ok(ClaimStatus::Again);
    }
    drop(others);
    let before: Vec<&str> = before.into_iter().filter(|claim| !is_of_another_kind(claim)).collect();
    let Some(limit) = limit(&lock, session, listing).await? else { return Ok(ClaimStatus::Again) };
    let decision = decide(&before, wanted, limit);
    match decision {
        Decision::TooFew => return Ok(ClaimStatus::Impossible(TOO_FEW_PERMITS)),
        Decision::Holds => {
            let is_last = listing.in_order().count() == before.len() + 1;
            return if is_last {
                Ok(ClaimStatus::Held)
            } else {
                wake_the_next(attempt, session).await
            };
        }
        Decision::Next | Decision::Behind => {}
    }
    if session.was_taken_up() && clear_orphans(&lock, session, directory, &before).await? {
        return Ok(ClaimStatus::Again);
    }
    let Some(nearest) = before.first() else { return Ok(ClaimStatus::Again) };
    if attempt.no_wait || decision == Decision::Behind {
        let (status, was_set) = look_ahead(attempt, session, listing, nearest).await?;
        if attempt.no_wait || !was_set {
            return Ok(status);
        }
    }
    watch_directory(attempt, session, listing, &before).await
}

/// Watches that claim; and gives whether its data was set, as it is by one that holds.
async fn look_ahead(
    attempt: &mut Attempt,
    session: &TrustedSession,
    listing: &Listing,
    claim: &str,
) -> Result<(ClaimStatus, bool)> {
    let path = name::join(&attempt.spec.lock.path, claim);
    Ok(match found(attempt.look_ahead(session, &path).await)? {
        Some(Ahead::Claim { version, status, .. }) => (status, version > 0),
        Some(Ahead::Data) => (is_data(attempt, listing, claim), false),
        Some(Ahead::Nobody) | None => (ClaimStatus::Again, false),
    })
}

async fn clear_orphans(
    lock: &LockSpec,
    session: &TrustedSession,
    directory: i64,
    claims: &[&str],
) -> Result<bool> {
    let mut claims = Scan::new(lock, session, directory, claims.iter().copied()).wide();
    let mut cleared = false;
    while let Some(claim) = claims.next().await? {
        let path = name::join(&lock.path, claim.name);
        cleared |= clear_orphan(lock, session, &path, &claim.znode).await;
    }
    Ok(cleared)
}

/// That child is called like a claim, but no session will end it: from the next look on it is left out.
fn is_data(attempt: &Attempt, listing: &Listing, child: &str) -> ClaimStatus {
    attempt.spec.lock.memory.saw_data(listing.directory.czxid, child);
    ClaimStatus::Pausing(WITHOUT_A_WATCH)
}

/// Our claim holds: wakes the waiter that watches it.
async fn wake_the_next(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    let Some(path) = attempt.claim.node().map(|node| Arc::clone(&node.path)) else {
        return Ok(ClaimStatus::Again);
    };
    // Another client has written a request into it, which has woken the waiter as well.
    match found(session.set(&path, attempt.claim.data(), Some(0)).await) {
        Err(error) if error.code() == Code::BAD_VERSION => Ok(ClaimStatus::Held),
        set => Ok(if set?.is_some() { ClaimStatus::Held } else { ClaimStatus::Again }),
    }
}

/// Waits for any change in the directory: a claim before ours may be deleted, or the limit may grow.
async fn watch_directory(
    attempt: &mut Attempt,
    session: &TrustedSession,
    listing: &Listing,
    before: &[&str],
) -> Result<ClaimStatus> {
    let lock = Arc::clone(&attempt.spec.lock);
    if !session.has_room_to_watch(&lock.path, WatchFor::Next) {
        return Ok(ClaimStatus::Pausing(WITHOUT_A_WATCH));
    }
    let watched = session.children_and_watch(&lock.path);
    // For the error of a deadline.
    let ahead = before.first().map(|nearest| name::join(&lock.path, nearest));
    let ahead = ahead.map(|path| (session.get(&path), path));
    let Some(Watched { value, watch }) = found(watched.await)? else {
        return Ok(ClaimStatus::Again);
    };
    let Children { names, stat: directory } = value;
    if let Some((read, path)) = ahead {
        let Some(nearest) = found(read.await)? else { return Ok(ClaimStatus::Again) };
        if !nearest.stat.is_ephemeral() {
            return Ok(is_data(attempt, listing, before[0]));
        }
        attempt.ahead.note(path, nearest);
    }
    let own = attempt.claim.node().map(|node| Arc::clone(&node.path)).unwrap_or_default();
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    // At its end the counter gives a number again, and a claim behind ours may have the name of one that was ahead.
    let are_names_reused = listing.is_out_of_turn && directory.pzxid != listing.directory.pzxid;
    let is_unchanged = (directory.czxid, directory.mzxid)
        == (listing.directory.czxid, listing.directory.mzxid)
        && !are_names_reused
        && names.contains(name::last(&own))
        && before.iter().all(|claim| names.contains(claim));
    Ok(if is_unchanged { ClaimStatus::Watching(watch) } else { ClaimStatus::Again })
}

/// The claim that keeps out one made now. `None` if none does, or that is not known yet.
pub(crate) async fn anybody(
    lock: &LockSpec,
    listing: &Listing,
    session: &TrustedSession,
    wanted: u32,
) -> Result<Option<(String, Znode)>> {
    let Some(limit) = limit(lock, session, listing).await? else { return Ok(None) };
    if wanted > limit.now {
        return Ok(None);
    }
    let mut claims: Vec<&str> = listing.in_order().collect();
    claims.reverse();
    let mut taken = u64::from(wanted);
    let mut nearest = None;
    let mut scan = Scan::new(lock, session, listing.directory.czxid, claims.into_iter()).wide();
    while let Some(claim) = scan.next().await? {
        let path = name::join(&lock.path, claim.name);
        if clear_orphan(lock, session, &path, &claim.znode).await {
            continue;
        }
        taken += sum(std::iter::once(claim.name));
        nearest.get_or_insert((path, claim.znode));
        if taken > u64::from(limit.now) {
            return Ok(nearest);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zookeeper::name::{Naming, numbered_name};

    #[test]
    fn a_claim_holds_when_there_are_permits_for_it_and_all_before_it() {
        let now = |now, most| Limit { now, most };
        for (before, wanted, limit, place) in [
            (&[][..], 1, now(1, 1), Decision::Holds),
            (&[], 2, now(1, 9), Decision::TooFew),
            (&[1, 1], 1, now(3, 3), Decision::Holds),
            (&[1, 1], 2, now(3, 3), Decision::Next),
            (&[2, 1], 1, now(3, 3), Decision::Next),
            (&[2, 2], 1, now(3, 3), Decision::Behind),
            // There were more when they came to hold.
            (&[2, 2], 1, now(3, 4), Decision::Next),
            (&[u32::MAX, u32::MAX], u32::MAX, now(u32::MAX, u32::MAX), Decision::Behind),
        ] {
            let name =
                |permits: &u32| numbered_name(&Naming::Of(Kind::Permits(*permits)).prefix(1, 7), 3);
            let before: Vec<String> = before.iter().map(name).collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            assert_eq!(decide(&before, wanted, limit), place, "{before:?} {wanted} {limit:?}");
        }
        // No number is enough for a claim of another kind.
        let plain = numbered_name(&Naming::Of(Kind::Exclusive).prefix(1, 7), 3);
        assert_eq!(decide(&[&plain], 1, now(u32::MAX, u32::MAX)), Decision::Behind);
    }
}
