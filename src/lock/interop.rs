//! With which other libraries a lock shares its path.

use super::kind::Kind;
use super::strategy::Strategy;

/// Which other libraries wait for a lock on its path. The lock itself waits for all of them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Interop {
    /// Curator, go-zookeeper, the crate zookeeper-client and ZooKeeper's own recipes wait for it. kazoo does if its
    /// program sets the pattern `-lock-`. A claim is one znode.
    #[default]
    Most,
    /// kazoo waits for it without a setting, too. A claim is two znodes; one transaction creates them, and another
    /// deletes them. `github.com/samuel/go-zookeeper` fails at the name of the second.
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
