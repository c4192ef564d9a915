//! Programs that incidents have made known: brokers, latches, and those who apply plans.

use zklock::zookeeper::CreateMode;
use zklock::{Client, Code, Result};

use super::{numbered_child, sorted_children};

/// Leads while there is its ephemeral znode, in whatever session its client has.
pub struct Broker<'a> {
    pub zk: &'a Client,
    pub node: String,
}

impl Broker<'_> {
    pub fn elect(&self) -> Result<bool> {
        match self.zk.create(&self.node, b"", CreateMode::Ephemeral).wait() {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Code::NODE_EXISTS => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What it decided while it led is written as soon as its client can.
    pub fn write(&self, decision: &str) -> Result<()> {
        self.zk.set(&format!("{}-state", self.node), decision.as_bytes(), None).wait().map(drop)
    }
}

/// A latch that a reconnection resets, on one thread, while another looks at the children.
pub struct Latch<'a> {
    zk: &'a Client,
    node: String,
    own: String,
    pub leads: bool,
}

impl<'a> Latch<'a> {
    pub fn new(zk: &'a Client, node: &str) -> Result<Latch<'a>> {
        let own = numbered_child(zk, node, "latch-")?;
        Ok(Latch { zk, node: node.to_owned(), own, leads: false })
    }

    pub fn look(&mut self) -> Result<()> {
        self.leads = sorted_children(self.zk, &self.node)?.first() == Some(&self.own);
        Ok(())
    }

    pub fn begin_reset(&mut self) {
        self.leads = false;
    }

    pub fn end_reset(&mut self) -> Result<()> {
        self.zk.delete(&format!("{}/{}", self.node, self.own), None).wait()?;
        self.own = numbered_child(self.zk, &self.node, "latch-")?;
        Ok(())
    }
}

/// Applies a plan that is newer than the one in place, as far as it knows.
pub struct Enactor<'a> {
    pub zk: &'a Client,
    pub node: String,
}

impl Enactor<'_> {
    pub fn in_place(&self) -> Result<u32> {
        let data = self.zk.get(&self.node).wait()?.data;
        Ok(String::from_utf8(data).unwrap().parse().unwrap())
    }

    pub fn is_newer(&self, plan: u32) -> Result<bool> {
        Ok(plan > self.in_place()?)
    }

    pub fn apply(&self, plan: u32) -> Result<()> {
        self.zk.set(&self.node, plan.to_string().as_bytes(), None).wait().map(drop)
    }
}
