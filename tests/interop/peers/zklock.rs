//! A peer with a lock of zklock.

mod lines;

use lines::{Arguments, Peer, Result};
use zklock::{Client, Guard, Interop, Lock};

struct Ours {
    client: Client,
    lock: Lock,
    counter: String,
    guard: Option<Guard>,
}

impl Peer for Ours {
    fn acquire(&mut self) -> Result<()> {
        self.guard = Some(self.lock.acquire().wait()?);
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        Ok(self.guard.take().ok_or("not held")?.release().wait()?)
    }

    fn is_held(&mut self) -> Result<bool> {
        Ok(self.guard.as_ref().is_some_and(|guard| !guard.is_lost()))
    }

    fn read_counter(&mut self) -> Result<Vec<u8>> {
        Ok(self.client.get(&self.counter).wait()?.data)
    }

    fn write_counter(&mut self, data: &[u8]) -> Result<()> {
        self.client.set(&self.counter, data, None).wait()?;
        Ok(())
    }
}

fn main() -> Result<()> {
    let Arguments { hosts, path, counter, session_timeout, lock } = Arguments::read()?;
    let client = Client::options().session_timeout(session_timeout).connect(&hosts).wait()?;
    let lock = match lock.as_str() {
        "lock" => client.lock(&path),
        "all" => client.lock(&path).interoperate(Interop::All),
        "read" => client.read_write(&path).read(),
        "write" => client.read_write(&path).write(),
        other => return Err(format!("no such lock: {other}").into()),
    };
    lines::serve("zklock", env!("CARGO_PKG_VERSION"), Ours { client, lock, counter, guard: None })
}
