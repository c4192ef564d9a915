//! What users of other libraries have run into, each the few lines that matter.

use std::sync::Arc;
use std::thread;

use zklock::zookeeper::{CreateMode, SessionState, Watch, Watched};
use zklock::{Client, Result};

use super::monitor::Monitor;
use super::{numbered_child, sorted_children};

/// A protected create: its name carries an id, by which it is found again when its reply was lost.
pub struct ProtectedLock {
    pub node: String,
    pub id: &'static str,
}

impl ProtectedLock {
    fn prefix(&self) -> String {
        format!("_c_{}-lock-", self.id)
    }

    /// The create alone. The reply may be lost.
    pub fn create(&self, zk: &Client) -> Result<String> {
        numbered_child(zk, &self.node, &self.prefix())
    }

    /// After a reconnection: whoever has the id in its name is taken for our own, whatever its session;
    /// the first holds.
    pub fn resume(&self, zk: &Client) -> Result<bool> {
        let mut names = zk.children(&self.node).wait()?.names;
        names.sort_by_key(|name| super::number(name));
        let own = match names.iter().find(|name| name.starts_with(&self.prefix())) {
            Some(own) => own.clone(),
            None => return Ok(false),
        };
        Ok(names.first() == Some(&own))
    }
}

/// A lock that forgets before it deletes.
pub struct Forgetful<'a> {
    pub zk: &'a Client,
    pub node: String,
    pub own: Option<String>,
}

impl Forgetful<'_> {
    pub fn try_acquire(&mut self) -> Result<bool> {
        let own = numbered_child(self.zk, &self.node, "lock-")?;
        let first = sorted_children(self.zk, &self.node)?.first() == Some(&own);
        self.own = Some(own);
        Ok(first)
    }

    /// After an error there is nothing that could be released again.
    pub fn release(&mut self) -> Result<()> {
        match self.own.take() {
            Some(own) => self.zk.delete(&format!("{}/{own}", self.node), None).wait(),
            None => Ok(()),
        }
    }

    /// Gives up a wait by its timeout, and cleans up as well as it can.
    pub fn give_up(&mut self) {
        let _ = self.release();
    }
}

/// A lock whose flag to cancel stays up when nobody is there to see it.
#[derive(Default)]
pub struct Cancellable {
    cancelled: bool,
}

impl Cancellable {
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// Whether it was acquired; each acquire looks at the flag while it waits, and lowers it.
    pub fn acquire(&mut self, zk: &Client, node: &str) -> Result<bool> {
        let own = numbered_child(zk, node, "lock-")?;
        if std::mem::take(&mut self.cancelled) {
            zk.delete(&format!("{node}/{own}"), None).wait()?;
            return Ok(false);
        }
        Ok(sorted_children(zk, node)?.first() == Some(&own))
    }
}

/// Makes the directory, then the child, once each.
pub fn make_directory_then_child(zk: &Client, node: &str) -> Result<String> {
    match zk.create(node, b"", CreateMode::Container).wait() {
        Err(error) if !error.is_node_exists() => return Err(error),
        _ => {}
    }
    numbered_child(zk, node, "lock-")
}

/// A waiter that begins anew, with a child of its own at the end of the line, when the one before it is gone
/// by the time it looks. Its child when it holds; else what it waits for.
pub fn wait_or_begin_anew(zk: &Client, node: &str) -> Result<std::result::Result<String, Watch>> {
    loop {
        let own = numbered_child(zk, node, "lock-")?;
        let names = sorted_children(zk, node)?;
        let place = names.iter().position(|name| *name == own).unwrap_or(0);
        if place == 0 {
            return Ok(Ok(own));
        }
        let before = format!("{node}/{}", names[place - 1]);
        if let Watched { value: Some(_), watch } = zk.exists_and_watch(&before).wait()? {
            return Ok(Err(watch));
        }
        zk.delete(&format!("{node}/{own}"), None).wait()?;
    }
}

/// A waiter that is told of a lost connection, and waits then to be told of the next one. `between`: what
/// happens between the two. Whether it was told; `false` when the test has ended the wait.
pub fn sit_out_a_suspension(zk: &Client, told: &Arc<Monitor>, between: impl FnOnce()) -> bool {
    let mut states = zk.states();
    let listener = Arc::clone(told);
    let (send, suspended) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut was_suspended = false;
        while let Some(state) = states.wait() {
            match state {
                SessionState::Suspended => {
                    was_suspended = true;
                    let _ = send.send(());
                }
                SessionState::Connected if was_suspended => listener.notify(),
                _ => {}
            }
        }
    });
    let _ = suspended.recv();
    between();
    told.wait()
}

/// A waiter that looks with `exists`, which leaves a watch also where nothing is.
pub fn wait_by_exists(zk: &Client, node: &str, own: &str) -> Result<Option<Watch>> {
    loop {
        let names = sorted_children(zk, node)?;
        let place = names.iter().position(|name| name == own).unwrap_or(0);
        if place == 0 {
            return Ok(None);
        }
        let before = format!("{node}/{}", names[place - 1]);
        if let Watched { value: Some(_), watch } = zk.exists_and_watch(&before).wait()? {
            return Ok(Some(watch));
        }
    }
}

/// Orders by what `-?\d{10}$` finds, compared as strings. Whether the new child is the first.
pub fn lock_by_pattern(zk: &Client, node: &str, id: &str) -> Result<bool> {
    let own = numbered_child(zk, node, &format!("{id}__lock__"))?;
    let found = |name: &String| {
        let digits = name.len() - 10;
        let minus = usize::from(name[..digits].ends_with('-'));
        name[digits - minus..].to_owned()
    };
    let names = zk.children(node).wait()?.names;
    Ok(names.iter().min_by_key(|name| found(name)) == Some(&own))
}

/// Orders by serial-number arithmetic: of two numbers less than half the circle apart, the one behind is
/// the earlier. Whether the new child is the first.
pub fn lock_by_serial_number(zk: &Client, node: &str) -> Result<bool> {
    let own = numbered_child(zk, node, "lock-")?;
    let serial = |name: &str| name["lock-".len()..].parse::<i32>().unwrap_or_default();
    let names = zk.children(node).wait()?.names;
    Ok(names.iter().all(|name| serial(name).wrapping_sub(serial(&own)) >= 0))
}
