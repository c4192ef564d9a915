//! How clients connect, where nothing else matters, and what happens to their sessions.

use std::time::Duration;

use zklock::zookeeper::{SessionState, SessionStates};
use zklock::{Client, ClientOptions};
use zklock_testing::{Server, eventually};

/// How long an event may take that is certain to come, on a machine that is busy with much else.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The session timeout where it does not matter: no pause of a busy machine comes near it. A client
/// that comes back while its session is being ended can wait for two thirds of it, as the server
/// then lets it in and answers nothing.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(12);
/// The session timeout where a session outlives a server: the longest that servers grant.
pub const LONGEST_SESSION: Duration = Duration::from_secs(60);

/// How clients connect, where nothing else matters.
pub fn options() -> ClientOptions {
    let options = Client::options().session_timeout(SESSION_TIMEOUT);
    options.operation_timeout(TIMEOUT).connect_timeout(TIMEOUT)
}

/// A client of the server, with nothing between them.
pub fn connect(server: &Server) -> Client {
    options().connect(&server.hosts()).wait().unwrap()
}

/// The id of the client's session.
pub fn session_id(client: &Client) -> i64 {
    client.session().unwrap().id()
}

/// Ends the client's session as the server does; the client learns of it a moment later.
pub fn expire(server: &Server, client: &Client) {
    let session = client.session().unwrap();
    zklock_testing::expire_session(&server.hosts(), session.id(), &session.password()).unwrap();
}

/// Waits until the client has learned that this session is over, and has another.
pub fn wait_for_another_session(client: &Client, session: i64) {
    eventually("the client has another session", || {
        client.state() == SessionState::Connected
            && client.session().is_some_and(|key| key.id() != session)
    });
}

/// The states that are reported, up to the one that is wanted.
pub fn states_until(states: &mut SessionStates, wanted: SessionState) -> Vec<SessionState> {
    let mut reported = Vec::new();
    while reported.last() != Some(&wanted) {
        match states.wait_timeout(TIMEOUT) {
            Ok(Some(state)) => reported.push(state),
            other => panic!("waited for {wanted:?}; got {reported:?}, then {other:?}"),
        }
    }
    reported
}
