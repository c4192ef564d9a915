//! Where the node of a claim is: at the lock's path, or a numbered child of it.

use std::sync::Arc;

use super::pair;
use crate::lock::Strategy;
use crate::zookeeper::name::{self, Naming};
use crate::zookeeper::spec::Spec;

/// Where a claim's node is created.
#[derive(Clone)]
pub(crate) enum NodeLayout {
    /// The node is the lock's path itself.
    At(Arc<str>),
    /// The node is a numbered child of the lock's path, which the transaction `created` has made; where it takes the
    /// `place` of another claim, by the number of that.
    Under { directory: Arc<str>, naming: Naming, created: i64, place: Option<i32> },
}

impl NodeLayout {
    /// Of a lock's claims.
    pub(crate) fn of(spec: &Spec) -> NodeLayout {
        let path = Arc::clone(&spec.path);
        match spec.strategy {
            Strategy::Poll | Strategy::Watch => NodeLayout::At(path),
            Strategy::Queue => {
                let created = spec.memory.directory();
                let part = spec.part.as_ref();
                let place = part.and_then(|part| part.place.then(|| part.number()).flatten());
                NodeLayout::Under { directory: path, naming: spec.naming, created, place }
            }
        }
    }

    /// The path of a claim with that number.
    pub(crate) fn numbered(&self, session: i64, number: i32) -> String {
        match self {
            NodeLayout::At(path) => path.to_string(),
            NodeLayout::Under { directory, naming, created, .. } => {
                let prefix = name::join(directory, &naming.prefix(session, *created));
                name::numbered_name(&prefix, number)
            }
        }
    }

    /// The transaction that made the directory, which the names of its claims carry.
    pub(crate) fn directory(&self) -> Option<i64> {
        match self {
            NodeLayout::Under { naming, created, .. } if naming.is_of_the_directory() => {
                Some(*created)
            }
            _ => None,
        }
    }

    /// How many znodes a claim is.
    pub(crate) fn znodes(&self) -> usize {
        if matches!(self, NodeLayout::Under { naming: Naming::Pair, .. }) { 2 } else { 1 }
    }

    /// What the second of a claim's znodes is called before its number, if it has two.
    pub(crate) fn second(&self) -> Option<String> {
        match self {
            NodeLayout::Under { directory, naming: Naming::Pair, created, .. } => {
                Some(name::join(directory, &pair::second_prefix(*created)))
            }
            _ => None,
        }
    }

    /// Whether a child is called as the claims of this directory are, and of no other at the same path.
    pub(crate) fn names(&self, child: &str) -> bool {
        match self {
            NodeLayout::Under { naming, created, .. } if naming.is_of_the_directory() => {
                child.starts_with(&naming.prefix(0, *created))
            }
            _ => false,
        }
    }

    /// The lock's path.
    pub(crate) fn lock(&self) -> &str {
        match self {
            NodeLayout::At(path) | NodeLayout::Under { directory: path, .. } => path,
        }
    }
}
