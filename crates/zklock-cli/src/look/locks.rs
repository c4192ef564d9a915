//! Finds the locks below a path, and who contends for one.

use std::collections::{BTreeSet, VecDeque};

use zklock::Store;
use zklock::zookeeper::{Children, Znode};
use zklock::{Client, Contender, Error, Lock, LockError, Pending, Strategy};

use super::kinds::{self, Claim, Kind, Library, recognise};
use crate::failure::Failure;

/// How many requests are on their way at once.
const AT_ONCE: usize = 64;
/// What servers keep for themselves.
pub const SERVERS_OWN: &str = "/zookeeper";

/// A lock, as a walk through the tree finds it.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: String,
    /// In no order; of a lock that is one znode there are none.
    pub claims: Vec<Claim>,
}

impl Found {
    /// The lock in the library's hands.
    pub fn lock(&self, client: &Client) -> Lock {
        let lock = client.lock(&self.path);
        if self.claims.is_empty() { lock.strategy(Strategy::Watch) } else { lock }
    }

    pub fn kinds(&self) -> String {
        let kinds: BTreeSet<Kind> = self.claims.iter().map(|claim| claim.kind).collect();
        let names: Vec<&str> = kinds.into_iter().map(Kind::name).collect();
        if names.is_empty() { "one znode".to_owned() } else { names.join(", ") }
    }

    pub fn libraries(&self) -> Vec<&'static str> {
        let libraries: BTreeSet<Library> = self.claims.iter().map(|claim| claim.library).collect();
        if libraries.is_empty() {
            return vec![Library::Zklock.name()];
        }
        libraries.into_iter().map(Library::name).collect()
    }
}

pub fn join(parent: &str, child: &str) -> String {
    if parent == "/" { format!("/{child}") } else { format!("{parent}/{child}") }
}

type Listing = Pending<Children>;
type Reading = Pending<Znode>;

/// All locks that somebody holds or waits for, at the path and below, by their paths.
///
/// # Errors
/// No server answers, or the path may not be read. What may not be read below it is left out.
pub fn below(client: &Client, path: &str) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    let mut waiting = vec![path.to_owned()];
    let mut listings: VecDeque<(String, Listing)> = VecDeque::new();
    let mut readings: VecDeque<(String, Reading)> = VecDeque::new();
    let mut is_first = true;
    loop {
        while listings.len() + readings.len() < AT_ONCE {
            let Some(next) = waiting.pop() else { break };
            let listing = client.children(&next);
            listings.push_back((next, listing));
        }
        if let Some((path, listing)) = listings.pop_front() {
            let names = match listing.wait() {
                Ok(children) => children.names,
                Err(error) if error.is_no_node() || !is_first && is_of_one_znode(&error) => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            is_first = false;
            let (claims, others) = kinds::sort(&names);
            if names.is_empty() {
                let reading = client.get(&path);
                readings.push_back((path.clone(), reading));
            }
            let others = others.into_iter().map(|name| join(&path, name));
            waiting.extend(others.filter(|path| path != SERVERS_OWN));
            if !claims.is_empty() {
                found.push(Found { path, claims });
            }
        } else if let Some((path, reading)) = readings.pop_front() {
            match reading.wait() {
                Ok(znode) if znode.stat.is_ephemeral() && znode.data.starts_with(b"zklock/1 ") => {
                    found.push(Found { path, claims: Vec::new() });
                }
                Ok(_) => {}
                Err(error) if is_of_one_znode(&error) => {}
                Err(error) => return Err(error.into()),
            }
        } else {
            found.sort_by(|a, b| a.path.cmp(&b.path));
            return Ok(found);
        }
    }
}

/// It went meanwhile, or may not be read.
fn is_of_one_znode(error: &Error) -> bool {
    error.is_no_node() || error.code() == zklock::Code::NO_AUTH
}

/// Says that nobody has a lock at a path, or that there is no such path.
///
/// # Errors
/// No server answers.
pub fn nobody(client: Option<&Client>, path: &str, otherwise: &str) -> Result<String, Failure> {
    match client.map(|client| client.exists(path).wait()).transpose()? {
        Some(None) => Ok(format!("{path} does not exist: nobody has used a lock there yet")),
        _ => Ok(format!("{path}: {otherwise}")),
    }
}

/// Who holds a lock, and how many wait for it.
#[derive(Default)]
pub struct Holding {
    /// The first of them; `None` where nobody does any more.
    pub holder: Option<Contender>,
    pub holders: usize,
    pub waiters: usize,
}

/// Who holds each of them, in their order.
///
/// # Errors
/// No server answers.
pub fn holdings(client: &Client, locks: &[Found]) -> Result<Vec<Holding>, Failure> {
    let mut holdings = Vec::with_capacity(locks.len());
    for locks in locks.chunks(AT_ONCE) {
        let asked: Vec<_> = locks.iter().map(|found| found.ask(client)).collect();
        for (asked, found) in asked.into_iter().zip(locks) {
            holdings.push(match asked {
                Asked::Holder(holder) => Holding::of_one(holder.wait()?, found.claims.len()),
                Asked::All(contenders) => Holding::of_all(contenders.wait()?),
            });
        }
    }
    Ok(holdings)
}

/// What is asked of a lock: only where several can hold it, who contends.
enum Asked {
    Holder(Pending<Option<Contender>, LockError>),
    All(Pending<Vec<Contender>, LockError>),
}

impl Found {
    fn ask(&self, client: &Client) -> Asked {
        let lock = self.lock(client);
        match self
            .claims
            .iter()
            .any(|claim| matches!(claim.kind, Kind::Read | Kind::Upgradeable | Kind::Permit))
        {
            true => Asked::All(lock.contenders()),
            false => Asked::Holder(lock.holder()),
        }
    }
}

impl Holding {
    fn of_one(holder: Option<Contender>, claims: usize) -> Holding {
        Holding {
            holders: usize::from(holder.is_some()),
            holder,
            waiters: claims.saturating_sub(1),
        }
    }

    fn of_all(contenders: Vec<Contender>) -> Holding {
        let holders = contenders.iter().filter(|contender| contender.held_since.is_some()).count();
        let waiters = contenders.len() - holders;
        let holder = contenders.into_iter().find(|contender| contender.held_since.is_some());
        Holding { holder, holders, waiters }
    }
}

/// The lock at a path, which may be one znode or a queue.
///
/// # Errors
/// No server answers.
pub fn at(store: &Store, path: &str) -> Result<Lock, Failure> {
    let lock = store.lock(path);
    let Some(client) = store.client() else { return Ok(lock) };
    let is_one_znode = client.exists(path).wait()?.is_some_and(|stat| stat.is_ephemeral());
    Ok(if is_one_znode { lock.strategy(Strategy::Watch) } else { lock })
}

/// What is known of a contender besides what it says of itself.
pub fn claim_of(contender: &Contender) -> Option<Claim> {
    recognise(contender.path.rsplit('/').next().unwrap_or_default())
}
