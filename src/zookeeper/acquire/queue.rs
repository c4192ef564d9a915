//! Create a numbered child of the lock's znode; hold when it is the first, else watch the one
//! before it.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Ahead, Attempt, ClaimStatus, clear_orphan, create_parents};
use super::listing::Listing;
use super::scan::{Claimed, Scan};
use crate::client::{TrustedSession, WatchFor, Znode};
use crate::error::{Code, Result};
use crate::lock::Contender;
use crate::zookeeper::claim::node::Node;
use crate::zookeeper::claim::payload;
use crate::zookeeper::kinds::admission::Admission;
use crate::zookeeper::kinds::limit_node;
use crate::zookeeper::kinds::permits;
use crate::zookeeper::kinds::upgrade::{self, Standing};
use crate::zookeeper::name;
use crate::zookeeper::refusal::{NO_NUMBER_LEFT, NOT_A_QUEUE};
use crate::zookeeper::shortcuts::announced;
use crate::zookeeper::shortcuts::continuity::Connection;
use crate::zookeeper::shortcuts::succession::Behind;
use crate::zookeeper::spec::Spec;

/// Whose turn comes soon: with at most so many before it.
const NEAR: usize = 100;

pub(super) async fn step(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    let status = look(attempt, session).await?;
    Ok(if attempt.gives_up_if_deleted() { ClaimStatus::Again } else { status })
}

/// Claims, or looks again where the claim stands.
async fn look(attempt: &mut Attempt, session: &TrustedSession) -> Result<ClaimStatus> {
    let spec = Arc::clone(&attempt.spec);
    let behind = attempt.behind.take();
    let listed = if let Some(own) = attempt.claim.node().cloned() {
        if let Some(behind) = behind {
            let follows = attempt.follows(session, &behind);
            if follows || succeeds(&spec, session, &own, behind.czxid).await? {
                saw_first(attempt);
                return Ok(ClaimStatus::Held);
            }
        }
        spec.memory.list(session, &spec.path).await
    } else {
        match claim(attempt, session).await? {
            Claiming::Listed(listed) => listed,
            Claiming::Decided(status) => return Ok(status),
        }
    };
    let listing = match listed {
        Ok(listing) => listing,
        // The directory is gone, and every claim with it, ours too.
        Err(error) if error.is_no_node() => {
            spec.memory.saw_no_directory();
            attempt.claim.give_up();
            return Ok(ClaimStatus::Again);
        }
        Err(error) => return Err(error),
    };
    let node = attempt.claim.node().map(|node| (Arc::clone(&node.path), node.czxid));
    let (own, czxid) = node.unwrap_or_default();
    let own = name::last(&own);
    let place = listing.find(own).filter(|_| attempt.claim.can_be_in(&listing.directory));
    let place = place.filter(|_| attempt.claim.is_whole_in(&listing));
    let before: Option<Box<dyn Iterator<Item = &str> + Send>> = match place {
        // Somebody has deleted it, or the directory that it was in.
        None => None,
        Some(_) if listing.is_out_of_turn => {
            let before = made_before(session, &spec.path, &listing, own, czxid).await?;
            before.map(|before| Box::new(before.into_iter()) as _)
        }
        Some(place) => Some(Box::new(listing.before(place))),
    };
    let Some(before) = before else {
        attempt.claim.give_up();
        return Ok(ClaimStatus::Again);
    };
    if let (Some(tell), Some(place)) = (&spec.on_position, place) {
        tell(own, listing.before(place).last().unwrap_or(own));
    }
    let is_near = place.is_none_or(|place| listing.rank(place) <= NEAR);
    attempt.purpose = if is_near { WatchFor::Next } else { WatchFor::Later };
    if let Admission::Permits(wanted) = spec.admission {
        return permits::wait_behind(attempt, session, &listing, wanted, before).await;
    }
    if let Some(part) = &spec.part {
        let standing = upgrade::stand(attempt, session, &listing, part, before).await?;
        return match standing {
            Standing::Decided(status) => Ok(status),
            Standing::Behind(before) => {
                wait_behind(attempt, session, listing.directory.czxid, before.into_iter()).await
            }
        };
    }
    wait_behind(attempt, session, listing.directory.czxid, before).await
}

/// Whether our claim holds now that the one before it is gone: if that was the first, as this client
/// knows if it was its own. That saves a listing, which is the longer the more wait.
async fn succeeds(spec: &Spec, session: &TrustedSession, own: &Node, before: i64) -> Result<bool> {
    if !spec.is_told_by_number(own) || !spec.memory.was_first(before) {
        return Ok(false);
    }
    match session.get(&own.path).await {
        Ok(found) if found.stat.czxid == own.czxid => Ok(true),
        // Somebody has deleted it, or the directory that it was in.
        Ok(_) => Ok(false),
        Err(error) if error.is_no_node() => Ok(false),
        Err(error) => Err(error),
    }
}

type Listed = Result<Arc<Listing>>;

/// What a new claim has found.
enum Claiming {
    /// It was made, and the directory was listed after that.
    Listed(Listed),
    /// Where it stands is known without a listing, or there is none.
    Decided(ClaimStatus),
}

/// Makes a claim.
async fn claim(attempt: &mut Attempt, session: &TrustedSession) -> Result<Claiming> {
    let spec = Arc::clone(&attempt.spec);
    if let Some(status) = enter(attempt, session).await? {
        return Ok(Claiming::Decided(status));
    }
    attempt.claim.send(session);
    // Where the last acquire had to wait, this one will too, and most likely for the number just
    // before ours. Where nobody came between the last two, this one is most likely the first. Then the
    // listing can be left out. Otherwise it goes out right behind the create, and both take one round trip.
    let tells = spec.naming.is_of_the_directory() && spec.admission.is_by_number_alone();
    let guesses = tells && !attempt.no_wait;
    let expect_to_wait = guesses && spec.memory.is_contended();
    let expect_to_hold = guesses && spec.memory.continuity().is_expected(session);
    let is_listed = !expect_to_wait && !expect_to_hold;
    let listing = is_listed.then(|| spec.memory.list(session, &spec.path));
    // Its reply comes after the create's, so this waits for both and wakes once.
    let listing = match listing {
        Some(listing) => Some(listing.await),
        None => None,
    };
    let own = match attempt.claim.confirm().await {
        Ok(node) => node.clone(),
        Err(error) if error.is_no_node() => {
            return make_directory(&spec, session).await.map(Claiming::Decided);
        }
        Err(error) if error.is_node_exists() => {
            return wait_for_the_last_number(attempt, session).await.map(Claiming::Decided);
        }
        Err(error) if error.code() == Code::NO_CHILDREN_FOR_EPHEMERALS => {
            return Ok(Claiming::Decided(ClaimStatus::Impossible(NOT_A_QUEUE)));
        }
        Err(error) => return Err(error),
    };
    if let Some(listing) = listing {
        return Ok(Claiming::Listed(listing));
    }
    if expect_to_hold && is_first_by_its_number(attempt) {
        return Ok(Claiming::Decided(ClaimStatus::Held));
    }
    if expect_to_wait {
        if let Some(status) = watch_previous_number(attempt, session, &own).await? {
            return Ok(Claiming::Decided(status));
        }
    }
    Ok(Claiming::Listed(spec.memory.list(session, &spec.path).await))
}

/// Whether a claim that was just made holds, as nobody came in between since this client held last.
pub(super) fn is_first_by_its_number(attempt: &Attempt) -> bool {
    let (spec, claim) = (&attempt.spec, &attempt.claim);
    let own = claim.node().filter(|_| spec.admission.is_by_number_alone());
    let (Some(own), Some(directory)) = (own, claim.layout().directory()) else { return false };
    let is_first = spec.memory.continuity().is_first(&own.in_directory(directory));
    if is_first {
        spec.memory.set_contended(false);
        saw_first(attempt);
    }
    is_first
}

/// Before a claim is sent: says which directory it is for; or gives where the attempt stands without a claim.
pub(super) async fn enter(
    attempt: &mut Attempt,
    session: &TrustedSession,
) -> Result<Option<ClaimStatus>> {
    let spec = Arc::clone(&attempt.spec);
    let mut directory = spec.memory.directory();
    // A name carries its directory's czxid. And somebody who only tries must not queue up where
    // others could see it ahead of them and give up on a lock that is free.
    if attempt.no_wait || directory == 0 && spec.naming.is_of_the_directory() {
        match spec.memory.list(session, &spec.path).await {
            Ok(listing) => {
                directory = listing.directory.czxid;
                if attempt.no_wait {
                    if let Some(who) = anybody(&spec, &listing, session).await? {
                        attempt.ahead.note(who);
                        return Ok(Some(ClaimStatus::Taken));
                    }
                }
            }
            Err(error) if error.is_no_node() => {
                return make_directory(&spec, session).await.map(Some);
            }
            Err(error) => return Err(error),
        }
    }
    attempt.claim.enter(directory);
    Ok(None)
}

/// Makes the lock's directory, and what is missing above it.
pub(super) async fn make_directory(spec: &Spec, session: &TrustedSession) -> Result<ClaimStatus> {
    spec.memory.saw_no_directory();
    if let Admission::Permits(_) = spec.admission {
        return limit_node::make_directory(spec, session).await;
    }
    // Any child will do: it is what stands above that is missing.
    let claim = name::join(&spec.path, "claim");
    create_parents(session, spec, &claim).await
}

/// Watches the nearest claim before ours. Only it: when it goes, the next is looked for anew, so a
/// waiter that gives up hands nothing over by its going.
async fn wait_behind<'a>(
    attempt: &mut Attempt,
    session: &TrustedSession,
    directory: i64,
    before: impl Iterator<Item = &'a str>,
) -> Result<ClaimStatus> {
    let spec = Arc::clone(&attempt.spec);
    let claims = before.filter(|child| !spec.memory.is_data(directory, child));
    let mut blockers = spec.admission.blockers(claims).peekable();
    if let Some(nearest) = blockers.next() {
        // What can become a claim of another kind goes when that has come to stand before ours.
        let is_only = blockers.peek().is_none() && !name::kind(nearest).can_change();
        if let Some(status) = watch_claim(attempt, session, nearest, is_only).await? {
            return Ok(status);
        }
        // Somebody's data with a claim's name.
        spec.memory.saw_data(directory, nearest);
        let mut rest = Scan::new(&spec, session, directory, blockers).wide();
        if let Some(claim) = rest.next().await? {
            let status = watch_claim(attempt, session, claim.name, false).await?;
            return Ok(status.unwrap_or(ClaimStatus::Again));
        }
        // What was before went after the listing that has shown our claim, which may be gone too by now.
        if rest.missed_one {
            return Ok(ClaimStatus::Again);
        }
    }
    spec.memory.set_contended(attempt.attempts > 0);
    saw_first(attempt);
    Ok(ClaimStatus::Held)
}

/// Our claim is the first: what the next may know by that.
fn saw_first(attempt: &Attempt) {
    let (spec, claim) = (&attempt.spec, &attempt.claim);
    // Of those that hold together, another may be the first.
    let Some(own) = claim.node().filter(|_| spec.admission.is_by_number_alone()) else { return };
    spec.memory.saw_first(own.czxid);
    let Some(directory) = claim.layout().directory() else { return };
    let announces = spec.client.announces_releases();
    if spec.memory.continuity().holds(&own.in_directory(directory), announces) {
        let watched = spec.memory.watch_directory(own.session.clone(), Arc::clone(&spec.path));
        spec.client.spawn(watched);
    }
}

/// Watches that child of the lock's directory, which may be the only one before ours; `None` if it is somebody's data.
async fn watch_claim(
    attempt: &mut Attempt,
    session: &TrustedSession,
    child: &str,
    is_only: bool,
) -> Result<Option<ClaimStatus>> {
    let path = name::join(&attempt.spec.path, child);
    let before = Before { is_only, is_in_our_directory: true };
    match watch_before(attempt, session, &path, before).await {
        Err(error) if error.is_no_node() => Ok(Some(ClaimStatus::Again)),
        watched => watched,
    }
}

/// Watches the node whose number is one less than ours, if it is there: nobody can be nearer.
async fn watch_previous_number(
    attempt: &mut Attempt,
    session: &TrustedSession,
    own: &Node,
) -> Result<Option<ClaimStatus>> {
    let Some(sequence) = name::sequence(&own.path).filter(|it| !name::is_out_of_turn(*it)) else {
        return Ok(None);
    };
    let layout = attempt.claim.layout();
    let path = layout.numbered(session.id(), sequence.wrapping_sub(1));
    let before = layout.directory().map(|directory| {
        let (mut continuity, own) = (attempt.spec.memory.continuity(), own.in_directory(directory));
        let is_only = continuity.is_behind_one(&own);
        Before { is_only, is_in_our_directory: continuity.is_in_its_directory(&own) }
    });
    let before = before.unwrap_or_default();
    // How far back is not known otherwise.
    attempt.purpose = if before.is_only { WatchFor::Next } else { WatchFor::Later };
    match watch_before(attempt, session, &path, before).await {
        Err(error) if error.is_no_node() => Ok(None),
        watched => watched,
    }
}

/// What is known of the nearest claim before ours, before it was read.
#[derive(Clone, Copy, Default)]
struct Before {
    /// Whether no other is before ours.
    is_only: bool,
    /// Whether ours is in the directory that it is named for.
    is_in_our_directory: bool,
}

/// Watches the nearest claim before ours; `None` if it is somebody's data.
async fn watch_before(
    attempt: &mut Attempt,
    session: &TrustedSession,
    path: &str,
    Before { is_only, is_in_our_directory }: Before,
) -> Result<Option<ClaimStatus>> {
    Ok(match attempt.look_ahead(session, path).await? {
        Ahead::Data => None,
        Ahead::Nobody => Some(ClaimStatus::Again),
        Ahead::Claim { czxid, is_announced, status, .. } => {
            if !attempt.no_wait {
                attempt.spec.memory.set_contended(true);
            }
            // A name of another directory may be that of a hold there, whose release would hit this claim.
            let is_named_so = attempt.claim.layout().names(name::last(path));
            let is_announced = is_announced && is_in_our_directory && is_named_so;
            let is_only = is_only && attempt.spec.client.announces_releases();
            let connection = Connection::of(session);
            let is_announced =
                is_announced && announced::is_acl_enforced(session, &attempt.spec.path).await;
            if is_only || is_announced {
                attempt.watch_own(session).await;
            }
            attempt.behind =
                Some(Behind { czxid, connection, is_only, is_announced, is_followed: false });
            Some(status)
        }
    })
}

/// The claims that were made before ours, nearest first, where numbers do not tell: by the
/// transactions that made them. `None` if ours is not there, but another by its name perhaps.
///
/// Where one of two is in the place of another claim, its number tells, which was given in turn: so it is before those
/// whose number was not.
async fn made_before<'a>(
    session: &TrustedSession,
    directory: &str,
    listing: &'a Listing,
    own: &str,
    czxid: i64,
) -> Result<Option<Vec<&'a str>>> {
    let look = |child| (child, session.get(&name::join(directory, child)));
    // Ours at the end: a claim that is deleted from outside must not be taken for the first because those
    // before it went later.
    let (ours, others) = listing.in_order().partition::<Vec<_>, _>(|child| *child == own);
    let looks: Vec<_> = others.into_iter().chain(ours).map(look).collect();
    let mut before = Vec::new();
    let mut is_there = false;
    for (child, look) in looks {
        match look.await {
            Ok(Znode { stat, .. }) if child == own => is_there |= stat.czxid == czxid,
            Ok(Znode { stat, .. }) => {
                if listing.is_placed_before(child, own).unwrap_or(stat.czxid < czxid) {
                    before.push((stat.czxid, child));
                }
            }
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
    }
    before.sort_unstable_by_key(|claim| Reverse(*claim));
    Ok(is_there.then(|| before.into_iter().map(|(_, child)| child).collect()))
}

/// The pause before another number is asked for when it was not the last one that was given twice.
const BEFORE_ANOTHER_NUMBER: Duration = Duration::from_millis(10);

/// The directory's counter is at its end: the server has given a number again whose claim is still
/// there. Until that has gone there is no claim to be had; whoever is first then gets it.
pub(super) async fn wait_for_the_last_number(
    attempt: &mut Attempt,
    session: &TrustedSession,
) -> Result<ClaimStatus> {
    let path = attempt.claim.layout().numbered(session.id(), i32::MAX);
    match attempt.look_ahead(session, &path).await {
        Ok(Ahead::Data) => Ok(ClaimStatus::Impossible(NO_NUMBER_LEFT)),
        Ok(Ahead::Claim { status, .. }) => Ok(status),
        Ok(Ahead::Nobody) => Ok(ClaimStatus::Again),
        Err(error) if error.is_no_node() => Ok(ClaimStatus::Pausing(BEFORE_ANOTHER_NUMBER)),
        Err(error) => Err(error),
    }
}

/// The first who holds the lock or waits for it, of those who would block a claim made now.
async fn anybody(
    spec: &Spec,
    listing: &Listing,
    session: &TrustedSession,
) -> Result<Option<Contender>> {
    if let Admission::Permits(wanted) = spec.admission {
        return permits::anybody(spec, listing, session, wanted).await;
    }
    let claims = spec.admission.blockers(listing.in_order());
    let mut claims = Scan::new(spec, session, listing.directory.czxid, claims);
    while let Some(Claimed { name, data, stat }) = claims.next().await? {
        let path = name::join(&spec.path, name);
        if !clear_orphan(spec, session, &path, &data, &stat).await {
            return Ok(Some(payload::read(path, &data, &stat)));
        }
    }
    Ok(None)
}
