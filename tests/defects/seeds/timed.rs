//! Two Java locks: one with a timeout, one with a heartbeat. Both keep all their locks under one root.

use std::time::{Duration, Instant};

use zklock::{Client, Result};

use super::{numbered_child, sorted_children};

pub struct TimedLock<'a> {
    pub zk: &'a Client,
    /// Where the locks of all names are.
    pub root: String,
}

impl TimedLock<'_> {
    fn before(&self, own: &str) -> Result<Option<String>> {
        let names = sorted_children(self.zk, &self.root)?;
        let place = names.iter().position(|name| name == own);
        Ok(place.and_then(|place| place.checked_sub(1)).map(|before| names[before].clone()))
    }

    /// Whatever wakes it is taken for the lock. The name goes no further than here.
    pub fn lock(&self, _name: &str, timeout: Duration) -> Result<bool> {
        let own = numbered_child(self.zk, &self.root, "lock-")?;
        let Some(before) = self.before(&own)? else {
            return Ok(true);
        };
        let mut watch = self.zk.exists_and_watch(&format!("{}/{before}", self.root)).wait()?.watch;
        match watch.wait_timeout(timeout) {
            None => Ok(false),
            Some(event) => event.map(|_| true),
        }
    }

    /// Woken, it begins again from the beginning, with what is left of the time.
    pub fn lock_again_when_woken(&self, deadline: Instant) -> Result<bool> {
        let own = numbered_child(self.zk, &self.root, "lock-")?;
        let Some(before) = self.before(&own)? else {
            return Ok(true);
        };
        let mut watch = self.zk.exists_and_watch(&format!("{}/{before}", self.root)).wait()?.watch;
        match watch.wait_timeout(deadline.saturating_duration_since(Instant::now())) {
            None => Ok(false),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) => self.lock_again_when_woken(deadline),
        }
    }
}

/// Writes to its child now and then, and believes that this keeps the lock.
pub struct HeartbeatLock<'a> {
    pub zk: &'a Client,
    pub node: String,
    own: Option<String>,
}

impl<'a> HeartbeatLock<'a> {
    pub fn new(zk: &'a Client, node: &str) -> HeartbeatLock<'a> {
        HeartbeatLock { zk, node: node.to_owned(), own: None }
    }

    pub fn try_lock(&mut self) -> Result<bool> {
        let own = numbered_child(self.zk, &self.node, "lock-")?;
        let first = sorted_children(self.zk, &self.node)?.first() == Some(&own);
        self.own = first.then_some(own);
        Ok(first)
    }

    /// Waits for the one before. Whatever wakes it is taken for the lock, news of the session too.
    pub fn lock(&mut self) -> Result<bool> {
        let own = numbered_child(self.zk, &self.node, "lock-")?;
        let names = sorted_children(self.zk, &self.node)?;
        let place = names.iter().position(|name| *name == own).unwrap_or(0);
        if place > 0 {
            let before = format!("{}/{}", self.node, names[place - 1]);
            let watch = self.zk.exists_and_watch(&before).wait()?.watch;
            drop(watch.wait());
        }
        self.own = Some(own);
        Ok(true)
    }

    /// One beat of the heart.
    pub fn beat(&self) -> Result<()> {
        let Some(own) = &self.own else {
            return Ok(());
        };
        match self.zk.set(&format!("{}/{own}", self.node), b"alive", None).wait() {
            Err(error) if error.is_no_node() => Ok(()),
            done => done.map(drop),
        }
    }

    pub fn is_held(&self) -> bool {
        self.own.is_some()
    }
}
