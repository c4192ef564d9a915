//! With which other libraries a lock shares its path.

use super::kind::Kind;
use super::strategy::Strategy;

/// Locks of which other libraries a lock excludes on its path. It waits for all of them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Interop {
    /// Curator, go-zookeeper, the crate zookeeper-client and the recipes that ZooKeeper ships wait for it; kazoo
    /// where its program is given the pattern `-lock-`. A claim is one znode.
    #[default]
    Most,
    /// kazoo waits for it as it comes, too. A claim is two znodes, which one transaction makes and another
    /// deletes. go-zookeeper as `github.com/samuel/go-zookeeper` fails at the name of the second.
    All,
}

impl Interop {
    /// Says what is wrong with such a lock, if anything is.
    pub(crate) fn check(self, kind: Kind, strategy: Strategy) -> Result<(), &'static str> {
        match (self, kind, strategy) {
            (Interop::Most, _, _) | (Interop::All, Kind::Exclusive, Strategy::Queue) => Ok(()),
            (Interop::All, Kind::Exclusive, _) => {
                Err("only the queue strategy interoperates with all libraries")
            }
            (Interop::All, _, _) => Err(
                "only an exclusive lock interoperates with all libraries, as kazoo as it comes has no others",
            ),
        }
    }
}
