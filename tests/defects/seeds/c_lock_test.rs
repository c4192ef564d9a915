//! A C program with three ways to lock: poll for the znode, watch it, or queue up behind a neighbour.

use std::sync::Arc;
use std::thread;

use zklock::zookeeper::CreateMode;
use zklock::{Client, Result};

use super::monitor::Monitor;
use super::{numbered_child, retrying, sorted_children};

/// Creates the znode again and again until that succeeds.
pub struct Poll<'a> {
    pub zk: &'a Client,
    pub node: String,
}

impl Poll<'_> {
    /// `tries`: how many it takes before the test ends it.
    pub fn lock(&self, tries: usize) -> Result<bool> {
        for _ in 0..tries {
            match self.zk.create(&self.node, b"", CreateMode::Ephemeral).wait() {
                Ok(_) => return Ok(true),
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Any version will do.
    pub fn unlock(&self) -> Result<()> {
        self.zk.delete(&self.node, None).wait()
    }

    /// The measuring loop: the lock is given back before the work is done.
    pub fn lock_and_work(&self, work: impl FnOnce()) -> Result<()> {
        if self.lock(usize::MAX)? {
            self.unlock()?;
            work();
        }
        Ok(())
    }
}

/// Creates the znode, or waits on a condition variable for a watch to say that it changed.
pub struct Watch<'a> {
    pub zk: &'a Client,
    pub node: String,
    pub condition: Arc<Monitor>,
}

impl Watch<'_> {
    /// `between`: what happens between the watch and the wait. `false` when the test has ended the wait.
    pub fn lock(&self, mut between: impl FnMut()) -> Result<bool> {
        loop {
            match self.zk.create(&self.node, b"", CreateMode::Ephemeral).wait() {
                Ok(_) => return Ok(true),
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(error),
            }
            let watch = self.zk.exists_and_watch(&self.node).wait()?.watch;
            let condition = Arc::clone(&self.condition);
            thread::spawn(move || {
                if watch.wait().is_ok() {
                    condition.notify();
                }
            });
            between();
            if !self.condition.wait() {
                return Ok(false);
            }
        }
    }
}

/// Makes a numbered child and waits for the one before it.
pub struct Neighbour<'a> {
    pub zk: &'a Client,
    pub node: String,
    pub condition: Arc<Monitor>,
}

impl Neighbour<'_> {
    /// `false` when the test has ended the wait.
    pub fn lock(&self) -> Result<bool> {
        let own = retrying(|| numbered_child(self.zk, &self.node, "lock-"))?;
        loop {
            // As strcmp() has it.
            let names = retrying(|| sorted_children(self.zk, &self.node))?;
            let place = names.iter().position(|name| *name == own);
            let Some(before) = place.and_then(|place| place.checked_sub(1)) else {
                return Ok(true);
            };
            let before = format!("{}/{}", self.node, names[before]);
            // Whether the neighbour is still there is not looked at.
            let watch = self.zk.exists_and_watch(&before).wait()?.watch;
            let condition = Arc::clone(&self.condition);
            thread::spawn(move || {
                if watch.wait().is_ok() {
                    condition.notify();
                }
            });
            if !self.condition.wait() {
                return Ok(false);
            }
        }
    }
}
