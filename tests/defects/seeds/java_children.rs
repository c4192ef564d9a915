//! A Java lock of numbered children: one kind never blocks, one kind waits on a monitor that all locks of
//! the process share.

use std::error::Error;
use std::sync::Arc;
use std::thread;

use zklock::{Client, Result};

use super::monitor::Monitor;
use super::{number, numbered_child, sorted_children};

/// What both kinds have in common.
pub struct Children<'a> {
    pub zk: &'a Client,
    /// The last child that was made: its path.
    own: Option<String>,
}

impl<'a> Children<'a> {
    pub fn new(zk: &'a Client) -> Children<'a> {
        Children { zk, own: None }
    }

    fn enter(&mut self, node: &str) -> Result<String> {
        let own = numbered_child(self.zk, node, "lock-")?;
        self.own = Some(format!("{node}/{own}"));
        Ok(own)
    }

    /// The child before our own. That ours is not there is the same as being the first.
    fn predecessor(&self, node: &str, own: &str) -> Result<Option<String>> {
        let names = sorted_children(self.zk, node)?;
        let place = names.iter().position(|name| name == own);
        Ok(place.and_then(|place| place.checked_sub(1)).map(|before| names[before].clone()))
    }

    /// The kind that never blocks: who is not the first goes.
    pub fn lock_blockless(&mut self, node: &str) -> Result<bool> {
        let own = self.enter(node)?;
        if self.predecessor(node, &own)?.is_none() {
            return Ok(true);
        }
        self.zk.delete(&format!("{node}/{own}"), None).wait()?;
        Ok(false)
    }

    /// As [`lock_blockless`](Children::lock_blockless), where the order is that of the numbers, read from
    /// every child.
    pub fn lock_by_number(&mut self, node: &str) -> std::result::Result<bool, Box<dyn Error>> {
        let own = self.enter(node)?;
        let mut numbers = Vec::new();
        for name in self.zk.children(node).wait()?.names {
            numbers.push(number(&name).ok_or_else(|| format!("{name} has no number"))?);
        }
        numbers.sort_unstable();
        Ok(numbers.first().copied() == number(&own))
    }

    /// Whether anybody holds: whether there is any child.
    pub fn exists(&self, node: &str) -> Result<bool> {
        Ok(!self.zk.children(node).wait()?.names.is_empty())
    }

    /// Deletes the last child that was made, whatever lock and owner are named.
    pub fn release(&mut self, _node: &str, _guid: &str) -> Result<()> {
        match self.own.take() {
            Some(own) => self.zk.delete(&own, None).wait(),
            None => Ok(()),
        }
    }
}

/// The kind that waits.
pub struct ChildrenBlocking<'a> {
    pub base: Children<'a>,
    /// One for all locks.
    pub monitor: Arc<Monitor>,
}

impl ChildrenBlocking<'_> {
    /// `between`: what happens between the watch and the wait. `false` when the test has ended the wait.
    pub fn lock(&mut self, node: &str, mut between: impl FnMut()) -> Result<bool> {
        let own = self.base.enter(node)?;
        while let Some(before) = self.base.predecessor(node, &own)? {
            // Whether it is still there is not looked at.
            let watch = self.base.zk.exists_and_watch(&format!("{node}/{before}")).wait()?.watch;
            let monitor = Arc::clone(&self.monitor);
            thread::spawn(move || {
                // What is told of the session is no news of the node.
                if watch.wait().is_ok() {
                    monitor.notify();
                }
            });
            between();
            if !self.monitor.wait() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
