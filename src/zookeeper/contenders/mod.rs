//! Holders and waiters of a lock, as the servers show them.

pub(super) mod holder;
pub(super) mod revoke;
pub(super) mod wanted;

use super::acquire::scan::{Claimed, Scan};
use super::claim::pair;
use super::claim::payload;
use super::kinds::limit_node;
use super::name;
use super::refusal::{NOT_A_LOCK, NOT_A_QUEUE, found, refused};
use super::spec::LockSpec;
use crate::client::{TrustedSession, Znode};
use crate::lock::{Contender, Kind, LockError, Strategy};

/// The holder and the visible waiters, at most `number` of them.
pub(super) async fn first(
    lock: &LockSpec,
    session: &TrustedSession,
    number: usize,
) -> Result<Vec<Contender>, LockError> {
    match lock.strategy {
        Strategy::Queue => queued(lock, session, number).await,
        Strategy::Poll | Strategy::Watch => alone(session, &lock.path).await,
    }
}

/// The first of a queue, up to that number; no others are read but the last, which dates the hold.
async fn queued(
    lock: &LockSpec,
    session: &TrustedSession,
    number: usize,
) -> Result<Vec<Contender>, LockError> {
    let refused = |error| refused(&lock.path, error);
    let listed = found(lock.memory.list(session, &lock.path).await).map_err(refused)?;
    let Some(listing) = listed else { return Ok(Vec::new()) };
    if listing.directory.is_ephemeral() {
        return Err(NOT_A_QUEUE.at(&lock.path));
    }
    let read = |Claimed { name, znode }: Claimed<'_>| {
        payload::read(name::join(&lock.path, name), &znode.data, &znode.stat)
    };
    let directory = listing.directory.czxid;
    let mut contenders = Vec::new();
    // Of a claim's two znodes, the first stands for both.
    let is_shown =
        |name: &&str| pair::first_of(name).is_none_or(|first| listing.find(&first).is_none());
    let shown = || listing.in_order().filter(is_shown);
    let mut claims = Scan::new(lock, session, directory, shown());
    // Where numbers say nothing of the order, only all of them do.
    let needed = if listing.is_out_of_turn { usize::MAX } else { number };
    if needed > 1 {
        claims = claims.wide();
    }
    while contenders.len() < needed {
        let Some(claim) = claims.next().await.map_err(refused)? else { break };
        contenders.push(read(claim));
    }
    if contenders.len() == needed {
        let last = shown().last().into_iter();
        let last = Scan::new(lock, session, directory, last).next().await;
        contenders.extend(last.map_err(refused)?.map(read));
    }
    if listing.is_out_of_turn {
        let is_second = |it: &Contender| pair::is_second(name::last(&it.path));
        contenders.sort_by_key(|contender| (contender.token, is_second(contender)));
        contenders.dedup_by(|it, before| it.token == before.token && is_second(it));
    }
    let shown = contenders.iter().take(number).map(|shown| name::kind(name::last(&shown.path)));
    let shown: Vec<Kind> = shown.collect();
    let limit = match shown.first() {
        Some(Kind::Permits(_)) => limit_node::read(lock, session).await.map_err(refused)?,
        _ => 1,
    };
    let holding = Kind::holding(limit, shown);
    payload::date_the_holds(&mut contenders, holding, &listing.directory);
    contenders.truncate(number);
    Ok(contenders)
}

async fn alone(session: &TrustedSession, path: &str) -> Result<Vec<Contender>, LockError> {
    match found(session.get(path).await).map_err(|error| refused(path, error))? {
        Some(Znode { data, stat }) if stat.is_ephemeral() => {
            let mut holder = payload::read(path.to_owned(), &data, &stat);
            payload::date_the_only_hold(&mut holder);
            Ok(vec![holder])
        }
        Some(_) => Err(NOT_A_LOCK.at(path)),
        None => Ok(Vec::new()),
    }
}
