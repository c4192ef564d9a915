//! What each test works on: a server, a proxy in front of it, a path of its own, and a lock of some strategy.

use std::ops::Deref;
use std::time::{Duration, Instant};

use test_support::{Stranger, TIMEOUT, eventually};
use zklock::{Client, Lock, Strategy};
use zklock_testing::wire::{CreateMode, Op, Ops};
use zklock_testing::{Builder, Rule};

const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// Runs a contract once for every strategy.
macro_rules! each_strategy {
    ($($(#[$note:meta])* fn $name:ident($strategy:ident) $body:block)+) => {$(
        $(#[$note])*
        mod $name {
            #[allow(unused_imports, reason = "not every contract needs all of them")]
            use super::*;

            fn contract($strategy: zklock::Strategy) $body

            #[test]
            fn poll() {
                contract(zklock::Strategy::Poll);
            }

            #[test]
            fn watch() {
                contract(zklock::Strategy::Watch);
            }

            #[test]
            fn queue() {
                contract(zklock::Strategy::Queue);
            }
        }
    )+};
}
pub(crate) use each_strategy;

/// A claim's znode, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub path: String,
    pub session: i64,
    pub czxid: i64,
}

pub struct Bench(test_support::Bench);

impl Deref for Bench {
    type Target = test_support::Bench;

    fn deref(&self) -> &test_support::Bench {
        &self.0
    }
}

impl Bench {
    pub fn shared() -> Bench {
        Bench(test_support::Bench::shared())
    }

    pub fn own() -> Bench {
        Bench(test_support::Bench::own())
    }

    pub fn with(builder: Builder) -> Bench {
        Bench(test_support::Bench::with(builder))
    }

    /// Makes the znode under which a queue's claims are made, so that the first create is a claim's.
    pub fn prepare(&self, strategy: Strategy) {
        if strategy == Strategy::Queue {
            match self.ask(|raw| raw.create(&self.path, b"")) {
                Err(error) if error.code() == Some(NODE_EXISTS) => {}
                made => drop(made.unwrap()),
            }
        }
    }

    pub fn lock(&self, client: &Client, strategy: Strategy) -> Lock {
        client.lock(&self.path).strategy(strategy)
    }

    /// Claims of ours on the server, oldest first.
    pub fn claims(&self, strategy: Strategy) -> Vec<Claim> {
        let paths = match strategy {
            Strategy::Queue => {
                let names = self.children();
                let is_digit = |it: char| it.is_ascii_digit();
                let ours =
                    names.iter().filter(|name| name.starts_with("zl-") && name.ends_with(is_digit));
                ours.map(|name| format!("{}/{name}", self.path)).collect()
            }
            _ => vec![self.path.clone()],
        };
        let mut claims: Vec<Claim> =
            paths.into_iter().filter_map(|path| self.claim(path)).collect();
        claims.sort_by_key(|claim| claim.czxid);
        claims
    }

    fn claim(&self, path: String) -> Option<Claim> {
        let stat = self.ask(|raw| raw.exists(&path)).unwrap()?;
        Some(Claim { path, session: stat.ephemeral_owner, czxid: stat.czxid })
    }

    /// Frames that ask for something at the lock's path: not those that keep the session alive.
    pub fn requests(&self) -> Rule {
        Rule::request(Ops::any()).path_prefix(&self.path)
    }

    /// The replies to those.
    pub fn replies(&self) -> Rule {
        Rule::reply(Ops::any()).path_prefix(&self.path)
    }

    /// What was asked for at the lock's path.
    pub fn asked(&self) -> Vec<Op> {
        let asked = self.requests();
        self.proxy.seen().iter().filter(|seen| asked.matches(seen)).map(|seen| seen.op).collect()
    }

    /// The requests of some work, done again until it takes less than 100 ms: holds and waits that last longer are
    /// looked at once more.
    pub fn asked_by(&self, work: impl Fn()) -> Vec<Op> {
        for _ in 0..100 {
            self.proxy.clear_seen();
            let began = Instant::now();
            work();
            let asked = self.asked();
            if began.elapsed() < Duration::from_millis(100) {
                return asked;
            }
        }
        panic!("it always takes longer than 100 ms");
    }

    /// The names under the lock's path.
    pub fn children(&self) -> Vec<String> {
        match self.ask(|raw| raw.children(&self.path)) {
            Err(error) if error.code() == Some(NO_NODE) => Vec::new(),
            names => names.unwrap(),
        }
    }

    /// A claim of somebody who does nothing but hold it.
    pub fn stranger(&self, strategy: Strategy) -> Stranger {
        match strategy {
            Strategy::Queue => {
                let mut raw = self.raw();
                // Called as those of the lock: after the transaction that made the directory.
                let directory = raw.exists(&self.path).unwrap().unwrap().czxid;
                let prefix = format!("{}/zl-{directory:x}-lock-", self.path);
                Stranger::claims(raw, &prefix, CreateMode::EphemeralSequential)
            }
            _ => self.stranger_at(&self.path),
        }
    }

    /// A claim by that very name of somebody who does nothing but hold it.
    pub fn stranger_at(&self, path: &str) -> Stranger {
        Stranger::claims(self.raw(), path, CreateMode::Ephemeral)
    }

    /// How many of the watches on claims of this lock are the session's.
    pub fn watches_of(&self, session: i64) -> usize {
        let watches = self.server.watches().unwrap();
        let ours = watches.iter().filter(|(path, _)| path.starts_with(&self.path));
        // A queue's directory is watched for as long as nobody touches it: that is no claim.
        let ours = ours.filter(|(path, _)| **path != self.path || self.owner(path) != Some(0));
        ours.map(|(_, sessions)| sessions.iter().filter(|id| **id == session).count()).sum()
    }

    /// Nothing of ours is left, and somebody else gets the lock.
    pub fn expect_free(&self, strategy: Strategy) {
        eventually("no claim is left", || self.claims(strategy).is_empty());
        let other = self.direct();
        let guard = self.lock(&other, strategy).acquire().within(TIMEOUT).wait().unwrap();
        guard.release().wait().unwrap();
    }
}
