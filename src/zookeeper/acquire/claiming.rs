//! Making a claim in a queue, and what is in the way of that.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Ahead, Attempt, ClaimStatus, clear_orphan, create_parents};
use super::listing::Listing;
use super::scan::{Claimed, Scan};
use super::seen_ahead::SeenAhead;
use crate::client::TrustedSession;
use crate::error::{Code, Result};
use crate::lock::Kind;
use crate::zookeeper::kinds::{limit_node, permits};
use crate::zookeeper::name;
use crate::zookeeper::refusal::{NO_NUMBER_LEFT, NOT_A_QUEUE, found};
use crate::zookeeper::shortcuts::prove::{self, Guess};
use crate::zookeeper::spec::Spec;

pub(super) enum Made {
    /// It was made, and the directory was listed after that.
    Listed(Result<Arc<Listing>>),
    /// Where it stands is known without a listing, or there is none.
    Decided(ClaimStatus),
}

pub(super) async fn make(attempt: &mut Attempt, session: &TrustedSession) -> Result<Made> {
    let spec = Arc::clone(&attempt.spec);
    let guess = Guess::of(attempt, session);
    if let Some(status) = enter(attempt, session, guess).await? {
        return Ok(Made::Decided(status));
    }
    attempt.claim.send(session);
    // The listing goes out right behind the create. Its reply comes after the create's, so this waits for both and
    // wakes once.
    let listing = if guess.is_none() {
        Some(spec.lock.memory.list(session, &spec.lock.path).await)
    } else {
        None
    };
    match attempt.claim.confirm().await {
        Ok(_) => {}
        Err(error) if error.is_no_node() => {
            return make_directory(&spec, session).await.map(Made::Decided);
        }
        Err(error) if error.is_node_exists() => {
            return wait_for_the_last_number(attempt, session).await.map(Made::Decided);
        }
        Err(error) if error.code() == Code::NO_CHILDREN_FOR_EPHEMERALS => {
            return Ok(Made::Decided(ClaimStatus::Impossible(NOT_A_QUEUE)));
        }
        Err(error) => return Err(error),
    }
    if let Some(listing) = listing {
        return Ok(Made::Listed(listing));
    }
    if let Some(status) = prove::by_its_number(attempt, session, guess).await? {
        return Ok(Made::Decided(status));
    }
    Ok(Made::Listed(spec.lock.memory.list(session, &spec.lock.path).await))
}

/// Before a claim is sent: says which directory it is for; or gives where the attempt stands without a claim.
pub(super) async fn enter(
    attempt: &mut Attempt,
    session: &TrustedSession,
    guess: Guess,
) -> Result<Option<ClaimStatus>> {
    let spec = Arc::clone(&attempt.spec);
    let mut directory = spec.lock.memory.directory();
    // A free key has no znode, and making it tells its czxid.
    if directory == 0 && spec.lock.leaves_nothing && !attempt.no_wait {
        let made = make_directory(&spec, session).await?;
        if let ClaimStatus::Impossible(_) = made {
            return Ok(Some(made));
        }
        directory = spec.lock.memory.directory();
    }
    // A name carries its directory's czxid. And somebody who only tries must not queue up where
    // others could see it ahead of them and give up on a lock that is free.
    let looks_first = attempt.no_wait && !guess.holds;
    if looks_first || directory == 0 && attempt.claim.layout().directory().is_some() {
        let Some(listing) = found(spec.lock.memory.list(session, &spec.lock.path).await)? else {
            return make_directory(&spec, session).await.map(Some);
        };
        directory = listing.directory.czxid;
        if looks_first && is_taken(&spec, &attempt.ahead, &listing, session).await? {
            return Ok(Some(ClaimStatus::Taken));
        }
    }
    attempt.claim.enter(directory);
    Ok(None)
}

/// Makes the lock's directory, and what is missing above it.
pub(super) async fn make_directory(spec: &Spec, session: &TrustedSession) -> Result<ClaimStatus> {
    spec.lock.memory.saw_no_directory();
    if let Kind::Permits(_) = spec.naming.kind {
        return limit_node::make_directory(&spec.lock, session).await;
    }
    // Any child will do: it is what stands above that is missing.
    let claim = name::join(&spec.lock.path, "claim");
    create_parents(session, &spec.lock, &claim).await
}

/// The pause before another number is asked for when it was not the last one that was given twice.
const BEFORE_ANOTHER_NUMBER: Duration = Duration::from_millis(10);

/// The directory's counter is at its end: the server has given a number again while its claim still
/// exists. No client can claim until that claim is gone. Then the first to try gets the number.
pub(super) async fn wait_for_the_last_number(
    attempt: &mut Attempt,
    session: &TrustedSession,
) -> Result<ClaimStatus> {
    let path = attempt.claim.layout().numbered(session.id(), i32::MAX);
    Ok(match found(attempt.look_ahead(session, &path).await)? {
        Some(Ahead::Data) => ClaimStatus::Impossible(NO_NUMBER_LEFT),
        Some(Ahead::Claim { status, .. }) => status,
        Some(Ahead::Nobody) => ClaimStatus::Again,
        None => ClaimStatus::Pausing(BEFORE_ANOTHER_NUMBER),
    })
}

/// Whether somebody holds the lock or waits for it who would block a claim made now; notes the first of them.
async fn is_taken(
    spec: &Spec,
    ahead: &SeenAhead,
    listing: &Listing,
    session: &TrustedSession,
) -> Result<bool> {
    let Spec { lock, naming, .. } = spec;
    if let Kind::Permits(wanted) = naming.kind {
        let nearest = permits::anybody(lock, listing, session, wanted).await?;
        return Ok(nearest.map(|(path, znode)| ahead.note(path, znode)).is_some());
    }
    let claims = naming.blockers(listing.in_order());
    let mut claims = Scan::new(lock, session, listing.directory.czxid, claims);
    while let Some(Claimed { name, znode }) = claims.next().await? {
        let path = name::join(&lock.path, name);
        if !clear_orphan(lock, session, &path, &znode).await {
            ahead.note(path, znode);
            return Ok(true);
        }
    }
    Ok(false)
}
