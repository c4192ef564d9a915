//! Where the znode of a claim is: at the lock's path, or a numbered child of it.

use std::sync::Arc;

use super::pair;
use crate::lock::{Kind, Strategy};
use crate::zookeeper::name::{self, Naming};
use crate::zookeeper::spec::Spec;

/// Where a claim's znode is created.
#[derive(Clone)]
pub(crate) enum NodeLayout {
    At(Arc<str>),
    /// It is a child of the lock's path, which the transaction `created` has made. The server gives its number, or it
    /// takes the number `place` of another claim.
    Under {
        directory: Arc<str>,
        naming: Naming,
        created: i64,
        place: Option<i32>,
    },
}

impl NodeLayout {
    pub(crate) fn of(spec: &Spec) -> NodeLayout {
        let directory = Arc::clone(&spec.lock.path);
        if spec.lock.strategy != Strategy::Queue {
            return NodeLayout::At(directory);
        }
        let (naming, created) = (spec.naming.naming(), spec.lock.memory.directory());
        // A downgrade takes the place of the present claim.
        let replaces = spec.hold.changes.as_ref().filter(|_| spec.naming.kind != Kind::Upgrade);
        let place = replaces.and_then(|present| present.number());
        NodeLayout::Under { directory, naming, created, place }
    }

    pub(crate) fn numbered(&self, session: i64, number: i32) -> String {
        match self {
            NodeLayout::At(path) => path.to_string(),
            NodeLayout::Under { directory, naming, created, .. } => {
                let prefix = name::join(directory, &naming.prefix(session, *created));
                name::numbered_name(&prefix, number)
            }
        }
    }

    /// The transaction that made the directory, if the names of its claims carry it.
    pub(crate) fn directory(&self) -> Option<i64> {
        match self {
            NodeLayout::Under { naming: Naming::Recipe, .. } | NodeLayout::At(_) => None,
            NodeLayout::Under { created, .. } => Some(*created),
        }
    }

    /// The path of the second of a claim's znodes up to its number, if a claim has two.
    pub(crate) fn second(&self) -> Option<String> {
        match self {
            NodeLayout::Under { directory, naming: Naming::Pair, created, .. } => {
                Some(name::join(directory, &pair::second_prefix(*created)))
            }
            _ => None,
        }
    }

    pub(crate) fn is_pair(&self) -> bool {
        matches!(self, NodeLayout::Under { naming: Naming::Pair, .. })
    }

    /// Whether a child has a name that only claims of this directory have.
    pub(crate) fn names(&self, child: &str) -> bool {
        match self {
            NodeLayout::Under { naming, created, .. } if self.directory().is_some() => {
                child.starts_with(&naming.prefix(0, *created))
            }
            _ => false,
        }
    }
}
