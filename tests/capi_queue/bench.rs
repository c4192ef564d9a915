//! What each test works on: a server, a proxy in front of it, a queue's path of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub use zklock_testing::eventually;
use zklock_testing::wire::RawClient;
use zklock_testing::{Proxy, Server};

use crate::program::Tool;

/// How long an event may take that is certain to come.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    pub server: Arc<Server>,
    pub path: String,
}

impl Bench {
    /// On the server that all tests share which leave it alone.
    pub fn shared() -> Bench {
        static SERVER: LazyLock<Arc<Server>> = LazyLock::new(|| Arc::new(Server::start().unwrap()));
        Bench::on(Arc::clone(&SERVER))
    }

    /// On a server of the test's own.
    pub fn own() -> Bench {
        Bench::with(Server::start().unwrap())
    }

    pub fn with(server: Server) -> Bench {
        Bench::on(Arc::new(server))
    }

    fn on(server: Arc<Server>) -> Bench {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let path = format!("/queue-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Bench { proxy: Proxy::start(server.addr()).unwrap(), server, path }
    }

    /// A program that the proxy stands before.
    pub fn tool(&self) -> Tool {
        Tool::start(&self.proxy.hosts(), &self.path)
    }

    /// A program that the proxy knows nothing of.
    pub fn direct(&self) -> Tool {
        Tool::start(&self.server.hosts(), &self.path)
    }

    /// A client of the barest sort.
    pub fn raw(&self) -> RawClient {
        RawClient::connect(self.server.addr(), Duration::from_secs(60)).unwrap()
    }

    /// The names under the queue's path.
    pub fn children(&self) -> Vec<String> {
        let mut names = self.raw().children(&self.path).unwrap();
        names.sort();
        names
    }
}
