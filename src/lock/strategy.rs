//! The choice of a strategy.

use crate::error::{Code, Error, Result};
use crate::path;

/// How clients contend for a lock. All users of one path must use the same strategy.
///
/// Under `Poll` and `Watch` all claims have the lock's path as their name, and servers delete by name. So each claim is
/// read before it is deleted. If another client's claim replaces it between the two, the deletion removes that claim.
/// The time between is one round trip, and never more than 100 ms. It happens only if somebody deletes a held lock's
/// znode by hand, or a holder was cut off. The other client notices, and its token still orders its writes. In a queue
/// names are unique, so this cannot happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Strategy {
    /// Creates the lock's znode, and retries after a pause that grows from 2 ms to 100 ms. It needs no watch, but costs
    /// many requests and is not fair.
    Poll,
    /// Creates the lock's znode, or watches it and retries when it is gone. Every release wakes every waiter (the herd
    /// effect).
    Watch,
    /// Creates a numbered child of the lock's znode and watches only the claim before it. It is fair, and a release
    /// wakes one waiter. It is the only strategy for a lock on `/`, with claims that are children of the root or of the
    /// client's chroot.
    #[default]
    Queue,
}

const LONGEST_PATH: usize = 1_000_000;

impl Strategy {
    pub(crate) fn check_path(self, path: &str) -> std::result::Result<(), &'static str> {
        path::validate(path)?;
        if path.len() > LONGEST_PATH {
            return Err("a lock's path is shorter than a megabyte");
        }
        if path == "/" && self != Strategy::Queue {
            return Err(
                "the root is always there, so only the queue strategy can have a lock on it",
            );
        }
        Ok(())
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Strategy::Poll => "poll",
            Strategy::Watch => "watch",
            Strategy::Queue => "queue",
        })
    }
}

impl std::str::FromStr for Strategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Strategy> {
        match text {
            "poll" => Ok(Strategy::Poll),
            "watch" => Ok(Strategy::Watch),
            "queue" => Ok(Strategy::Queue),
            _ => {
                let detail = "a strategy is poll, watch or queue";
                Err(Error::with_detail("strategy", text, Code::BAD_ARGUMENTS, detail))
            }
        }
    }
}
