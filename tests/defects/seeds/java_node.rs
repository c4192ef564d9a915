//! A Java lock that is one ephemeral znode, which never blocks: look, then create.

use zklock::zookeeper::CreateMode;
use zklock::{Client, Result};

pub struct NodeBlockless<'a> {
    pub zk: &'a Client,
}

impl NodeBlockless<'_> {
    /// Whether the lock was free and is ours now.
    pub fn lock(&self, node: &str, guid: &str) -> Result<bool> {
        if self.zk.exists(node).wait()?.is_some() {
            return Ok(false);
        }
        match self.zk.create(node, guid.as_bytes(), CreateMode::Ephemeral).wait() {
            Ok(_) => Ok(true),
            Err(error) if error.is_connection_loss() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads whose it is, and deletes that version of it.
    pub fn release(&self, node: &str, guid: &str) -> Result<()> {
        let found = self.zk.get(node).wait()?;
        if found.data == guid.as_bytes() {
            self.zk.delete(node, Some(found.stat.version)).wait()?;
        }
        Ok(())
    }
}
