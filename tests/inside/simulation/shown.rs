//! What a client has been shown of the end of its own claims: from then on it must not believe in them.

use std::collections::BTreeSet;

use super::request::{Op, Request, Value};
use super::server::{number, parent};
use super::world::World;
use crate::client::{WatchEvent, WatchEventKind};
use crate::error::Code;

/// Claims (their numbers) that were shown to be gone.
#[derive(Default)]
pub(super) struct Shown {
    /// To the contender whose claims they are; it may not have looked at it yet.
    fresh: BTreeSet<i64>,
    known: BTreeSet<i64>,
    /// By the deletion of a znode that was being watched, to whoever holds with it.
    fresh_to_holder: BTreeSet<i64>,
    known_to_holder: BTreeSet<i64>,
}

impl Shown {
    /// Whether there is something that its code may not have looked at yet.
    pub(super) fn is_fresh(&self) -> bool {
        !self.fresh.is_empty() || !self.fresh_to_holder.is_empty()
    }

    /// All code of the client that was woken has run since.
    pub(super) fn was_looked_at(&mut self) {
        self.known.append(&mut self.fresh);
        self.known_to_holder.append(&mut self.fresh_to_holder);
    }

    /// Whether a contender that waits knows that its claim is gone.
    pub(super) fn has_told(&self, claim: i64) -> bool {
        self.known.contains(&claim)
    }

    /// Whether a holder knows that its claim is gone.
    pub(super) fn has_told_holder(&self, claim: i64) -> bool {
        self.known_to_holder.contains(&claim)
    }
}

impl World {
    /// An event is delivered: it ends the watches on that znode.
    pub(super) fn note_event(&mut self, client: usize, event: &WatchEvent) {
        if event.kind != WatchEventKind::Deleted || !self.clients[client].awaits_event {
            return;
        }
        let client = &mut self.clients[client];
        let watched = client.watches.get(&event.path);
        client.shown.fresh_to_holder.extend(watched.map(|czxid| number(&event.path, *czxid)));
    }

    /// An answer is delivered that somebody waits for. It counts only where the contender is all that
    /// runs on its client: else others may have asked. Nor does the answer to an acquire that has ended.
    pub(super) fn note_answer(
        &mut self,
        client: usize,
        request: &Request,
        answer: &std::result::Result<Value, Code>,
        zxid: i64,
    ) {
        let Request { op, path, .. } = request;
        let to = &self.clients[client];
        if !request.is_awaited() || !to.is_alone || request.ended != to.ended {
            return;
        }
        let session = self.clients[client].session;
        let is_made = |path: &str, claim: i64| claim <= number(path, zxid);
        let mut own = self.leader.records.iter().filter(|(claim, record)| {
            record.session == session && is_made(&record.path, **claim) && record.gone.is_some()
        });
        // What a server has shown is no later than its last transaction; what it has not shown although it
        // had been made by then was gone.
        let gone: Vec<i64> = match (op, answer) {
            (Op::Get { .. }, Ok(Value::Data(_, stat))) => {
                let other = |claim: i64| number(path, stat.czxid) != claim;
                own.by_ref()
                    .filter(|(claim, it)| it.path == *path && other(**claim))
                    .map(first)
                    .collect()
            }
            (Op::Get { .. }, Err(Code::NO_NODE)) => {
                own.by_ref().filter(|(_, it)| it.path == *path).map(first).collect()
            }
            (Op::Children { .. }, Ok(Value::Children(names, _))) => {
                let listed = |it: &str| names.iter().any(|name| it == format!("{path}/{name}"));
                own.by_ref()
                    .filter(|(_, it)| parent(&it.path) == path && !listed(&it.path))
                    .map(first)
                    .collect()
            }
            (Op::Children { .. }, Err(Code::NO_NODE)) => {
                own.by_ref().filter(|(_, it)| parent(&it.path) == path).map(first).collect()
            }
            _ => return,
        };
        self.clients[client].shown.fresh.extend(gone);
    }
}

fn first<T>((claim, _): (&i64, T)) -> i64 {
    *claim
}
