//! What a test works on: a server, a proxy in front of it, a path of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use parking_lot::Mutex;
use zklock::zookeeper::CreateMode;
use zklock::{Client, Lock};
use zklock_testing::wire::{self, RawClient};
use zklock_testing::{Builder, Proxy, Server, eventually};

use crate::shared::{with_id, zookeeper as shared};
use crate::{LONGEST_SESSION, TIMEOUT, connect, expire, options};

/// A client of the shared server, and a persistent znode there for this test alone.
pub fn alone() -> (Client, String) {
    let (client, path) = (connect(shared()), unused_path());
    client.create(&path, b"", CreateMode::Persistent).wait().unwrap();
    (client, path)
}

/// A path under the root that no other test has.
pub fn unused_path() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // The id of a process can come again within one run.
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        format!("{}-{:x}", std::process::id(), began.as_nanos())
    });
    format!("/test-{}-{}", *PROCESS, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A server, a proxy in front of it, and a path.
pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    /// The server behind the proxy.
    pub server: Arc<Server>,
    /// The path of the lock or queue. It is not there; its parent is.
    pub path: String,
    raw: Mutex<Option<RawClient>>,
}

impl Bench {
    /// On the shared server.
    pub fn shared() -> Bench {
        Bench::on(Arc::clone(shared()))
    }

    /// On a server that the test may stop, freeze and count at.
    pub fn own() -> Bench {
        Bench::with(Server::builder())
    }

    /// On a server of the test's own, made so.
    pub fn with(builder: Builder) -> Bench {
        Bench::on(Arc::new(with_id(builder).start().unwrap()))
    }

    /// On a server of the test's own, on which there is nothing of ours, and nobody connected.
    pub fn untouched() -> Bench {
        Bench::at(Arc::new(Server::start().unwrap()), "/")
    }

    /// As [`shared`](Bench::shared), with the znode there under which claims are numbered.
    pub fn with_directory() -> Bench {
        let bench = Bench::shared();
        bench.raw().create(&bench.path, b"").unwrap();
        bench
    }

    /// On the caller's server, at a path of the caller's.
    pub fn at(server: Arc<Server>, path: &str) -> Bench {
        let proxy = Proxy::start(server.addr()).unwrap();
        Bench { proxy, server, path: path.to_owned(), raw: Mutex::default() }
    }

    fn on(server: Arc<Server>) -> Bench {
        let parent = unused_path();
        let bench = Bench::at(server, &format!("{parent}/lock"));
        bench.ask(|raw| raw.create(&parent, b"")).unwrap();
        bench
    }

    /// A second directory beside the first, made anew: for the second half of a test.
    pub fn next(&mut self) {
        self.proxy.clear_rules();
        self.path.push('2');
        self.raw().create(&self.path, b"").unwrap();
    }

    /// A client of the barest sort, connected to the server itself.
    pub fn raw(&self) -> RawClient {
        RawClient::connect(self.server.addr(), LONGEST_SESSION).unwrap()
    }

    /// Asks the server behind everybody's back, again and again by the same connection.
    pub fn ask<T>(
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
        ask(slot.insert(RawClient::connect(self.server.addr(), LONGEST_SESSION)?))
    }

    /// A client that the proxy stands before.
    pub fn client(&self) -> Client {
        options().connect(&self.proxy.hosts()).wait().unwrap()
    }

    /// A client that the proxy knows nothing of.
    pub fn direct(&self) -> Client {
        connect(&self.server)
    }

    /// Our lock on the path.
    pub fn lock(&self, client: &Client) -> Lock {
        client.lock(&self.path)
    }

    /// Somebody who holds a numbered child of the path, and does nothing else.
    pub fn stranger(&self, name: &str) -> Stranger {
        let prefix = format!("{}/{name}", self.path);
        Stranger::claims(self.raw(), &prefix, wire::CreateMode::EphemeralSequential)
    }

    /// The names under the path, oldest first. None where the server has removed the directory: once a minute it removes
    /// empty containers.
    pub fn children(&self) -> Vec<String> {
        const NO_NODE: i32 = -101;
        let names = match self.ask(|raw| raw.children(&self.path)) {
            Err(error) if error.code() == Some(NO_NODE) => Vec::new(),
            names => names.unwrap(),
        };
        let stat = |path: String| self.ask(|raw| raw.exists(&path)).unwrap();
        let mut dated: Vec<(i64, String)> = names
            .into_iter()
            .filter_map(|name| Some((stat(format!("{}/{name}", self.path))?.czxid, name)))
            .collect();
        dated.sort();
        dated.into_iter().map(|(_, name)| name).collect()
    }

    /// Whose session a znode belongs to; `None` when there is no such znode.
    pub fn owner(&self, path: &str) -> Option<i64> {
        self.ask(|raw| raw.exists(path)).unwrap().map(|stat| stat.ephemeral_owner)
    }

    /// Whether there is such a znode.
    pub fn exists(&self, path: &str) -> bool {
        self.owner(path).is_some()
    }

    /// Deletes a znode as an operator would.
    pub fn delete(&self, path: &str) {
        self.ask(|raw| raw.delete(path)).unwrap();
    }

    /// Ends a client's session as the server does; its client learns of it a moment later.
    pub fn expire(&self, client: &Client) {
        expire(&self.server, client);
    }

    /// What the session watches for data or existence, at the path and below.
    pub fn watched_by(&self, session: i64) -> Vec<String> {
        let watches = self.server.watches().unwrap();
        let ours = watches.into_iter().filter(|(path, _)| path.starts_with(&self.path));
        ours.filter(|(_, by)| by.contains(&session)).map(|(path, _)| path).collect()
    }

    /// The claims of others that are there and that the session watches: not its own, nor the directory.
    pub fn waits_for(&self, session: i64) -> Vec<String> {
        let mut watched = self.watched_by(session);
        let is_anothers = |owner: i64| owner != 0 && owner != session;
        watched.retain(|path| self.owner(path).is_some_and(is_anothers));
        watched
    }

    /// Nothing stands in the way: somebody who never came by acquires our lock.
    pub fn expect_free(&self) {
        let other = self.direct();
        self.lock(&other).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }

    /// The directory is empty in the end.
    pub fn expect_empty(&self) {
        eventually("no claim is left", || self.children().is_empty());
    }
}

/// A client of the barest sort that has a claim.
pub struct Stranger {
    /// The claim's.
    pub path: String,
    /// Whose session the claim is of.
    pub raw: RawClient,
}

impl Stranger {
    /// Has the client make a claim.
    pub fn claims(mut raw: RawClient, path: &str, mode: wire::CreateMode) -> Stranger {
        let path = raw.create_with(path, b"stranger", mode).unwrap();
        Stranger { path, raw }
    }

    /// Deletes the claim.
    pub fn leave(&mut self) {
        self.raw.delete(&self.path).unwrap();
    }
}
