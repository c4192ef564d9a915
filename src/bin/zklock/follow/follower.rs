//! The thread that follows.
//!
//! Every znode below the path is listed once, with a watch on its children, and again when the watch says that they have
//! changed. So what stands still costs nothing; what changes all the time is looked at once a second, and all requests
//! together keep within a rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use zklock::{Children, Client, Code, Contender, Error, LockError, SessionState, Stat, Watched};

use super::budget::Budget;
use super::holds::{Holds, Look};
use super::meters::Meters;
use super::options::FollowOptions;
use super::reader::{Event, Reader};
use super::shared::{Picture, Shared, View};
use super::tree::Tree;
use crate::failure::Failure;
use crate::look::kinds::recognise;
use crate::look::locks::Found;

/// How many requests are on their way at once, a lock's contenders counted as one.
const AT_ONCE: usize = 64;
/// One znode is not listed again before.
const PAUSE: Duration = Duration::from_secs(1);
/// What may not be read is tried again after that.
const AFTER_REFUSAL: Duration = Duration::from_secs(60);
/// No more pictures than that are made.
const FRAME: Duration = Duration::from_millis(200);

/// Follows the locks below the path, in the background, until the client is closed.
///
/// # Errors
/// No server answers, or there is no such path.
pub fn follow(client: &Client, options: &FollowOptions) -> Result<Arc<Shared>, Failure> {
    client.children(&options.path).wait()?;
    let meters = Meters::new().map_err(|error| Failure::new(error.to_string()))?;
    let shared = Arc::new(Shared::new(meters));
    let now = Instant::now();
    let mut follower = Follower {
        reader: Reader::new(client.clone()),
        root: options.path.clone(),
        tree: Tree::of(&options.path, now),
        budget: Budget::new(options.rate, now),
        on_their_way: 0,
        holds: Holds::default(),
        locks: BTreeMap::new(),
        pending: BTreeMap::new(),
        picture: Picture::clone(&shared.picture()),
        is_complete: false,
        shown: None,
        is_changed: true,
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
    holds: Holds,
    locks: BTreeMap<String, Arc<View>>,
    /// Of locks whose contenders are being read, what the listing before showed.
    pending: BTreeMap<String, Pending>,
    picture: Picture,
    /// Everything was read once: what comes after that was seen to come.
    is_complete: bool,
    shown: Option<Instant>,
    is_changed: bool,
    shared: Arc<Shared>,
}

struct Pending {
    found: Found,
    pzxid: Option<i64>,
    changed: Option<SystemTime>,
}

impl Follower {
    fn run(&mut self) {
        loop {
            let now = Instant::now();
            let wake = self.send(now);
            let wake = self.show(now).into_iter().chain(wake).min();
            match self.reader.next(wake.unwrap_or(now + AFTER_REFUSAL)) {
                Some(Event::Closed) => return,
                Some(event) => self.take(event),
                None => {}
            }
        }
    }

    /// Sends what is due. Gives when there may be more to do.
    fn send(&mut self, now: Instant) -> Option<Instant> {
        while self.on_their_way < AT_ONCE {
            let due = self.tree.next_due()?;
            if due > now {
                return Some(due);
            }
            if let Some(wait) = self.budget.wait(now) {
                return Some(wait);
            }
            if let Some(path) = self.tree.take_due(now) {
                self.spend(1);
                self.reader.list(path);
            }
        }
        None
    }

    fn spend(&mut self, requests: usize) {
        self.on_their_way += 1;
        self.budget.spend(requests);
        self.shared.meters.requests.inc_by(requests as u64);
    }

    fn take(&mut self, event: Event) {
        self.is_changed = true;
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
                self.session(state);
            }
            Event::Closed => {}
        }
    }

    fn session(&mut self, state: SessionState) {
        match state {
            SessionState::Suspended => self.shared.meters.connection_losses.inc(),
            SessionState::Lost => self.shared.meters.own_sessions_lost.inc(),
            _ => {}
        }
        self.picture.connection = state;
        self.picture.connection_since = SystemTime::now();
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
        let is_complete = self.is_complete;
        let Some(node) = self.tree.node_mut(&path) else { return };
        self.reader.watch(path.clone(), watch);
        let changed = match node.listed {
            None => is_complete.then(SystemTime::now),
            Some(_) => node.changed,
        };
        let made = made(node.stat.as_ref().zip(Some(node.children)), &stat, names.len());
        (node.listed, node.stat, node.children) = (Some(now), Some(stat.clone()), names.len());
        let mut claims = Vec::new();
        let mut others = Vec::new();
        for name in &names {
            match recognise(name) {
                Some(claim) => claims.push(claim),
                None => others.push(name),
            }
        }
        node.is_lock |= !claims.is_empty();
        if node.is_lock && others.is_empty() && changed.is_some() {
            self.shared.meters.claims.inc_by(made);
        }
        for gone in self.tree.listed(&path, &others, now) {
            self.free(&gone, changed);
        }
        let is_one_znode = stat.is_ephemeral();
        let pzxid = (!is_one_znode).then_some(stat.pzxid);
        let pending = Pending { found: Found { path: path.clone(), claims }, pzxid, changed };
        if is_one_znode || !pending.found.claims.is_empty() {
            self.spend(1 + pending.found.claims.len());
            self.reader.read(path.clone(), is_one_znode);
            self.pending.insert(path, pending);
        } else {
            self.show_lock(pending, Vec::new());
        }
    }

    fn not_listed(&mut self, path: &str, error: &Error) {
        let now = Instant::now();
        if error.is_no_node() && path != self.root {
            for gone in self.tree.remove(path) {
                self.free(&gone, None);
            }
        } else if error.code() == Code::NO_AUTH {
            self.tree.plan(path, now + AFTER_REFUSAL);
        } else {
            if error.is_no_node() {
                for gone in self.tree.listed(path, &[], now) {
                    self.free(&gone, None);
                }
                self.free(path, None);
            }
            self.failed(path, error.to_string());
        }
    }

    fn failed(&mut self, path: &str, error: String) {
        self.shared.meters.errors.inc();
        self.picture.error = Some((SystemTime::now(), error));
        self.tree.plan(path, Instant::now() + PAUSE);
    }

    fn read(&mut self, path: String, read: Result<Vec<Contender>, LockError>) {
        let Some(pending) = self.pending.remove(&path) else { return };
        match read {
            // It went meanwhile, and was listed no more.
            Ok(_) if !self.tree.has(&path) => {}
            Ok(contenders) => {
                // An ephemeral znode without numbered children is a lock only if it says so.
                let is_lock =
                    |claim: &Contender| !pending.found.claims.is_empty() || claim.pid != 0;
                let contenders = contenders.into_iter().filter(is_lock).collect();
                self.show_lock(pending, contenders);
            }
            Err(error) if error.code() == Code::NO_AUTH => {
                self.tree.plan(&path, Instant::now() + AFTER_REFUSAL);
            }
            Err(error) => self.failed(&path, error.to_string()),
        }
    }

    /// Nobody holds it any more.
    fn free(&mut self, path: &str, changed: Option<SystemTime>) {
        let found = Found { path: path.to_owned(), claims: Vec::new() };
        self.show_lock(Pending { found, pzxid: None, changed }, Vec::new());
    }

    fn show_lock(&mut self, pending: Pending, contenders: Vec<Contender>) {
        let Pending { found, pzxid, changed } = pending;
        let now = SystemTime::now();
        let look = Look { path: &found.path, contenders: &contenders, pzxid, changed, now };
        let holds = self.holds.look(&look, &self.shared.meters);
        if contenders.is_empty() {
            self.locks.remove(&found.path);
        } else {
            let view = Arc::new(View { found, contenders, holds });
            self.locks.insert(view.found.path.clone(), view);
        }
    }

    /// Shows what is known, if it has changed. Gives when to do so, if it is too soon.
    fn show(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_changed {
            return None;
        }
        let next = self.shown.map(|shown| shown + FRAME);
        if next.is_some_and(|next| next > now) {
            return next;
        }
        (self.shown, self.is_changed) = (Some(now), false);
        self.picture.unread = self.tree.unlisted(now + AFTER_REFUSAL / 2) + self.pending.len();
        self.is_complete |= self.picture.unread == 0;
        self.picture.is_complete = self.is_complete;
        self.picture.version += 1;
        self.picture.locks = self.locks.values().cloned().collect();
        self.picture.past = self.holds.past();
        self.picture.left_out = self.tree.left_out;
        self.shared.show(self.picture.clone());
        None
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
