//! The tree as an independent session sees it, and strangers' claims in it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zklock_testing::wire::{CreateMode, MultiOp, RawClient};
use zklock_testing::{Error, Proxy, Server, expire_session};

use crate::recipe::{Claims, Recipe};
use crate::scenario::TIMEOUT;

pub const NO_NODE: i32 = -101;
const NO_AUTH: i32 = -102;
pub const NODE_EXISTS: i32 = -110;
const NOT_EMPTY: i32 = -111;
/// Longer than any case lasts: bare sessions send no pings.
const SESSION: Duration = Duration::from_secs(60);

/// A claim's znode, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub path: String,
    pub session: i64,
    pub czxid: i64,
    /// That of the hold which it belongs to: of its own, unless its data name another.
    pub token: i64,
    /// How many of its znodes are there.
    pub znodes: usize,
}

impl Claim {
    /// The number at the end of its name.
    pub fn number(&self) -> Option<i32> {
        self.path.get(self.path.len().checked_sub(10)?..)?.parse().ok()
    }
}

/// Looks at the server and changes it, past the client and its proxy.
pub struct Tree {
    addr: SocketAddr,
    session: Mutex<Option<RawClient>>,
}

impl Tree {
    /// A proxy refuses while the server is away; a server that starts may never answer.
    pub fn behind(aside: &Proxy) -> Tree {
        Tree { addr: aside.addr(), session: Mutex::new(None) }
    }

    /// Asks until there is an answer: the server may be away just now.
    fn ask<T>(
        &self,
        mut question: impl FnMut(&mut RawClient) -> zklock_testing::Result<T>,
    ) -> zklock_testing::Result<T> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut slot = self.session.lock();
            let answer = match slot.as_mut() {
                Some(session) => question(session),
                None => RawClient::connect(self.addr, SESSION)
                    .and_then(|session| question(slot.insert(session))),
            };
            match answer {
                Err(error) if error.code().is_none() && Instant::now() < deadline => {
                    *slot = None;
                    drop(slot);
                    std::thread::sleep(Duration::from_millis(10));
                }
                answer => return answer,
            }
        }
    }

    pub fn make(&self, path: &str) -> Result<(), String> {
        match self.ask(|tree| tree.create(path, b"")) {
            Err(error) if error.code() != Some(NODE_EXISTS) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    pub fn delete(&self, path: &str) -> Result<(), String> {
        match self.ask(|tree| tree.delete(path)) {
            Err(error) if error.code() != Some(NO_NODE) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Deletes a claim, if it is still that one.
    pub fn delete_claim(&self, claim: &Claim) -> Result<(), String> {
        let deleted = self.ask(|tree| match tree.exists(&claim.path)? {
            Some(stat) if stat.czxid == claim.czxid => tree.delete(&claim.path),
            _ => Ok(()),
        });
        match deleted {
            Err(error) if error.code() != Some(NO_NODE) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    pub fn claim(&self, path: &str) -> Result<Option<Claim>, String> {
        let stat = self.ask(|tree| tree.exists(path)).map_err(|error| error.to_string())?;
        let Some(stat) = stat.filter(|stat| stat.ephemeral_owner != 0) else { return Ok(None) };
        let mut token = stat.czxid;
        if ["-upgrade-", "-up-", "-read-"].iter().any(|word| path.contains(word)) {
            let data = self.data(path)?;
            let named = String::from_utf8_lossy(&data);
            let mut named = named.lines().filter_map(|line| line.strip_prefix("token="));
            token = named.find_map(|token| i64::from_str_radix(token, 16).ok()).unwrap_or(token);
        }
        let (path, session) = (path.to_owned(), stat.ephemeral_owner);
        Ok(Some(Claim { path, session, czxid: stat.czxid, token, znodes: 1 }))
    }

    /// As [`delete`](Tree::delete), but what has children stays. Gives whether it was deleted.
    pub fn delete_if_empty(&self, path: &str) -> Result<bool, String> {
        match self.ask(|tree| tree.delete(path)) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.code(), Some(NO_NODE | NOT_EMPTY)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn write(&self, path: &str, data: &[u8]) -> Result<(), String> {
        match self.ask(|tree| tree.set_data(path, data)) {
            // Nobody else may write to a claim whose release will be announced.
            Err(error) if ![Some(NO_NODE), Some(NO_AUTH)].contains(&error.code()) => {
                Err(error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// What a znode says; nothing where there is none.
    pub fn data(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.ask(|tree| tree.get_data(path)) {
            Err(error) if error.code() == Some(NO_NODE) => Ok(Vec::new()),
            read => read.map(|(data, _)| data).map_err(|error| error.to_string()),
        }
    }

    /// How often a znode was written to; `None` where there is none.
    pub fn version(&self, path: &str) -> Result<Option<i32>, String> {
        let stat = self.ask(|tree| tree.exists(path)).map_err(|error| error.to_string())?;
        Ok(stat.map(|stat| stat.version))
    }

    /// All claims to a lock, the one that holds first.
    pub fn claims(&self, recipe: &Recipe, path: &str) -> Result<Vec<Claim>, String> {
        let paths = match recipe.claims {
            Claims::AtThePath => vec![path.to_owned()],
            Claims::Numbered => match self.ask(|tree| tree.children(path)) {
                Ok(names) => names.into_iter().map(|name| format!("{path}/{name}")).collect(),
                Err(error) if error.code() == Some(NO_NODE) => Vec::new(),
                Err(error) => return Err(error.to_string()),
            },
        };
        let mut claims = Vec::new();
        for path in paths {
            claims.extend(self.claim(&path)?);
        }
        // Of a claim of two znodes, the first gives the path.
        claims.sort_by_key(|claim| (claim.czxid, claim.path.contains("/_zl-")));
        claims.dedup_by(|second, first| {
            let is_one = second.czxid == first.czxid;
            first.znodes += usize::from(is_one);
            is_one
        });
        if recipe.may_change() {
            claims.sort_by_key(|claim| (claim.number(), !claim.path.contains("-upgrade-")));
        }
        Ok(claims)
    }
}

/// Somebody who does nothing but claim.
pub struct Stranger {
    pub claim: Claim,
    session: RawClient,
}

impl Stranger {
    /// Claims in its turn, or takes the path.
    pub fn claim(
        server: &Server,
        recipe: &Recipe,
        path: &str,
        mark: &str,
        data: &[u8],
    ) -> zklock_testing::Result<Stranger> {
        if recipe.claims == Claims::AtThePath {
            return Stranger::claim_by_name(server, path, data);
        }
        let mut session = RawClient::connect(server.addr(), SESSION)?;
        // Called as those of the lock: after the transaction that made the directory.
        let directory = session.exists(path)?.map_or(0, |stat| stat.czxid);
        let prefix = format!("{path}/zl-{directory:x}-{mark}");
        let path = session.create_with(&prefix, data, CreateMode::EphemeralSequential)?;
        Stranger::with(session, path)
    }

    /// Makes a claim of that very name.
    pub fn claim_by_name(
        server: &Server,
        path: &str,
        data: &[u8],
    ) -> zklock_testing::Result<Stranger> {
        let mut session = RawClient::connect(server.addr(), SESSION)?;
        let path = session.create_with(path, data, CreateMode::Ephemeral)?;
        Stranger::with(session, path)
    }

    /// Deletes that claim and makes its own of that name, in one transaction: nobody comes in between.
    pub fn claim_in_place_of(
        server: &Server,
        path: &str,
        data: &[u8],
    ) -> zklock_testing::Result<Stranger> {
        let mut session = RawClient::connect(server.addr(), SESSION)?;
        let (path, data) = (path.to_owned(), data.to_vec());
        let deleted = MultiOp::Delete { path: path.clone() };
        session.multi(&[deleted, MultiOp::CreateEphemeral { path: path.clone(), data }])?;
        Stranger::with(session, path)
    }

    fn with(mut session: RawClient, path: String) -> zklock_testing::Result<Stranger> {
        let czxid = session.exists(&path)?.map_or(0, |stat| stat.czxid);
        let claim = Claim { path, session: session.session_id(), czxid, token: czxid, znodes: 1 };
        Ok(Stranger { claim, session })
    }

    /// Ends with its session, as a crashed client's does.
    pub fn die(self, server: &Arc<Server>) -> Result<(), String> {
        let (id, password) = (self.session.session_id(), self.session.password());
        match expire_session(&server.hosts(), id, &password) {
            Ok(()) | Err(Error::SessionExpired { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
