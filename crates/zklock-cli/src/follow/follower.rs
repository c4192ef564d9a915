//! The thread that follows.
//!
//! Every znode below the path is listed once, with a watch on its children, and again when the watch says that they have
//! changed. So what stands still costs nothing; what changes all the time is looked at once a second, and all requests
//! together keep within a rate.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use zklock::zookeeper::{Children, Stat, Watched};
use zklock::{Client, Code, Contender, Error, LockError};

use super::budget::Budget;
use super::meters::Meters;
use super::options::FollowOptions;
use super::painter::{Listed, Painter};
use super::reader::{Event, Reader};
use super::shared::Shared;
use super::tree::{PAUSE, Tree};
use crate::failure::Failure;
use crate::look::kinds;
use crate::look::locks::Found;

/// How many requests are on their way at once, a lock's contenders counted as one.
const AT_ONCE: usize = 64;
/// What may not be read is tried again after that.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// Follows the locks below the path, in the background, until the client is closed.
///
/// # Errors
/// No server answers, or the path may not be read.
pub fn follow(client: &Client, options: &FollowOptions) -> Result<Arc<Shared>, Failure> {
    match client.children(&options.path).wait() {
        // It is watched until it comes.
        Err(error) if !error.is_no_node() => return Err(error.into()),
        _ => {}
    }
    let meters = Meters::new().map_err(|error| Failure::new(error.to_string()))?;
    let shared = Arc::new(Shared::new(meters));
    let now = Instant::now();
    let mut follower = Follower {
        reader: Reader::new(client.clone()),
        root: options.path.clone(),
        tree: Tree::of(&options.path, now),
        budget: Budget::new(options.rate, now),
        on_their_way: 0,
        pending: HashMap::new(),
        painter: Painter::new(Arc::clone(&shared)),
        shared: Arc::clone(&shared),
    };
    thread::Builder::new()
        .name("follower".to_owned())
        .spawn(move || follower.run())
        .map_err(|error| Failure::new(format!("start a thread: {error}")))?;
    Ok(shared)
}

struct Follower {
    reader: Reader,
    root: String,
    tree: Tree,
    budget: Budget,
    on_their_way: usize,
    /// Locks whose contenders are being read.
    pending: HashMap<String, Listed>,
    painter: Painter,
    shared: Arc<Shared>,
}

impl Follower {
    fn run(&mut self) {
        loop {
            let now = Instant::now();
            let wake = self.send(now);
            let unread = self.tree.unlisted(now + AFTER_REFUSAL / 2) + self.pending.len();
            let wake = self.painter.show(now, &self.tree, unread).into_iter().chain(wake).min();
            match self.reader.next(wake.unwrap_or(now + AFTER_REFUSAL)) {
                Some(Event::Closed) => return,
                Some(event) => self.take(event),
                None => {}
            }
        }
    }

    /// Sends what is due. Gives when there may be more to do.
    fn send(&mut self, now: Instant) -> Option<Instant> {
        // What is asked without a connection fails; there will be one.
        while self.on_their_way < AT_ONCE && self.painter.is_connected() {
            let due = self.tree.next_due()?;
            if due > now {
                return Some(due);
            }
            if let Some(wait) = self.budget.wait(now) {
                return Some(wait);
            }
            let Some(path) = self.tree.take_due(now) else { continue };
            if self.pending.contains_key(&path) {
                // Its contenders are still being read, which takes as long as there are many.
                self.tree.plan(&path, now + PAUSE);
            } else {
                self.on_their_way += 1;
                self.spend(1);
                self.reader.list(path);
            }
        }
        None
    }

    fn spend(&mut self, requests: usize) {
        self.budget.spend(requests);
        self.shared.meters.requests.inc_by(requests as u64);
    }

    fn take(&mut self, event: Event) {
        self.painter.change();
        match event {
            Event::Listed(path, listing) => {
                self.on_their_way -= 1;
                match listing {
                    Ok(listing) => self.listed(path, listing),
                    Err(error) => self.not_listed(&path, &error),
                }
            }
            Event::Read(path, read) => {
                self.on_their_way -= 1;
                self.read(path, read);
            }
            Event::Changed(path, change) => self.changed(&path, change.is_ok()),
            Event::Session(state, states) => {
                self.reader.follow_states(states);
                self.painter.session(state);
            }
            Event::Closed => {}
        }
    }

    /// Its children have; or nobody knows, for the session that watched is over.
    fn changed(&mut self, path: &str, is_known: bool) {
        let now = Instant::now();
        let Some(node) = self.tree.node_mut(path) else { return };
        node.changed = is_known.then(SystemTime::now);
        let soonest = node.listed.map_or(now, |listed| listed + PAUSE);
        self.tree.plan(path, soonest.max(now));
    }

    fn listed(&mut self, path: String, listing: Watched<Children>) {
        let Watched { value: Children { names, stat, .. }, watch } = listing;
        let now = Instant::now();
        let Some(node) = self.tree.node_mut(&path) else { return };
        self.reader.watch(path.clone(), watch);
        let changed = node.changed.take();
        let made = made(node.stat.as_ref().zip(Some(node.children)), &stat, names.len());
        (node.listed, node.stat, node.children) = (Some(now), Some(stat), names.len());
        let (claims, others) = kinds::sort(&names);
        node.is_lock |= !claims.is_empty();
        if node.is_lock && others.is_empty() && changed.is_some() {
            self.shared.meters.claims.inc_by(made);
        }
        for gone in self.tree.listed(&path, &others, now, changed) {
            self.painter.free(gone, changed);
        }
        let is_one_znode = stat.is_ephemeral();
        let pzxid = (!is_one_znode).then_some(stat.pzxid);
        let listed = Listed { found: Found { path: path.clone(), claims }, pzxid, changed };
        if is_one_znode || !listed.found.claims.is_empty() {
            self.on_their_way += 1;
            self.spend(1 + listed.found.claims.len());
            self.reader.read(path.clone(), is_one_znode);
            self.pending.insert(path, listed);
        } else {
            self.painter.lock(listed, Vec::new());
        }
    }

    fn not_listed(&mut self, path: &str, error: &Error) {
        let now = Instant::now();
        if error.is_no_node() && path != self.root {
            for gone in self.tree.remove(path) {
                self.painter.free(gone, None);
            }
        } else if error.code() == Code::NO_AUTH {
            // The holder cannot be read any more, so none is shown.
            self.painter.free(path.to_owned(), None);
            self.tree.plan(path, now + AFTER_REFUSAL);
        } else if error.is_no_node() {
            // The root: there is nothing to follow until somebody creates it.
            for gone in self.tree.listed(path, &[], now, None) {
                self.painter.free(gone, None);
            }
            self.painter.free(path.to_owned(), None);
            if let Some(node) = self.tree.node_mut(path) {
                (node.listed, node.stat, node.children, node.is_lock) = (Some(now), None, 0, false);
            }
            self.spend(1);
            self.reader.await_creation(path.to_owned());
        } else {
            self.failed(path, error.to_string());
        }
    }

    fn failed(&mut self, path: &str, error: String) {
        self.painter.error(error);
        self.tree.plan(path, Instant::now() + PAUSE);
    }

    fn read(&mut self, path: String, read: Result<Vec<Contender>, LockError>) {
        let Some(listed) = self.pending.remove(&path) else { return };
        match read {
            // It went meanwhile, and was listed no more.
            Ok(_) if !self.tree.has(&path) => {}
            Ok(contenders) => {
                // An ephemeral znode without numbered children is a lock only if it says so.
                let is_lock = |claim: &Contender| !listed.found.claims.is_empty() || claim.pid != 0;
                let contenders = contenders.into_iter().filter(is_lock).collect();
                self.painter.lock(listed, contenders);
            }
            Err(error) if error.code() == Code::NO_AUTH => {
                self.painter.free(path.clone(), None);
                self.tree.plan(&path, Instant::now() + AFTER_REFUSAL);
            }
            Err(error) => self.failed(&path, error.to_string()),
        }
    }
}

/// How many children were made since the listing before. A znode's `cversion` counts those that were and those that went.
fn made(before: Option<(&Stat, usize)>, stat: &Stat, children: usize) -> u64 {
    let (version, number) = match before {
        Some((before, number)) if before.czxid == stat.czxid => (before.cversion, number),
        _ => (0, 0),
    };
    let changes = i64::from(stat.cversion.wrapping_sub(version));
    let grown = i64::try_from(children).unwrap_or(0) - i64::try_from(number).unwrap_or(0);
    u64::try_from((changes + grown) / 2).unwrap_or(0)
}
