//! Reads children of a lock's directory one after the other, to find those that are claims.

use std::collections::VecDeque;

use crate::client::{TrustedSession, Znode};
use crate::error::Result;
use crate::runtime::Pending;
use crate::zookeeper::claim::lookup::READS;
use crate::zookeeper::name;
use crate::zookeeper::refusal::found;
use crate::zookeeper::spec::LockSpec;

type Read = Pending<Znode>;

pub(crate) struct Claimed<'n> {
    pub(crate) name: &'n str,
    pub(crate) znode: Znode,
}

/// Where one child is no claim there may be thousands: they are remembered, so that the next scan does
/// not read them, and from the first on many are read at once.
pub(crate) struct Scan<'s, 'n, I> {
    lock: &'s LockSpec,
    session: &'s TrustedSession,
    directory: i64,
    children: I,
    reads: VecDeque<(&'n str, Read)>,
    width: usize,
    pub(crate) missed_one: bool,
}

impl<'s, 'n, I: Iterator<Item = &'n str>> Scan<'s, 'n, I> {
    pub(crate) fn new(
        lock: &'s LockSpec,
        session: &'s TrustedSession,
        directory: i64,
        children: I,
    ) -> Scan<'s, 'n, I> {
        let reads = VecDeque::new();
        Scan { lock, session, directory, children, reads, width: 1, missed_one: false }
    }

    pub(crate) fn wide(mut self) -> Self {
        self.width = READS;
        self
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Claimed<'n>>> {
        let memory = &self.lock.memory;
        loop {
            while self.reads.len() < self.width {
                let Some(child) = self.children.next() else { break };
                if !memory.is_data(self.directory, child) {
                    let read = self.session.get(&name::join(&self.lock.path, child));
                    self.reads.push_back((child, read));
                }
            }
            let Some((name, read)) = self.reads.pop_front() else { return Ok(None) };
            match found(read.await)? {
                Some(znode) if znode.stat.is_ephemeral() => {
                    return Ok(Some(Claimed { name, znode }));
                }
                Some(_) => {
                    memory.saw_data(self.directory, name);
                    self.width = READS;
                }
                None => self.missed_one = true,
            }
        }
    }
}
