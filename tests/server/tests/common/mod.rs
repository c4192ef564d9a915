//! A server with a proxy in front of it, and the clients of both.

use std::time::Duration;

use zklock_testing::wire::RawClient;
use zklock_testing::{Proxy, Server};

/// The session timeout that clients ask for where it does not matter.
pub const SESSION: Duration = Duration::from_secs(10);
/// How long an event may take that is certain to come.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What each of these tests works on.
pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    /// The server behind the proxy.
    pub server: Server,
}

impl Bench {
    /// A server of its own for each test.
    pub fn start() -> Bench {
        let server = Server::start().unwrap();
        let proxy = Proxy::start(server.addr()).unwrap();
        Bench { proxy, server }
    }

    /// A client that the proxy stands before.
    pub fn through_proxy(&self) -> RawClient {
        RawClient::connect(self.proxy.addr(), SESSION).unwrap()
    }

    /// A client that the proxy knows nothing of.
    #[allow(dead_code, reason = "not every test program uses it")]
    pub fn direct(&self) -> RawClient {
        RawClient::connect(self.server.addr(), SESSION).unwrap()
    }
}
