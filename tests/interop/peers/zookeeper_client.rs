//! A peer with a lock of the crate zookeeper-client, which names its claims as Curator does.

mod lines;

use lines::{Arguments, Peer, Result};
use smol::block_on;
use zookeeper_client::{
    Acls, Client, CreateMode, LockOptions, LockPrefix, OwnedLockClient, SessionState,
};

struct Theirs {
    client: Client,
    path: String,
    counter: String,
    held: Option<OwnedLockClient>,
}

impl Peer for Theirs {
    fn acquire(&mut self) -> Result<()> {
        let prefix = LockPrefix::new_curator(&self.path, "lock-")?;
        let parents = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
        self.held = Some(block_on(self.client.lock(prefix, b"", options))?.into_owned());
        Ok(())
    }

    /// The crate releases by the drop, and says nothing of when that has happened.
    fn release(&mut self) -> Result<()> {
        self.held.take().map(drop).ok_or_else(|| "not held".into())
    }

    fn is_held(&mut self) -> Result<bool> {
        let is_over = matches!(self.client.state(), SessionState::Expired | SessionState::Closed);
        Ok(self.held.is_some() && !is_over)
    }

    fn read_counter(&mut self) -> Result<Vec<u8>> {
        Ok(block_on(self.client.get_data(&self.counter))?.0)
    }

    fn write_counter(&mut self, data: &[u8]) -> Result<()> {
        block_on(self.client.set_data(&self.counter, data, None))?;
        Ok(())
    }
}

fn main() -> Result<()> {
    let Arguments { hosts, path, counter, session_timeout, lock } = Arguments::read()?;
    if lock != "lock" {
        return Err(format!("no such lock: {lock}").into());
    }
    let connector = Client::connector().with_session_timeout(session_timeout);
    let client = block_on(connector.connect(&hosts))?;
    lines::serve("zookeeper-client", version(), Theirs { client, path, counter, held: None })
}

/// The one that it was built with.
fn version() -> &'static str {
    let locked = include_str!("../../../Cargo.lock");
    let (_, rest) =
        locked.split_once("name = \"zookeeper-client\"\nversion = \"").unwrap_or_default();
    rest.split('"').next().unwrap_or_default()
}
