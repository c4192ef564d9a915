//! The recipe that ZooKeeper ships for C: `lock` queues up and returns, a watch goes on from there, and
//! whoever asks reads `is_owner`. Its Java sister works alike.

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use zklock::{Client, Result};

use super::{number, numbered_child};

/// How the queue is sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By the number at the end, then by the name.
    Number,
    /// By the whole name, the session in front: as it was at first.
    Name,
}

/// Copies are the same mutex, as those of the struct are.
#[derive(Clone)]
pub struct RecipeMutex {
    zk: Client,
    node: String,
    order: Order,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    id: Option<String>,
    owner: bool,
    /// How often a watch has made it go on.
    woken: u64,
}

impl RecipeMutex {
    pub fn new(zk: &Client, node: &str, order: Order) -> RecipeMutex {
        RecipeMutex { zk: zk.clone(), node: node.to_owned(), order, state: Arc::default() }
    }

    /// Takes the child that begins with the session's id for its own, or makes one. Then the first holds,
    /// and the others watch the one before them.
    pub fn lock(&self) -> Result<()> {
        let prefix = format!("x-{:016x}-", self.zk.session().map_or(0, |key| key.id()));
        let mut names = self.zk.children(&self.node).wait()?.names;
        let own = match names.iter().find(|name| name.starts_with(&prefix)) {
            Some(own) => own.clone(),
            None => numbered_child(&self.zk, &self.node, &prefix)?,
        };
        self.state.lock().id = Some(own.clone());
        names = self.zk.children(&self.node).wait()?.names;
        match self.order {
            Order::Number => names.sort_by_key(|name| (number(name), name.clone())),
            Order::Name => names.sort(),
        }
        let place = names.iter().position(|name| *name == own).unwrap_or(0);
        if place == 0 {
            self.state.lock().owner = true;
            return Ok(());
        }
        let before = format!("{}/{}", self.node, names[place - 1]);
        let watch = self.zk.exists_and_watch(&before).wait()?.watch;
        let mutex = self.clone();
        thread::spawn(move || {
            if watch.wait().is_ok() {
                // Whether anybody still wants the lock is not asked.
                let _ = mutex.lock();
                mutex.state.lock().woken += 1;
            }
        });
        Ok(())
    }

    /// Deletes its child.
    pub fn unlock(&self) -> Result<()> {
        let id = self.state.lock().id.take();
        if let Some(id) = id {
            self.zk.delete(&format!("{}/{id}", self.node), None).wait()?;
        }
        self.state.lock().owner = false;
        Ok(())
    }

    pub fn is_owner(&self) -> bool {
        self.state.lock().owner
    }

    pub fn woken(&self) -> u64 {
        self.state.lock().woken
    }
}
