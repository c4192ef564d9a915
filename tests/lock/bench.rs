//! What each test works on: a server, a proxy in front of it, a path of its own; and waiting that ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use zklock::{Client, ClientOptions, Guard, Lock, LockError, Strategy};
pub use zklock_testing::eventually;
use zklock_testing::wire::{CreateMode, Op, Ops, RawClient};
use zklock_testing::{Builder, Proxy, Rule, Server};

/// How long an event may take that is certain to come.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The session timeout where it does not matter: no pause of a busy machine comes near it.
pub const SESSION: Duration = Duration::from_secs(12);

const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// Runs a contract once for every strategy.
macro_rules! each_strategy {
    ($($(#[$note:meta])* fn $name:ident($strategy:ident) $body:block)+) => {$(
        $(#[$note])*
        mod $name {
            #[allow(unused_imports, reason = "not every contract needs all of them")]
            use super::*;

            fn contract($strategy: zklock::Strategy) $body

            #[test]
            fn poll() {
                contract(zklock::Strategy::Poll);
            }

            #[test]
            fn watch() {
                contract(zklock::Strategy::Watch);
            }

            #[test]
            fn queue() {
                contract(zklock::Strategy::Queue);
            }
        }
    )+};
}
pub(crate) use each_strategy;

/// A claim's znode, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub path: String,
    pub session: i64,
    pub czxid: i64,
}

pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    pub server: Arc<Server>,
    /// The lock's path; its parent exists.
    pub path: String,
    raw: Mutex<Option<RawClient>>,
}

impl Bench {
    /// On the server that all tests share which leave it alone.
    pub fn shared() -> Bench {
        static SERVER: LazyLock<Arc<Server>> =
            LazyLock::new(|| Arc::new(with_id(Server::builder()).start().unwrap()));
        Bench::on(Arc::clone(&SERVER))
    }

    /// On a server that the test may stop, freeze and count at.
    pub fn own() -> Bench {
        Bench::with(Server::builder())
    }

    pub fn with(builder: Builder) -> Bench {
        Bench::on(Arc::new(with_id(builder).start().unwrap()))
    }

    fn on(server: Arc<Server>) -> Bench {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let parent = format!("/test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::start(server.addr()).unwrap();
        let path = format!("{parent}/lock");
        let bench = Bench { proxy, server, path, raw: Mutex::default() };
        bench.raw(|raw| raw.create(&parent, b"")).unwrap();
        bench
    }

    /// Makes the znode under which a queue's claims are made, so that the first create is a claim's.
    pub fn prepare(&self, strategy: Strategy) {
        if strategy == Strategy::Queue {
            match self.raw(|raw| raw.create(&self.path, b"")) {
                Err(error) if error.code() == Some(NODE_EXISTS) => {}
                made => drop(made.unwrap()),
            }
        }
    }

    /// Asks the server behind everybody's back.
    pub fn raw<T>(
        &self,
        mut ask: impl FnMut(&mut RawClient) -> zklock_testing::Result<T>,
    ) -> zklock_testing::Result<T> {
        let mut slot = self.raw.lock();
        // The server may have been started again since the last question.
        if let Some(raw) = slot.as_mut() {
            match ask(raw) {
                Err(error) if error.is_connection_loss() => {}
                answer => return answer,
            }
        }
        ask(slot.insert(RawClient::connect(self.server.addr(), Duration::from_secs(60))?))
    }

    /// A client that the proxy stands before.
    pub fn client(&self) -> Client {
        options().connect(&self.proxy.hosts()).wait().unwrap()
    }

    /// A client that the proxy knows nothing of.
    pub fn direct(&self) -> Client {
        options().connect(&self.server.hosts()).wait().unwrap()
    }

    pub fn lock(&self, client: &Client, strategy: Strategy) -> Lock {
        client.lock(&self.path).strategy(strategy)
    }

    /// Claims of ours on the server, oldest first.
    pub fn claims(&self, strategy: Strategy) -> Vec<Claim> {
        let paths = match strategy {
            Strategy::Queue => {
                let names = self.children();
                let ours = names.iter().filter(|name| name.starts_with("zl-"));
                ours.map(|name| format!("{}/{name}", self.path)).collect()
            }
            _ => vec![self.path.clone()],
        };
        let mut claims: Vec<Claim> =
            paths.into_iter().filter_map(|path| self.claim(path)).collect();
        claims.sort_by_key(|claim| claim.czxid);
        claims
    }

    fn claim(&self, path: String) -> Option<Claim> {
        let stat = self.raw(|raw| raw.exists(&path)).unwrap()?;
        Some(Claim { path, session: stat.ephemeral_owner, czxid: stat.czxid })
    }

    /// Frames that ask for something at the lock's path: not those that keep the session alive.
    pub fn requests(&self) -> Rule {
        Rule::request(Ops::any()).path_prefix(&self.path)
    }

    /// The replies to those.
    pub fn replies(&self) -> Rule {
        Rule::reply(Ops::any()).path_prefix(&self.path)
    }

    /// What was asked for at the lock's path.
    pub fn asked(&self) -> Vec<Op> {
        let asked = self.requests();
        self.proxy.seen().iter().filter(|seen| asked.matches(seen)).map(|seen| seen.op).collect()
    }

    /// The names under the lock's path.
    pub fn children(&self) -> Vec<String> {
        match self.raw(|raw| raw.children(&self.path)) {
            Err(error) if error.code() == Some(NO_NODE) => Vec::new(),
            names => names.unwrap(),
        }
    }

    /// A claim of somebody who does nothing but hold it.
    pub fn stranger(&self, strategy: Strategy) -> Stranger {
        let mut raw = RawClient::connect(self.server.addr(), Duration::from_secs(60)).unwrap();
        let path = match strategy {
            Strategy::Queue => {
                // Called as those of the lock: after the transaction that made the directory.
                let directory = raw.exists(&self.path).unwrap().unwrap().czxid;
                let prefix = format!("{}/zl-{directory:x}-lock-", self.path);
                raw.create_with(&prefix, b"stranger", CreateMode::EphemeralSequential)
            }
            _ => raw.create_with(&self.path, b"stranger", CreateMode::Ephemeral),
        };
        Stranger { path: path.unwrap(), raw }
    }

    /// A claim by that very name of somebody who does nothing but hold it.
    pub fn stranger_at(&self, path: &str) -> Stranger {
        let mut raw = RawClient::connect(self.server.addr(), Duration::from_secs(60)).unwrap();
        let path = raw.create_with(path, b"stranger", CreateMode::Ephemeral).unwrap();
        Stranger { path, raw }
    }

    /// How many of the watches on claims of this lock are the session's.
    pub fn watches_of(&self, session: i64) -> usize {
        let watches = self.server.watches().unwrap();
        let ours = watches.iter().filter(|(path, _)| path.starts_with(&self.path));
        ours.map(|(_, sessions)| sessions.iter().filter(|id| **id == session).count()).sum()
    }

    /// Nothing of ours is left, and somebody else gets the lock.
    pub fn expect_free(&self, strategy: Strategy) {
        eventually("no claim is left", || self.claims(strategy).is_empty());
        let other = self.direct();
        let guard = self.lock(&other, strategy).acquire_within(PATIENCE).wait().unwrap();
        guard.release().wait().unwrap();
    }
}

/// A server with the id that the environment asks for, if it does: sessions' ids begin with it.
fn with_id(builder: Builder) -> Builder {
    match std::env::var("ZKLOCK_TEST_SERVER_ID") {
        Ok(id) => builder.first_id(id.parse().expect("ZKLOCK_TEST_SERVER_ID is 1 to 255")),
        Err(_) => builder,
    }
}

/// A client of the barest sort that has a claim.
pub struct Stranger {
    pub path: String,
    pub raw: RawClient,
}

impl Stranger {
    pub fn leave(&mut self) {
        self.raw.delete(&self.path).unwrap();
    }
}

pub fn options() -> ClientOptions {
    Client::options().session_timeout(SESSION).operation_timeout(PATIENCE).connect_timeout(PATIENCE)
}

pub fn session_id(client: &Client) -> i64 {
    client.session().unwrap().id()
}

/// Acquires on a thread of its own.
pub fn acquire_in_background(lock: &Lock) -> JoinHandle<Result<Guard, LockError>> {
    let lock = lock.clone();
    std::thread::spawn(move || lock.acquire_within(PATIENCE).wait())
}
