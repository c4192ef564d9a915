//! A client that contends for nothing: it makes the registers, deletes locks and breaks holds as an
//! operator would, and looks for what is left.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zklock::zookeeper::CreateMode;
use zklock::{Client, Code, Contender, Lock, LockError};

use crate::cluster::RECOVERS_WITHIN;
use crate::locks::{HANDOVER, LockName, PERMITS, REGISTERS, ROOT, Sort};
use crate::trouble::Trouble;

const SESSION: Duration = Duration::from_secs(60);
const OPERATION: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(20);
/// Contenders may make claims while theirs are deleted: then the directory stays, and it is all done
/// again, so many times at most.
const TRIES: usize = 20;
/// A holder that is frozen reads no order until its session is over.
const BREAKS_WITHIN: Duration = Duration::from_secs(10);

pub struct Operator {
    client: Client,
    /// All that it had: the log tells its deletions by them.
    sessions: Mutex<BTreeSet<i64>>,
}

impl Operator {
    /// # Errors
    /// Those of connecting.
    pub fn connect(hosts: &str) -> Result<Operator, Trouble> {
        let options = Client::options().session_timeout(SESSION).operation_timeout(OPERATION);
        let client = options.connect(hosts).wait().map_err(Trouble::new("connect"))?;
        Ok(Operator { client, sessions: Mutex::default() })
    }

    /// Makes the registers.
    ///
    /// # Errors
    /// Those of the requests.
    pub fn prepare(&self, locks: &[LockName]) -> Result<(), Trouble> {
        let registers = locks.iter().map(LockName::register);
        for path in [ROOT.to_owned(), REGISTERS.to_owned()].into_iter().chain(registers) {
            match self.client.create(&path, b"", CreateMode::Persistent).wait() {
                Ok(_) => {}
                Err(error) if error.is_node_exists() => {}
                Err(error) => return Err(Trouble::new("prepare")(error)),
            }
        }
        Ok(())
    }

    /// Deletes a lock with all its claims, one by one, whoever holds it. It may be left half done.
    ///
    /// # Errors
    /// When no server does it.
    pub fn delete_all(&self, lock: &LockName) -> zklock::Result<()> {
        self.note_session();
        let done = self.try_to_delete_all(lock);
        // It may have got a new one meanwhile.
        self.note_session();
        done
    }

    fn try_to_delete_all(&self, lock: &LockName) -> zklock::Result<()> {
        let path = lock.path();
        for _ in 0..TRIES {
            let claims = if lock.sort.is_one_node() { Vec::new() } else { self.children(&path)? };
            let below = match lock.sort {
                Sort::Election => self.children(&format!("{path}/{HANDOVER}"))?,
                _ => Vec::new(),
            };
            let deletions: Vec<_> =
                below.iter().chain(&claims).map(|claim| self.client.delete(claim, None)).collect();
            // Right behind them, so that hardly anyone comes in between.
            let last = self.client.delete(&path, None);
            for deletion in deletions {
                match deletion.wait() {
                    // Somebody has handed over meanwhile.
                    Err(error) if error.code() == Code::NOT_EMPTY => {}
                    Err(error) if !error.is_no_node() => return Err(error),
                    _ => {}
                }
            }
            match last.wait() {
                Err(error) if error.code() == Code::NOT_EMPTY => {}
                Err(error) if error.is_no_node() => return Ok(()),
                outcome => return outcome,
            }
        }
        Ok(())
    }

    fn note_session(&self) {
        self.sessions.lock().extend(self.client.session().map(|key| key.id()));
    }

    /// The sessions that it has deleted in.
    pub fn sessions(&self) -> BTreeSet<i64> {
        self.sessions.lock().clone()
    }

    /// The nodes of these locks that are still there when `timeout` is over; returns as soon as
    /// there are none.
    ///
    /// # Errors
    /// When no server tells.
    pub fn left(&self, locks: &[LockName], timeout: Duration) -> Result<Vec<String>, Trouble> {
        let deadline = Instant::now() + timeout;
        loop {
            let look: zklock::Result<Vec<Vec<String>>> =
                locks.iter().map(|lock| self.nodes(lock)).collect();
            let is_late = Instant::now() >= deadline;
            match look {
                Ok(left) if left.iter().all(Vec::is_empty) || is_late => return Ok(left.concat()),
                // The last fault may have cost this client its connection, too.
                Err(error) if Instant::now() >= deadline + RECOVERS_WITHIN => {
                    return Err(Trouble::new("look for nodes")(error));
                }
                _ => std::thread::sleep(NAP),
            }
        }
    }

    fn nodes(&self, lock: &LockName) -> zklock::Result<Vec<String>> {
        let path = lock.path();
        if lock.sort.is_one_node() {
            let stat = self.client.exists(&path).wait()?;
            return Ok(stat.map(|_| path).into_iter().collect());
        }
        let mut nodes = self.children(&path)?;
        let kept =
            |node: &String| node.rsplit('/').next().is_some_and(|name| lock.sort.keeps(name));
        nodes.retain(|node| !kept(node));
        if lock.sort == Sort::Election {
            nodes.extend(self.children(&format!("{path}/{HANDOVER}"))?);
        }
        Ok(nodes)
    }

    fn children(&self, path: &str) -> zklock::Result<Vec<String>> {
        match self.client.children(path).wait() {
            Ok(listed) => Ok(listed.names.iter().map(|name| format!("{path}/{name}")).collect()),
            Err(error) if error.is_no_node() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Those who hold, each the first of its lock; nobody where no server tells.
    pub fn holders(&self, locks: &[LockName]) -> Vec<Option<Contender>> {
        let asked: Vec<_> = locks.iter().map(|lock| self.lock(lock).holder()).collect();
        asked.into_iter().map(|holder| holder.wait().ok().flatten()).collect()
    }

    /// Breaks a hold, within a limit. Whether it is broken.
    ///
    /// # Errors
    /// When that is not known yet, or no server does it.
    pub fn break_hold(
        &self,
        lock: &LockName,
        holder: &Contender,
        grace: Duration,
    ) -> Result<bool, LockError> {
        self.note_session();
        let broken = self.lock(lock).break_hold(holder, "soak", grace).within(BREAKS_WITHIN).wait();
        self.note_session();
        broken
    }

    fn lock(&self, lock: &LockName) -> Lock {
        let path = lock.path();
        match lock.sort {
            Sort::ReadWrite => self.client.read_write(&path).read(),
            Sort::Semaphore => self.client.semaphore(&path, PERMITS).permit(),
            sort => self.client.lock(&path).strategy(sort.strategy()),
        }
    }
}
