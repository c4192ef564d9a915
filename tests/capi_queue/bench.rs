//! What each test works on: a server, a proxy in front of it, a queue's path of its own.

use std::ops::Deref;
use std::sync::Arc;

use test_support::{shared, unused_path};
use zklock_testing::Server;

use crate::program::Tool;

pub struct Bench(test_support::Bench);

impl Deref for Bench {
    type Target = test_support::Bench;

    fn deref(&self) -> &test_support::Bench {
        &self.0
    }
}

impl Bench {
    /// On the server that all tests share which leave it alone.
    pub fn shared() -> Bench {
        Bench::on(Arc::clone(shared()))
    }

    /// On a server of the test's own.
    pub fn own() -> Bench {
        Bench::with(Server::start().unwrap())
    }

    pub fn with(server: Server) -> Bench {
        Bench::on(Arc::new(server))
    }

    fn on(server: Arc<Server>) -> Bench {
        Bench(test_support::Bench::at(server, &unused_path()))
    }

    /// A program that the proxy stands before.
    pub fn tool(&self) -> Tool {
        Tool::start(&self.proxy.hosts(), &self.path)
    }

    /// A program that the proxy knows nothing of.
    pub fn direct(&self) -> Tool {
        Tool::start(&self.server.hosts(), &self.path)
    }
}
