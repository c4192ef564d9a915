//! What is put through the matrix.

use zklock::{Client, Lock, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{Op, Ops};

/// A way to contend for a lock, and how that looks on the server.
pub struct Recipe {
    pub name: &'static str,
    how: How,
    pub claims: Claims,
    pub waits: Waits,
}

/// What lock it is.
#[derive(Clone, Copy)]
enum How {
    Alone(Strategy),
    Read,
    Write,
    /// Two of a semaphore's three permits.
    Permits,
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
    /// It watches what claims are in.
    WatchingAll,
}

pub const RECIPES: &[Recipe] = &[
    Recipe::new("poll", How::Alone(Strategy::Poll), Claims::AtThePath, Waits::Asking),
    Recipe::new("watch", How::Alone(Strategy::Watch), Claims::AtThePath, Waits::Watching),
    Recipe::new("queue", How::Alone(Strategy::Queue), Claims::Numbered, Waits::Watching),
    Recipe::new("read", How::Read, Claims::Numbered, Waits::Watching),
    Recipe::new("write", How::Write, Claims::Numbered, Waits::Watching),
    Recipe::new("semaphore", How::Permits, Claims::Numbered, Waits::WatchingAll),
];

impl Recipe {
    const fn new(name: &'static str, how: How, claims: Claims, waits: Waits) -> Recipe {
        Recipe { name, how, claims, waits }
    }

    pub fn lock(&self, client: &Client, path: &str) -> Lock {
        match self.how {
            How::Alone(strategy) => client.lock(path).strategy(strategy),
            How::Read => client.read_write(path).read(),
            How::Write => client.read_write(path).write(),
            How::Permits => client.semaphore(path, 3).permits(2),
        }
    }

    /// Whether others can hold at the same time. Most steps of such a recipe are those of a queue.
    pub fn is_shared(&self) -> bool {
        !matches!(self.how, How::Alone(_))
    }

    /// Whether an earlier claim of that name keeps it out.
    pub fn is_kept_out_by(&self, path: &str) -> bool {
        !(matches!(self.how, How::Read) && path.contains("-__READ__"))
    }

    /// What the name of a claim that keeps it out has after its directory's transaction.
    pub fn mark(&self) -> &'static str {
        match self.how {
            How::Alone(_) => "lock-",
            How::Read => "__WRIT__",
            How::Write => "__READ__",
            How::Permits => "permits-2-",
        }
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
        self.waits != Waits::Asking
    }

    /// The replies that tell a contender to wait.
    pub fn refusals(&self, directory: &str) -> Rule {
        match self.waits {
            Waits::Asking => Rule::reply(Ops::creates()).error(-110),
            Waits::Watching => Rule::reply(Op::GetData).watching(true).error(0),
            Waits::WatchingAll => Rule::reply(Ops::lists()).watching(true).error(0),
        }
        .path_prefix(directory)
    }
}
