//! Where the node of a claim is: at the lock's path, or a numbered child of it.

use std::sync::Arc;

use super::name::{self, Naming};
use super::spec::Spec;
use crate::lock::Strategy;

/// Where a claim's node is created.
#[derive(Clone)]
pub(super) enum NodeLayout {
    /// The node is the lock's path itself.
    At(Arc<str>),
    /// The node is a numbered child of the lock's path, which the transaction `created` has made.
    Under { directory: Arc<str>, naming: Naming, created: i64 },
}

impl NodeLayout {
    /// Of a lock's claims.
    pub(super) fn of(spec: &Spec) -> NodeLayout {
        let path = Arc::clone(&spec.path);
        match spec.strategy {
            Strategy::Poll | Strategy::Watch => NodeLayout::At(path),
            Strategy::Queue => {
                let created = spec.memory.directory();
                NodeLayout::Under { directory: path, naming: spec.naming, created }
            }
        }
    }

    /// The path of a claim with that number.
    pub(super) fn numbered(&self, session: i64, number: i32) -> String {
        match self {
            NodeLayout::At(path) => path.to_string(),
            NodeLayout::Under { directory, naming, created } => {
                let prefix = name::join(directory, &naming.prefix(session, *created));
                name::numbered_name(&prefix, number)
            }
        }
    }

    /// The transaction that made the directory, which the names of its claims carry.
    pub(super) fn directory(&self) -> Option<i64> {
        match self {
            NodeLayout::Under { naming, created, .. } if naming.is_of_the_directory() => {
                Some(*created)
            }
            _ => None,
        }
    }

    /// The lock's path.
    pub(super) fn lock(&self) -> &str {
        match self {
            NodeLayout::At(path) | NodeLayout::Under { directory: path, .. } => path,
        }
    }
}
