//! What all acquires of a lock have in common.

use std::sync::Arc;

use super::kinds::admission::Admission;
use super::name::{self, Naming};
use super::shortcuts::memory::PathMemory;
use crate::client::ClientInner;
use crate::lock::{Interop, Kind, Strategy};
use crate::znode::Acl;

#[derive(Clone)]
pub(super) struct Spec {
    pub(super) client: Arc<ClientInner>,
    pub(super) path: Arc<str>,
    pub(super) strategy: Strategy,
    pub(super) label: String,
    pub(super) acl: Arc<[Acl]>,
    /// What claims are to others, from which their naming and admission follow.
    pub(super) kind: Kind,
    /// How many permits a semaphore has, where its directory does not say.
    pub(super) limit: u32,
    /// Which other libraries wait for it.
    pub(super) interop: Interop,
    pub(super) naming: Naming,
    pub(super) admission: Admission,
    pub(super) memory: Arc<PathMemory>,
    /// Whether nothing is to be left of it when nobody holds it or waits: its directory is deleted, too.
    pub(super) leaves_nothing: bool,
    /// The hold that its claims belong to, where there is one already.
    pub(super) part: Option<Arc<Part>>,
    /// Hears where a claim stands in its queue.
    pub(super) on_position: Option<OnPosition>,
}

impl Spec {
    /// Its claims are of that kind from now on, and those libraries wait for them.
    pub(super) fn contend_as(&mut self, kind: Kind, interop: Interop) {
        (self.kind, self.interop) = (kind, interop);
        (self.naming, self.admission) = match (kind, interop) {
            // A writer too waits for all who are earlier, and knows nothing by numbers alone.
            (Kind::Exclusive, Interop::All) => (Naming::Pair, Admission::of(Kind::Write)),
            _ => (Naming::of(kind), Admission::of(kind)),
        };
    }
}

/// A hold that is to become another.
pub(super) struct Part {
    /// The claim that it has.
    pub(super) of: Arc<str>,
    pub(super) token: i64,
    /// Whether the new claim takes the place of that one.
    pub(super) place: bool,
}

impl Part {
    /// The number of the claim that the hold has, unless it may have been given out of turn.
    pub(super) fn number(&self) -> Option<i32> {
        name::sequence(name::last(&self.of)).filter(|number| !name::is_out_of_turn(*number))
    }
}

/// Gets the name of our claim, and of the claim that is first.
pub(crate) type OnPosition = Arc<dyn Fn(&str, &str) + Send + Sync>;
