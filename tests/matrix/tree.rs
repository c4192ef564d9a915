//! The tree as an independent session sees it, and strangers' claims in it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zklock_testing::wire::{CreateMode, RawClient};
use zklock_testing::{Error, Proxy, Server, expire_session};

use crate::recipe::{Claims, Recipe};
use crate::scenario::TIMEOUT;

pub const NO_NODE: i32 = -101;
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
        let claim = stat.map(|stat| Claim {
            path: path.to_owned(),
            session: stat.ephemeral_owner,
            czxid: stat.czxid,
        });
        Ok(claim.filter(|claim| claim.session != 0))
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
            Err(error) if error.code() != Some(NO_NODE) => Err(error.to_string()),
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
        claims.sort_by_key(|claim| claim.czxid);
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
        data: &[u8],
    ) -> zklock_testing::Result<Stranger> {
        if recipe.claims == Claims::AtThePath {
            return Stranger::claim_by_name(server, path, data);
        }
        let mut session = RawClient::connect(server.addr(), SESSION)?;
        // Called as those of the lock: after the transaction that made the directory.
        let directory = session.exists(path)?.map_or(0, |stat| stat.czxid);
        let prefix = format!("{path}/zl-{directory:x}-{}", recipe.mark());
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

    fn with(mut session: RawClient, path: String) -> zklock_testing::Result<Stranger> {
        let czxid = session.exists(&path)?.map_or(0, |stat| stat.czxid);
        let claim = Claim { path, session: session.session_id(), czxid };
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
