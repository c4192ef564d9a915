//! Lock nodes that are still on the server when nobody holds or wants the lock any more.

use std::time::{Duration, Instant};

use zklock::Store;
use zklock::{Lock, Strategy};

use crate::trouble::Trouble;

/// How often to look again.
const PAUSE: Duration = Duration::from_millis(20);

/// Where to look for the nodes of one run, and how to know them.
pub struct Leftovers<'a> {
    pub store: &'a Store,
    pub lock: &'a Lock,
    pub strategy: Strategy,
    /// What the labels of all claims of this run begin with.
    pub tag: &'a str,
    /// Nobody else uses the servers: whatever is found is ours.
    pub alone: bool,
}

impl Leftovers<'_> {
    /// The nodes that are left when `timeout` is over; returns as soon as there are none.
    pub fn after(&self, timeout: Duration) -> Result<Vec<String>, Trouble> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = if self.alone { self.any()? } else { self.ours()? };
            if left.is_empty() || Instant::now() >= deadline {
                return Ok(left);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn ours(&self) -> Result<Vec<String>, Trouble> {
        let contenders = self.lock.contenders().wait()?.into_iter();
        let ours = contenders.filter(|contender| contender.label.starts_with(self.tag));
        Ok(ours.map(|contender| contender.path).collect())
    }

    fn any(&self) -> Result<Vec<String>, Trouble> {
        let path = self.lock.path();
        let Some(client) = self.store.client() else { return self.ours() };
        match self.strategy {
            Strategy::Queue => match client.children(path).wait() {
                Ok(listed) => {
                    Ok(listed.names.iter().map(|name| format!("{path}/{name}")).collect())
                }
                Err(error) if error.is_no_node() => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            },
            _ => Ok(client.exists(path).wait()?.map(|_| path.to_owned()).into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use zklock_testing::Server;

    use super::*;

    #[test]
    fn a_node_that_is_left_is_found_and_only_then() {
        let server = Server::start().expect("a server");
        let store = zklock::connect(&format!("zookeeper://{}", server.hosts()));
        let store = store.wait().expect("a client");
        for strategy in [Strategy::Poll, Strategy::Watch, Strategy::Queue] {
            let lock = store.lock(&format!("/left/{strategy}")).strategy(strategy);
            let lock = lock.label("run 1 thread 0");
            let left = |tag, alone| {
                let leftovers = Leftovers { store: &store, lock: &lock, strategy, tag, alone };
                leftovers.after(Duration::ZERO).expect("an answer")
            };
            let guard = lock.acquire().wait().expect("the lock");
            assert_eq!(left("run 1 ", false), [&*guard.claim_path()]);
            assert_eq!(left("run 2 ", true), [&*guard.claim_path()]);
            assert!(left("run 2 ", false).is_empty());
            guard.release().wait().expect("a release");
            assert!(left("run 1 ", false).is_empty() && left("run 1 ", true).is_empty());
        }
    }
}
