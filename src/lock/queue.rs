//! Create a numbered child of the lock's znode; hold when it is the first, else watch the one
//! before it.

use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::Spec;
use super::claim::ClaimPlace;
use super::name::{self, Place};
use super::service::Session;
use super::steps::{Ahead, Attempt, Standing, Steps, clear_orphan, make_way};
use crate::error::{Code, Error, Result};
use crate::znode::Stat;

pub(super) struct Queue;

impl Steps for Queue {
    fn place(&self, spec: &Spec) -> ClaimPlace {
        let (directory, created) = (spec.path.clone(), spec.memory.directory());
        ClaimPlace::Under { directory, naming: spec.naming, created }
    }

    fn step<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        session: &'a Arc<dyn Session>,
    ) -> Pin<Box<dyn Future<Output = Result<Standing>> + Send + 'a>> {
        Box::pin(step(attempt, session))
    }
}

async fn step(attempt: &mut Attempt, session: &Arc<dyn Session>) -> Result<Standing> {
    let spec = Arc::clone(&attempt.spec);
    let listed = if attempt.claim.node().is_some() {
        session.children(&spec.path).await
    } else {
        match claim(attempt, session).await? {
            Claimed::Listed(listed) => listed,
            Claimed::Stands(standing) => return Ok(standing),
        }
    };
    let (children, directory) = match listed {
        Ok(listed) => listed,
        // The directory is gone, and every claim with it, ours too.
        Err(error) if error.is_no_node() => (Vec::new(), Stat::default()),
        Err(error) => return Err(error),
    };
    spec.memory.saw_directory(directory.czxid);
    let node = attempt.claim.node().map(|node| (node.path.clone(), node.czxid));
    let (own, czxid) = node.unwrap_or_default();
    let own = own.rsplit('/').next().unwrap_or_default();
    let place = match attempt.claim.can_be_in(&directory) {
        true => name::place(&children, own),
        false => Place::Missing,
    };
    let before = match place {
        // Somebody has deleted it, or the directory that it was in.
        Place::Missing => None,
        Place::Behind(_) if name::are_out_of_turn(&children) => {
            made_before(session, &spec.path, &children, own, czxid).await?
        }
        Place::Behind(before) => Some(before),
    };
    let Some(before) = before else {
        attempt.claim.give_up();
        return Ok(Standing::Again);
    };
    spec.tell_position(own, before.last().unwrap_or(&own));
    wait_behind(attempt, session, &before).await
}

type Listed = Result<(Vec<String>, Stat)>;

/// What a new claim has found.
enum Claimed {
    /// It was made, and the directory was listed after that.
    Listed(Listed),
    /// Where it stands is known without a listing, or there is none.
    Stands(Standing),
}

/// Makes a claim.
async fn claim(attempt: &mut Attempt, session: &Arc<dyn Session>) -> Result<Claimed> {
    let spec = Arc::clone(&attempt.spec);
    let mut directory = spec.memory.directory();
    // A name carries its directory's czxid. And somebody who only tries must not queue up where
    // others could see it ahead of them and give up on a lock that is free.
    if attempt.once || directory == 0 && spec.naming.is_of_the_directory() {
        match session.children(&spec.path).await {
            Ok((children, stat)) => {
                directory = stat.czxid;
                spec.memory.saw_directory(directory);
                if attempt.once && is_busy(&spec, &children, session).await? {
                    return Ok(Claimed::Stands(Standing::Taken));
                }
            }
            Err(error) if error.is_no_node() => return make_directory(&spec, session).await,
            Err(error) => return Err(error),
        }
    }
    attempt.claim.enter(directory);
    attempt.claim.send(session);
    // Where the last acquire had to wait, this one will too, and most likely for the number just
    // before ours: then the listing can be left out. Otherwise it goes out right behind the create,
    // and both take one round trip.
    let expect_to_wait =
        !attempt.once && spec.naming.is_of_the_directory() && spec.memory.is_contended();
    let listing = (!expect_to_wait).then(|| session.children(&spec.path));
    // Its reply comes after the create's, so this waits for both and wakes once.
    let listing = match listing {
        Some(listing) => Some(listing.await),
        None => None,
    };
    let own = match attempt.claim.confirm().await {
        Ok(node) => node.path.clone(),
        Err(error) if error.is_no_node() => return make_directory(&spec, session).await,
        Err(error) if error.is_node_exists() => {
            return wait_for_the_last_number(attempt, session).await.map(Claimed::Stands);
        }
        Err(error) if error.code() == Code::NO_CHILDREN_FOR_EPHEMERALS => {
            return Err(not_a_queue("acquire", &spec.path));
        }
        Err(error) => return Err(error),
    };
    if let Some(listing) = listing {
        return Ok(Claimed::Listed(listing));
    }
    Ok(match watch_previous_number(attempt, session, &own).await? {
        Some(standing) => Claimed::Stands(standing),
        None => Claimed::Listed(session.children(&spec.path).await),
    })
}

/// Makes the lock's directory, and what is missing above it.
async fn make_directory(spec: &Spec, session: &Arc<dyn Session>) -> Result<Claimed> {
    spec.memory.saw_directory(0);
    // Any child will do: it is what stands above that is missing.
    let claim = name::join(&spec.path, "claim");
    make_way(session, spec, &claim).await.map(Claimed::Stands)
}

/// Refuses a path whose znode can have no children.
pub(super) fn not_a_queue(op: &'static str, path: &str) -> Error {
    let detail = "the znode there is ephemeral, perhaps a poll or watch lock: \
                  a queue lock needs a path of its own";
    Error::with_detail(op, path, Code::NO_CHILDREN_FOR_EPHEMERALS, detail)
}

/// Watches the nearest claim before ours. Only it: when it goes, the next is looked for anew, so a
/// waiter that gives up hands nothing over by its going.
async fn wait_behind(
    attempt: &mut Attempt,
    session: &Arc<dyn Session>,
    before: &[&str],
) -> Result<Standing> {
    for child in before {
        let path = name::join(&attempt.spec.path, child);
        match attempt.look_ahead(session, &path).await {
            // Somebody's data with a claim's name.
            Ok(Ahead::Data) => {}
            Ok(Ahead::Taken) => return Ok(Standing::Taken),
            Ok(Ahead::Claim(watch)) => {
                attempt.spec.memory.set_contended(true);
                return Ok(Standing::Watching(watch));
            }
            Ok(Ahead::Nobody) => return Ok(Standing::Again),
            Err(error) if error.is_no_node() => return Ok(Standing::Again),
            Err(error) => return Err(error),
        }
    }
    attempt.spec.memory.set_contended(attempt.refusals > 0);
    Ok(Standing::Held)
}

/// Watches the node whose number is one less than ours, if it is there: nobody can be nearer.
async fn watch_previous_number(
    attempt: &mut Attempt,
    session: &Arc<dyn Session>,
    own: &str,
) -> Result<Option<Standing>> {
    let Some(sequence) = name::sequence(own).filter(|number| !name::is_out_of_turn(*number)) else {
        return Ok(None);
    };
    let path = attempt.claim.place().numbered(session.id(), sequence.wrapping_sub(1));
    match attempt.look_ahead(session, &path).await {
        Ok(Ahead::Data | Ahead::Taken) => Ok(None),
        Ok(Ahead::Nobody) => Ok(Some(Standing::Again)),
        Ok(Ahead::Claim(watch)) => Ok(Some(Standing::Watching(watch))),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The claims that were made before ours, nearest first, where numbers do not tell: by the
/// transactions that made them. `None` if ours is not there, but another by its name perhaps.
async fn made_before<'a>(
    session: &Arc<dyn Session>,
    directory: &str,
    children: &'a [String],
    own: &str,
    czxid: i64,
) -> Result<Option<Vec<&'a str>>> {
    let look = |child| (child, session.get(&name::join(directory, child)));
    let looks: Vec<_> = name::in_order(children).into_iter().map(look).collect();
    let mut before = Vec::new();
    let mut is_there = false;
    for (child, look) in looks {
        match look.await {
            Ok((_, stat)) if stat.czxid < czxid => before.push((stat.czxid, child)),
            Ok((_, stat)) => is_there |= child == own && stat.czxid == czxid,
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
async fn wait_for_the_last_number(
    attempt: &mut Attempt,
    session: &Arc<dyn Session>,
) -> Result<Standing> {
    let path = attempt.claim.place().numbered(session.id(), i32::MAX);
    match attempt.look_ahead(session, &path).await {
        Ok(Ahead::Data) => {
            let detail = "the directory's counter is at its end, and the last number is taken by a \
                          znode that no session will ever end: delete the directory";
            Err(Error::with_detail("acquire", &attempt.spec.path, Code::NODE_EXISTS, detail))
        }
        Ok(Ahead::Taken) => Ok(Standing::Taken),
        Ok(Ahead::Claim(watch)) => Ok(Standing::Watching(watch)),
        Ok(Ahead::Nobody) => Ok(Standing::Again),
        Err(error) if error.is_no_node() => Ok(Standing::Pausing(BEFORE_ANOTHER_NUMBER)),
        Err(error) => Err(error),
    }
}

/// Whether anybody holds the lock or waits for it.
async fn is_busy(spec: &Spec, children: &[String], session: &Arc<dyn Session>) -> Result<bool> {
    for child in name::in_order(children) {
        let path = name::join(&spec.path, child);
        match session.get(&path).await {
            Ok((_, stat)) if !stat.is_ephemeral() => {}
            Ok((data, stat)) => {
                if !clear_orphan(spec, &**session, &path, &data, &stat).await {
                    return Ok(true);
                }
            }
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
