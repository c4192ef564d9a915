//! Two Java locks on a client with a retry policy: a simple one, and an "optimised" one whose names begin
//! with a random uuid.

use std::time::Duration;

use zklock::zookeeper::Watched;
use zklock::{Client, Result};

use super::{numbered_child, retrying, sorted_children};

pub struct Simple<'a> {
    pub zk: &'a Client,
    pub node: String,
}

impl Simple<'_> {
    /// Makes a child, again when the connection was lost; the first holds; the others wait for the one
    /// before them to change in any way, and hold then.
    pub fn acquire(&self, timeout: Duration) -> Result<bool> {
        let own = retrying(|| numbered_child(self.zk, &self.node, "lock-"))?;
        let names = retrying(|| sorted_children(self.zk, &self.node))?;
        let place = names.iter().position(|name| *name == own).unwrap_or(0);
        if place == 0 {
            return Ok(true);
        }
        let before = format!("{}/{}", self.node, names[place - 1]);
        let Watched { value: stat, mut watch } = self.zk.exists_and_watch(&before).wait()?;
        if stat.is_none() {
            return Ok(true);
        }
        match watch.wait_timeout(timeout) {
            None => Ok(false),
            Some(event) => event.map(|_| true),
        }
    }
}

/// The optimised one sorts whole names.
pub struct Optimised<'a> {
    pub zk: &'a Client,
    pub node: String,
    /// Drawn at random for each lock object.
    pub uuid: &'static str,
}

impl Optimised<'_> {
    /// Whether it holds at once; the wait for the one before is as the simple one's.
    pub fn try_acquire(&self) -> Result<bool> {
        let own = numbered_child(self.zk, &self.node, &format!("_c_{}-lock-", self.uuid))?;
        let names = sorted_children(self.zk, &self.node)?;
        Ok(names.first() == Some(&own))
    }
}
