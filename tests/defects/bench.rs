//! What each test works on: a server, a proxy in front of it, a path of its own; and waiting that ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use zklock::{Client, ClientOptions, Guard, Lock, LockError, Pending, SessionState};
pub use zklock_testing::eventually;
use zklock_testing::wire::{CreateMode, RawClient};
use zklock_testing::{Proxy, Server, expire_session};

/// How long an event may take that is certain to come.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The session timeout where it does not matter: no pause of a busy machine comes near it.
pub const SESSION: Duration = Duration::from_secs(12);

pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    pub server: Arc<Server>,
    /// The lock's path; it is not there, its parent is.
    pub path: String,
}

impl Bench {
    /// On the server that all tests share which leave it alone.
    pub fn shared() -> Bench {
        static SERVER: LazyLock<Arc<Server>> = LazyLock::new(|| Arc::new(Server::start().unwrap()));
        Bench::on(Arc::clone(&SERVER))
    }

    /// As [`shared`](Bench::shared), with the znode there under which claims are numbered.
    pub fn with_directory() -> Bench {
        let bench = Bench::shared();
        bench.raw().create(&bench.path, b"").unwrap();
        bench
    }

    /// On a server of the caller's, with the lock at a path that is there.
    pub fn at(server: Arc<Server>, path: &str) -> Bench {
        let proxy = Proxy::start(server.addr()).unwrap();
        Bench { proxy, server, path: path.to_owned() }
    }

    fn on(server: Arc<Server>) -> Bench {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let parent = format!("/test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let bench = Bench::at(server, &format!("{parent}/lock"));
        bench.raw().create(&parent, b"").unwrap();
        bench
    }

    /// A second directory beside the first, made anew: for the second half of a test.
    pub fn next(&mut self) {
        self.proxy.clear_rules();
        self.path.push('2');
        self.raw().create(&self.path, b"").unwrap();
    }

    /// Somebody who goes to the server behind everybody's back.
    pub fn raw(&self) -> RawClient {
        RawClient::connect(self.server.addr(), Duration::from_secs(60)).unwrap()
    }

    /// A client that the proxy stands before.
    pub fn client(&self) -> Client {
        options().connect(&self.proxy.hosts()).wait().unwrap()
    }

    /// A client that the proxy knows nothing of.
    pub fn direct(&self) -> Client {
        options().connect(&self.server.hosts()).wait().unwrap()
    }

    /// Our lock on the path.
    pub fn lock(&self, client: &Client) -> Lock {
        client.lock(&self.path)
    }

    /// Somebody who holds a numbered child of the lock's path, and does nothing else.
    pub fn stranger(&self, name: &str) -> Stranger {
        let mut raw = self.raw();
        let prefix = format!("{}/{name}", self.path);
        let path = raw.create_with(&prefix, b"stranger", CreateMode::EphemeralSequential).unwrap();
        Stranger { path, raw }
    }

    /// The names under the lock's path, oldest first.
    pub fn children(&self) -> Vec<String> {
        let mut raw = self.raw();
        let names = raw.children(&self.path).unwrap();
        let mut dated: Vec<(i64, String)> = names
            .into_iter()
            .filter_map(|name| {
                let stat = raw.exists(&format!("{}/{name}", self.path)).unwrap()?;
                Some((stat.czxid, name))
            })
            .collect();
        dated.sort();
        dated.into_iter().map(|(_, name)| name).collect()
    }

    /// Whose session a znode belongs to; `None` when there is no such znode.
    pub fn owner(&self, path: &str) -> Option<i64> {
        self.raw().exists(path).unwrap().map(|stat| stat.ephemeral_owner)
    }

    pub fn exists(&self, path: &str) -> bool {
        self.owner(path).is_some()
    }

    /// Deletes a znode as an operator would.
    pub fn delete(&self, path: &str) {
        self.raw().delete(path).unwrap();
    }

    /// Ends a client's session as the server does; its client is told a moment later.
    pub fn expire(&self, client: &Client) {
        let key = client.session().unwrap();
        expire_session(&self.server.hosts(), key.id(), &key.password()).unwrap();
    }

    /// What the session watches for data or existence, at the lock's path and below.
    pub fn watched_by(&self, session: i64) -> Vec<String> {
        let watches = self.server.watches().unwrap();
        let ours = watches.into_iter().filter(|(path, _)| path.starts_with(&self.path));
        ours.filter(|(_, by)| by.contains(&session)).map(|(path, _)| path).collect()
    }

    /// Nothing stands in the way: somebody who never came by acquires our lock.
    pub fn expect_free(&self) {
        let other = self.direct();
        self.lock(&other).acquire_within(PATIENCE).wait().unwrap().release().wait().unwrap();
    }

    /// Our lock's directory is empty in the end.
    pub fn expect_empty(&self) {
        eventually("no claim is left", || self.children().is_empty());
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

/// Waits until the client has learned that its session is over.
pub fn wait_told_of_expiry(client: &Client, session: i64) {
    eventually("the client has another session", || {
        client.state() == SessionState::Connected
            && client.session().is_some_and(|key| key.id() != session)
    });
}

/// Acquires our lock on a thread of its own.
pub fn acquire_in_background(lock: &Lock) -> JoinHandle<Result<Guard, LockError>> {
    let lock = lock.clone();
    std::thread::spawn(move || lock.acquire_within(PATIENCE).wait())
}

/// Drives an acquire by hand until `there` says so; it must not acquire before.
pub fn poll_until(acquiring: &mut Pending<Guard, LockError>, mut there: impl FnMut() -> bool) {
    let mut context = Context::from_waker(Waker::noop());
    eventually("an acquire stands where it is wanted", || {
        assert!(Pin::new(&mut *acquiring).poll(&mut context).is_pending());
        there()
    });
}
