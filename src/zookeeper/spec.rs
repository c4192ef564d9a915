//! What all acquires of a lock have in common.

use std::sync::Arc;

use super::admission::Admission;
use super::memory::PathMemory;
use super::name::Naming;
use crate::client::ClientInner;
use crate::lock::{Kind, Strategy};
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
    pub(super) naming: Naming,
    pub(super) admission: Admission,
    pub(super) memory: Arc<PathMemory>,
    /// Whether nothing is to be left of it when nobody holds it or waits: its directory is deleted, too.
    pub(super) leaves_nothing: bool,
    /// Hears where a claim stands in its queue.
    pub(super) on_position: Option<OnPosition>,
}

/// Gets the name of our claim, and of the claim that is first.
pub(crate) type OnPosition = Arc<dyn Fn(&str, &str) + Send + Sync>;
