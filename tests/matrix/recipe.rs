//! What is put through the matrix.

use zklock::{Client, Election, Interop, MultiLock, Owner, Strategy};
use zklock_testing::Rule;
use zklock_testing::wire::{Op, Ops};

use crate::contending::Contending;
use crate::step::Kind;

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
    /// So that all libraries wait: a claim is two znodes.
    ForAll,
    Read,
    Upgradeable,
    Write,
    /// Whose owner acquires it again at once.
    Owned,
    /// Together with another lock, in one transaction.
    Together,
    /// Whose holder leads.
    Elected,
    /// Two of a semaphore's three permits.
    Permits,
    /// Whose holders announce their releases, having waited before.
    Announced,
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
    Recipe::new("for-all", How::ForAll, Claims::Numbered, Waits::Watching),
    Recipe::new("read", How::Read, Claims::Numbered, Waits::Watching),
    Recipe::new("upgradeable", How::Upgradeable, Claims::Numbered, Waits::Watching),
    Recipe::new("write", How::Write, Claims::Numbered, Waits::Watching),
    Recipe::new("semaphore", How::Permits, Claims::Numbered, Waits::WatchingAll),
    Recipe::new("re-entrant", How::Owned, Claims::Numbered, Waits::Watching),
    Recipe::new("together", How::Together, Claims::Numbered, Waits::Watching),
    Recipe::new("election", How::Elected, Claims::Numbered, Waits::Watching),
    Recipe::new("announced", How::Announced, Claims::Numbered, Waits::Watching),
];

impl Recipe {
    const fn new(name: &'static str, how: How, claims: Claims, waits: Waits) -> Recipe {
        Recipe { name, how, claims, waits }
    }

    pub fn contending(&self, client: &Client, path: &str) -> Contending {
        Contending::Lock(match self.how {
            How::Alone(strategy) => client.lock(path).strategy(strategy),
            How::Announced => client.lock(path),
            How::ForAll => client.lock(path).interoperate(Interop::All),
            How::Read => client.read_write(path).read(),
            How::Upgradeable => client.read_write(path).upgradeable(),
            How::Write => client.read_write(path).write(),
            How::Permits => client.semaphore(path, 3).permits(2),
            How::Owned => client.lock(path).reentrant().owned_by(&Owner::new()),
            How::Together => {
                let paths = [Some(path.to_owned()), self.second(path)].into_iter().flatten();
                return Contending::Together(MultiLock::new(paths.map(|it| client.lock(&it))));
            }
            How::Elected => return Contending::Election(Election::new(client.lock(path))),
        })
    }

    /// Whether what holds has a claim to each of several locks.
    pub fn has_several(&self) -> bool {
        matches!(self.how, How::Together)
    }

    /// The path of the lock that is acquired with the one at that path.
    pub fn second(&self, path: &str) -> Option<String> {
        self.has_several().then(|| format!("{path}-too"))
    }

    /// Whether most of its steps are those of another recipe.
    pub fn is_variant(&self) -> bool {
        !matches!(self.how, How::Alone(_))
    }

    /// Whether its requests are those of another recipe, but in a few operations.
    pub fn is_twin(&self) -> bool {
        matches!(self.how, How::Upgradeable | How::Owned | How::Elected | How::Announced)
    }

    /// Whether it is tried for.
    pub fn is_tried(&self) -> bool {
        !matches!(self.how, How::Elected)
    }

    /// Whether a client may watch the directory for as long as it knows what happens there.
    pub fn watches_the_directory(&self) -> bool {
        let is_by_number_alone = matches!(
            self.how,
            How::Alone(_) | How::Owned | How::Together | How::Elected | How::Announced
        );
        is_by_number_alone && self.is_numbered()
    }

    /// Whether who has waited before announces releases.
    pub fn is_announced(&self) -> bool {
        matches!(self.how, How::Announced)
    }

    pub fn is_reentrant(&self) -> bool {
        matches!(self.how, How::Owned)
    }

    pub fn is_upgradeable(&self) -> bool {
        matches!(self.how, How::Upgradeable)
    }

    pub fn is_a_writers(&self) -> bool {
        matches!(self.how, How::Write)
    }

    /// Whether what is held may be turned into something else, by a claim in the place of another.
    pub fn may_change(&self) -> bool {
        self.is_upgradeable() || self.is_a_writers()
    }

    /// Whether a hold can be broken, of those that are not variants.
    pub fn is_broken(&self) -> bool {
        !self.is_variant() || self.is_upgradeable()
    }

    /// Whether an earlier claim of that name keeps it out.
    pub fn is_kept_out_by(&self, path: &str) -> bool {
        let is_readers = path.contains("-__READ__");
        match self.how {
            How::Read => !is_readers,
            How::Upgradeable => !is_readers || path.contains("-up-"),
            _ => true,
        }
    }

    /// What the name of a claim that keeps it out has after its directory's transaction.
    pub fn mark(&self) -> &'static str {
        match self.how {
            How::Read | How::Upgradeable => "__WRIT__",
            How::Write => "__READ__",
            How::Permits => "permits-2-",
            _ => "lock-",
        }
    }

    /// How many znodes a claim is.
    pub fn znodes(&self) -> usize {
        if matches!(self.how, How::ForAll) { 2 } else { 1 }
    }

    /// Picks the frames that make claims, of those that `rule` picks.
    pub fn creates(&self, rule: impl Fn(Ops) -> Rule) -> Rule {
        let creates = [Op::Create, Op::Create2];
        match self.how {
            How::ForAll | How::Together => rule(Op::Multi.into()).containing(creates),
            _ => rule(creates.into()),
        }
    }

    /// Picks the frames that delete claims as a whole.
    pub fn deletes(&self, rule: impl Fn(Ops) -> Rule) -> Rule {
        match self.deletes_by_transactions() {
            false => rule(Op::Delete.into()),
            true => rule(Op::Multi.into()).containing(Op::Delete),
        }
    }

    /// Whether more than the znode's deletion is asked for at once; each may be deleted by itself as well.
    pub fn deletes_by_transactions(&self) -> bool {
        matches!(self.how, How::ForAll | How::Announced)
    }

    /// The kind of those.
    pub fn is_deletion(&self, kind: Kind) -> bool {
        kind == Kind::Delete || kind == Kind::Multi && self.deletes_by_transactions()
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
