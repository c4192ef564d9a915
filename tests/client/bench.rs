//! What the tests work on, and waiting that ends.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zklock::{Client, ClientOptions, CreateMode, SessionState, SessionStates};
pub use zklock_testing::eventually;
use zklock_testing::{Proxy, Server};

/// How long an event may take that is certain to come.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The session timeout where it does not matter: no pause of a busy machine comes near it. A client
/// that comes back while its session is being ended can wait for two thirds of it, as the server
/// then lets it in and answers nothing.
pub const SESSION: Duration = Duration::from_secs(9);
/// The session timeout where a session outlives a server: the longest that servers grant.
pub const LONG: Duration = Duration::from_secs(60);

/// The server of the tests that do it no harm.
static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start().unwrap());
static PATHS: AtomicUsize = AtomicUsize::new(0);

pub fn shared() -> &'static Server {
    &SHARED
}

/// How clients of these tests connect, where nothing else matters.
pub fn options() -> ClientOptions {
    Client::options().session_timeout(SESSION).connect_timeout(PATIENCE).operation_timeout(PATIENCE)
}

pub fn connect(server: &Server) -> Client {
    options().connect(&server.hosts()).wait().unwrap()
}

/// A client of the shared server, and a persistent znode there for this test alone.
pub fn alone() -> (Client, String) {
    let client = connect(shared());
    let path = format!("/test-{}", PATHS.fetch_add(1, Ordering::Relaxed));
    client.create(&path, b"", CreateMode::Persistent).wait().unwrap();
    (client, path)
}

/// A server of one test alone, and a proxy in front of it.
pub struct Bench {
    /// Goes first: its clients see it go, not the server.
    pub proxy: Proxy,
    pub server: Server,
}

impl Bench {
    pub fn start() -> Bench {
        let server = Server::start().unwrap();
        let proxy = Proxy::start(server.addr()).unwrap();
        Bench { proxy, server }
    }

    /// A client that the proxy stands before.
    pub fn through_proxy(&self) -> Client {
        options().connect(&self.proxy.hosts()).wait().unwrap()
    }

    /// A client that the proxy knows nothing of.
    pub fn direct(&self) -> Client {
        connect(&self.server)
    }
}

/// The states that are told, up to the one that is wanted.
pub fn states_until(states: &mut SessionStates, wanted: SessionState) -> Vec<SessionState> {
    let mut told = Vec::new();
    while told.last() != Some(&wanted) {
        match states.wait_timeout(PATIENCE) {
            Ok(Some(state)) => told.push(state),
            other => panic!("waited for {wanted:?}; told {told:?}, then {other:?}"),
        }
    }
    told
}

/// The id of the client's session.
pub fn session_id(client: &Client) -> i64 {
    client.session().unwrap().id()
}

/// Ends the client's session behind its back.
pub fn expire(server: &Server, client: &Client) {
    let session = client.session().unwrap();
    zklock_testing::expire_session(&server.hosts(), session.id(), &session.password()).unwrap();
}
