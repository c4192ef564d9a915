//! Reads children of a lock's directory one after the other, to find those that are claims.

use std::collections::VecDeque;

use super::lookup::READS;
use super::memory::PathMemory;
use super::name;
use super::spec::Spec;
use crate::client::{TrustedSession, Znode};
use crate::error::Result;
use crate::runtime::Pending;
use crate::znode::Stat;

type Read = Pending<Znode>;

/// A child that a session owns.
pub(super) struct Claimed<'n> {
    pub(super) name: &'n str,
    pub(super) data: Vec<u8>,
    pub(super) stat: Stat,
}

/// Where one child is no claim there may be thousands: they are remembered, so that the next scan does
/// not read them, and from the first on many are read at once.
pub(super) struct Scan<'s, 'n, I> {
    spec: &'s Spec,
    session: &'s TrustedSession,
    /// The transaction that made the directory.
    directory: i64,
    children: I,
    reads: VecDeque<(&'n str, Read)>,
    width: usize,
    /// A child was gone by the time that it was read.
    pub(super) missed_one: bool,
}

impl<'s, 'n, I: Iterator<Item = &'n str>> Scan<'s, 'n, I> {
    pub(super) fn new(
        spec: &'s Spec,
        session: &'s TrustedSession,
        directory: i64,
        children: I,
    ) -> Scan<'s, 'n, I> {
        let reads = VecDeque::new();
        Scan { spec, session, directory, children, reads, width: 1, missed_one: false }
    }

    /// Many are read at once from the first on.
    pub(super) fn wide(mut self) -> Self {
        self.width = READS;
        self
    }

    /// The next child that is there and that a session owns.
    pub(super) async fn next(&mut self) -> Result<Option<Claimed<'n>>> {
        let memory: &PathMemory = &self.spec.memory;
        loop {
            while self.reads.len() < self.width {
                let Some(child) = self.children.next() else { break };
                if !memory.is_data(self.directory, child) {
                    let read = self.session.get(&name::join(&self.spec.path, child));
                    self.reads.push_back((child, read));
                }
            }
            let Some((name, read)) = self.reads.pop_front() else { return Ok(None) };
            match read.await {
                Ok(Znode { data, stat }) if stat.is_ephemeral() => {
                    return Ok(Some(Claimed { name, data, stat }));
                }
                Ok(_) => {
                    memory.saw_data(self.directory, name);
                    self.width = READS;
                }
                Err(error) if error.is_no_node() => self.missed_one = true,
                Err(error) => return Err(error),
            }
        }
    }
}
