//! Create a numbered child of the lock's znode; hold when it is the first, else watch the one
//! before it.

use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Spec;
use super::claim::ClaimPlace;
use super::name::{self, Place};
use super::service::Session;
use super::steps::{Attempt, Standing, Steps, make_way};
use crate::error::{Code, Error, Result};

pub(super) struct Queue;

impl Steps for Queue {
    fn place(&self, spec: &Spec) -> ClaimPlace {
        ClaimPlace::Under { directory: spec.path.clone(), naming: spec.naming }
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
    let children = if attempt.claim.node().is_some() {
        or_none(session.children(&attempt.spec.path).await)?
    } else {
        if attempt.once && is_busy(&attempt.spec.path, session).await? {
            return Ok(Standing::Taken);
        }
        attempt.claim.send(session);
        // Where the last acquire had to wait, this one will too, and most likely for the number
        // just before ours: then the listing can be left out. Otherwise it goes out right behind
        // the create, and both take one round trip.
        let expect_to_wait = !attempt.once
            && attempt.spec.naming.is_predictable()
            && attempt.spec.contended.load(Ordering::Relaxed);
        let listing = (!expect_to_wait).then(|| session.children(&attempt.spec.path));
        // Its reply comes after the create's, so this waits for both and wakes once.
        let listing = match listing {
            Some(listing) => Some(listing.await),
            None => None,
        };
        let own = match attempt.claim.confirm().await {
            Ok(node) => node.path.clone(),
            Err(error) if error.is_no_node() => {
                // Any child will do: it is what stands above that is missing.
                let claim = name::join(&attempt.spec.path, "claim");
                return make_way(session, &attempt.spec, &claim).await;
            }
            Err(error) if error.is_node_exists() => {
                return wait_for_the_last_number(attempt, session).await;
            }
            Err(error) if error.code() == Code::NO_CHILDREN_FOR_EPHEMERALS => {
                let detail = "the znode there is ephemeral, perhaps a poll or watch lock: \
                              a queue lock needs a path of its own";
                return Err(Error::with_detail(
                    "acquire",
                    &attempt.spec.path,
                    error.code(),
                    detail,
                ));
            }
            Err(error) => return Err(error),
        };
        match listing {
            Some(listing) => or_none(listing)?,
            None => {
                if let Some(standing) = watch_previous_number(attempt, session, &own).await? {
                    return Ok(standing);
                }
                or_none(session.children(&attempt.spec.path).await)?
            }
        }
    };
    let node = attempt.claim.node().map(|node| (node.path.clone(), node.czxid));
    let (own, czxid) = node.unwrap_or_default();
    let own = own.rsplit('/').next().unwrap_or_default();
    match name::place(&children, own) {
        // Somebody has deleted it.
        Place::Missing => {
            attempt.claim.give_up();
            Ok(Standing::Again)
        }
        Place::Behind(before) => {
            let before = if name::are_out_of_turn(&children) {
                made_before(session, &attempt.spec.path, &children, czxid).await?
            } else {
                before
            };
            attempt.spec.tell_position(own, before.last().unwrap_or(&own));
            wait_behind(attempt, session, &before).await
        }
    }
}

/// The children of the lock's directory. When that is gone, so is every claim, ours too.
fn or_none(children: Result<Vec<String>>) -> Result<Vec<String>> {
    match children {
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        children => children,
    }
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
            // No claim lives longer than its session: this is somebody's data with a claim's name.
            Ok((stat, _)) if !stat.is_ephemeral() => {}
            Ok((_, None)) => return Ok(Standing::Taken),
            Ok((_, Some(watch))) => {
                attempt.spec.contended.store(true, Ordering::Relaxed);
                return Ok(Standing::Watching(watch));
            }
            Err(error) if error.is_no_node() => return Ok(Standing::Again),
            Err(error) => return Err(error),
        }
    }
    attempt.spec.contended.store(attempt.refusals > 0, Ordering::Relaxed);
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
    let previous = name::with_sequence(sequence.wrapping_sub(1));
    let path = name::join(&attempt.spec.path, &previous);
    match attempt.look_ahead(session, &path).await {
        Ok((stat, _)) if !stat.is_ephemeral() => Ok(None),
        Ok((_, watch)) => Ok(watch.map(Standing::Watching)),
        Err(error) if error.is_no_node() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The claims that were made before the transaction `czxid` made ours, nearest first, where numbers do
/// not tell: by the transactions that made them.
async fn made_before<'a>(
    session: &Arc<dyn Session>,
    directory: &str,
    children: &'a [String],
    czxid: i64,
) -> Result<Vec<&'a str>> {
    let look = |child| (child, session.get(&name::join(directory, child)));
    let looks: Vec<_> = name::in_order(children).into_iter().map(look).collect();
    let mut before = Vec::new();
    for (child, look) in looks {
        match look.await {
            Ok((_, stat)) if stat.czxid < czxid => before.push((stat.czxid, child)),
            Ok(_) => {}
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
    }
    before.sort_unstable_by_key(|claim| Reverse(*claim));
    Ok(before.into_iter().map(|(_, child)| child).collect())
}

/// The pause before another number is asked for when it was not the last one that was given twice.
const BEFORE_ANOTHER_NUMBER: Duration = Duration::from_millis(10);

/// The directory's counter is at its end: the server has given a number again whose claim is still
/// there. Until that has gone there is no claim to be had; whoever is first then gets it.
async fn wait_for_the_last_number(
    attempt: &mut Attempt,
    session: &Arc<dyn Session>,
) -> Result<Standing> {
    let last = name::numbered_name(&attempt.spec.naming.prefix(session.id()), i32::MAX);
    let path = name::join(&attempt.spec.path, &last);
    match attempt.look_ahead(session, &path).await {
        Ok((stat, _)) if !stat.is_ephemeral() => {
            let detail = "the directory's counter is at its end, and the last number is taken by a \
                          znode that no session will ever end: delete the directory";
            Err(Error::with_detail("acquire", &attempt.spec.path, Code::NODE_EXISTS, detail))
        }
        Ok((_, watch)) => Ok(watch.map_or(Standing::Taken, Standing::Watching)),
        Err(error) if error.is_no_node() => Ok(Standing::Pausing(BEFORE_ANOTHER_NUMBER)),
        Err(error) => Err(error),
    }
}

/// Whether anybody holds the lock or waits for it. Somebody who only tries must not queue up where
/// others could see it ahead of them and give up on a lock that is free.
async fn is_busy(path: &str, session: &Arc<dyn Session>) -> Result<bool> {
    let children = or_none(session.children(path).await)?;
    for child in name::in_order(&children) {
        match session.get(&name::join(path, child)).await {
            Ok((_, stat)) if stat.is_ephemeral() => return Ok(true),
            Ok(_) => {}
            Err(error) if error.is_no_node() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
