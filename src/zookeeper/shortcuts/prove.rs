//! Where a claim stands, proven by what this client knows. Each proof saves a listing, which is the longer the more wait.
//!
//! - The number of a new claim is the next after that of our last hold, so nobody is before it: `continuity.rs`.
//! - The claim before ours is gone, and it was the only one, or has announced its release: `succession.rs`.
//! - The claim before ours is gone, and it was this client's own and the first: `memory.rs`.
//!
//! A guess decides only which question is asked first: where it proves nothing, a listing is read. The acquire loop is
//! complete without any of it: the simulator runs it with these proofs switched off as well.

use std::sync::Arc;

use super::following::Before;
use super::succession::Behind;
use crate::client::{TrustedSession, WatchFor};
use crate::error::Result;
use crate::zookeeper::acquire::attempt::{Attempt, ClaimStatus};
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::name;
use crate::zookeeper::refusal::found;
use crate::zookeeper::spec::Spec;

#[derive(Clone, Copy, Default)]
pub(crate) struct Guess {
    /// It is the first: nobody came between the last two.
    pub(crate) holds: bool,
    /// It waits for the claim with the previous number, because the last acquire had to wait.
    waits: bool,
}

impl Guess {
    pub(crate) fn of(attempt: &Attempt, session: &TrustedSession) -> Guess {
        let spec = &attempt.spec;
        let is_named = attempt.claim.layout().directory().is_some();
        let tells = is_named && spec.naming.is_by_number_alone();
        if !tells || !spec.lock.client.takes_shortcuts() {
            return Guess::default();
        }
        let holds = spec.lock.memory.continuity().is_expected(session);
        Guess { holds, waits: !attempt.no_wait && spec.lock.memory.is_contended() }
    }

    pub(crate) fn is_none(self) -> bool {
        !self.holds && !self.waits
    }
}

/// Where a claim stands that was just made, if its number tells.
pub(crate) async fn by_its_number(
    attempt: &mut Attempt,
    session: &TrustedSession,
    guess: Guess,
) -> Result<Option<ClaimStatus>> {
    if guess.holds && is_first_by_its_number(attempt) {
        return Ok(Some(ClaimStatus::Held));
    }
    if guess.waits { watch_previous_number(attempt, session).await } else { Ok(None) }
}

/// Whether a claim that was just made holds, as nobody came in between since this client held last.
pub(crate) fn is_first_by_its_number(attempt: &Attempt) -> bool {
    let (spec, claim) = (&attempt.spec, &attempt.claim);
    let tells = spec.naming.is_by_number_alone() && spec.lock.client.takes_shortcuts();
    let own = claim.node().filter(|_| tells);
    let (Some(own), Some(directory)) = (own, claim.layout().directory()) else { return false };
    let is_first = spec.lock.memory.continuity().is_first(&own.in_directory(directory));
    if is_first {
        spec.lock.memory.set_contended(false);
        saw_first(attempt);
    }
    is_first
}

/// Whether our claim holds, now that what it waited for has come.
pub(crate) async fn holds_after_its_wait(
    attempt: &mut Attempt,
    session: &TrustedSession,
    behind: Option<Behind>,
) -> Result<bool> {
    let own = attempt.claim.node().cloned();
    let behind = behind.filter(|_| attempt.spec.lock.client.takes_shortcuts());
    let (Some(own), Some(behind)) = (own, behind) else { return Ok(false) };
    let follows = attempt.follows(session, &behind);
    let holds = follows || succeeds(&attempt.spec, session, &own, behind.czxid).await?;
    if holds {
        saw_first(attempt);
    }
    Ok(holds)
}

/// Whether our claim holds now that the one before it is gone: if that was the first, as this client
/// knows if it was its own. That saves a listing, which is the longer the more wait.
async fn succeeds(spec: &Spec, session: &TrustedSession, own: &Node, before: i64) -> Result<bool> {
    if !spec.is_told_by_number(own) || !spec.lock.memory.was_first(before) {
        return Ok(false);
    }
    // Somebody may have deleted it, or the directory that it was in.
    let present = found(session.get(&own.path).await)?;
    Ok(present.is_some_and(|present| present.stat.czxid == own.czxid))
}

/// Our claim is the first: what the next may know by that.
pub(crate) fn saw_first(attempt: &Attempt) {
    let (spec, claim) = (&attempt.spec, &attempt.claim);
    // Of those that hold together, another may be the first.
    let Some(own) = claim.node().filter(|_| spec.naming.is_by_number_alone()) else { return };
    spec.lock.memory.saw_first(own.czxid);
    let Some(directory) = claim.layout().directory() else { return };
    let may_wait = spec.lock.client.announces_releases() && spec.lock.memory.is_contended();
    if spec.lock.memory.continuity().holds(&own.in_directory(directory), may_wait) {
        let watched =
            spec.lock.memory.watch_directory(own.session.clone(), Arc::clone(&spec.lock.path));
        spec.lock.client.spawn(watched);
    }
}

/// Watches the znode with the previous number, if it exists: no claim can be nearer to ours.
async fn watch_previous_number(
    attempt: &mut Attempt,
    session: &TrustedSession,
) -> Result<Option<ClaimStatus>> {
    let Some(own) = attempt.claim.node() else { return Ok(None) };
    let Some(sequence) = name::number_in_turn(&own.path) else { return Ok(None) };
    let layout = attempt.claim.layout();
    let path = layout.numbered(session.id(), sequence.wrapping_sub(1));
    let before = layout.directory().map(|directory| {
        let (mut continuity, own) =
            (attempt.spec.lock.memory.continuity(), own.in_directory(directory));
        let is_only = continuity.is_behind_one(&own);
        Before { is_only, is_in_our_directory: continuity.is_in_its_directory(&own) }
    });
    let before = before.unwrap_or_default();
    // How far back is not known otherwise.
    attempt.purpose = if before.is_only { WatchFor::Next } else { WatchFor::Later };
    Ok(found(attempt.watch_before(session, &path, before).await)?.flatten())
}
