//! What is put through the matrix.

use zklock::{Client, Lock, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{Op, Ops};

/// A way to contend for a lock, and how that looks on the server.
pub struct Recipe {
    pub name: &'static str,
    strategy: Strategy,
    pub claims: Claims,
    pub waits: Waits,
}

/// Where claims are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    /// The lock's path is the claim.
    AtThePath,
    /// Claims are numbered children of the lock's path, and the lowest number holds.
    Numbered,
}

/// How a contender waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It asks again and again.
    Asking,
    /// It watches a claim.
    Watching,
}

pub const RECIPES: &[Recipe] = &[
    Recipe::new("poll", Strategy::Poll, Claims::AtThePath, Waits::Asking),
    Recipe::new("watch", Strategy::Watch, Claims::AtThePath, Waits::Watching),
    Recipe::new("queue", Strategy::Queue, Claims::Numbered, Waits::Watching),
];

impl Recipe {
    const fn new(name: &'static str, strategy: Strategy, claims: Claims, waits: Waits) -> Recipe {
        Recipe { name, strategy, claims, waits }
    }

    pub fn lock(&self, client: &Client, path: &str) -> Lock {
        client.lock(path).strategy(self.strategy)
    }

    /// What claims to the lock at that path are in.
    pub fn directory_of<'a>(&self, path: &'a str) -> &'a str {
        match self.claims {
            Claims::AtThePath => path.rsplit_once('/').map_or(path, |(above, _)| above),
            Claims::Numbered => path,
        }
    }

    pub fn is_numbered(&self) -> bool {
        self.claims == Claims::Numbered
    }

    pub fn watches(&self) -> bool {
        self.waits == Waits::Watching
    }

    /// The replies that tell a contender to wait.
    pub fn refusals(&self, directory: &str) -> Rule {
        match self.waits {
            Waits::Asking => Rule::reply(Ops::creates()).error(-110),
            Waits::Watching => Rule::reply(Op::GetData).watching(true).error(0),
        }
        .path_prefix(directory)
    }
}
