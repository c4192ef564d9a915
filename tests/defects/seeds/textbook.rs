//! Locks as textbooks have them: one unique name, numbered children that all watch the directory, and a
//! library's reentrant lock.

use zklock::zookeeper::{CreateMode, Watch, Watched};
use zklock::{Client, Result};

use super::{numbered_child, sorted_children};

/// One znode of a unique name. Everybody who waits watches it.
pub struct UniqueName<'a> {
    pub zk: &'a Client,
    pub node: String,
}

impl UniqueName<'_> {
    /// The znode stays when its maker dies.
    pub fn try_lock(&self) -> Result<bool> {
        self.create(CreateMode::Persistent)
    }

    /// Holds, or says what to wait for before the next try.
    pub fn lock_or_watch(&self) -> Result<Option<Watch>> {
        while !self.create(CreateMode::Ephemeral)? {
            let Watched { value: stat, watch } = self.zk.exists_and_watch(&self.node).wait()?;
            if stat.is_some() {
                return Ok(Some(watch));
            }
        }
        Ok(None)
    }

    fn create(&self, mode: CreateMode) -> Result<bool> {
        match self.zk.create(&self.node, b"", mode).wait() {
            Ok(_) => Ok(true),
            Err(error) if error.is_node_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub fn unlock(&self) -> Result<()> {
        self.zk.delete(&self.node, None).wait()
    }
}

/// Numbered children. Everybody who waits watches the directory.
pub struct WatchesChildren<'a> {
    pub zk: &'a Client,
    pub node: String,
    pub own: String,
}

impl<'a> WatchesChildren<'a> {
    pub fn enter(zk: &'a Client, node: &str) -> Result<WatchesChildren<'a>> {
        let own = numbered_child(zk, node, "lock-")?;
        Ok(WatchesChildren { zk, node: node.to_owned(), own })
    }

    /// Holds, or says what to wait for before the next look.
    pub fn lock_or_watch(&self) -> Result<Option<Watch>> {
        let Watched { value: mut listed, watch } = self.zk.children_and_watch(&self.node).wait()?;
        listed.names.sort();
        Ok((listed.names.first() != Some(&self.own)).then_some(watch))
    }

    pub fn unlock(&self) -> Result<()> {
        self.zk.delete(&format!("{}/{}", self.node, self.own), None).wait()
    }
}

/// A library's reentrant lock.
pub struct Reentrant<'a> {
    pub zk: &'a Client,
    pub node: String,
    holds: bool,
}

impl<'a> Reentrant<'a> {
    pub fn new(zk: &'a Client, node: &str) -> Reentrant<'a> {
        Reentrant { zk, node: node.to_owned(), holds: false }
    }

    /// Makes a child, and waits while its place is behind another's. That it has no place (-1) ends the
    /// loop too. An error goes up from wherever it comes.
    pub fn lock(&mut self) -> Result<()> {
        let own = numbered_child(self.zk, &self.node, "lock-")?;
        loop {
            let names = sorted_children(self.zk, &self.node)?;
            let place = names.iter().position(|name| *name == own);
            let place = place.map_or(-1, |place| place as i64);
            if place <= 0 {
                break;
            }
            let before = format!("{}/{}", self.node, names[place as usize - 1]);
            // Here alone it would be told that the session is over.
            if let Watched { value: Some(_), watch } = self.zk.exists_and_watch(&before).wait()? {
                watch.wait()?;
            }
        }
        self.holds = true;
        Ok(())
    }

    pub fn has_lock(&self) -> bool {
        self.holds
    }
}
