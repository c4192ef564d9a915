//! What a store of leases asks of where its claims are kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::lock::{Contender, Kind, Revocation};

/// Where claims are kept, and the sessions that they live on. Each function is one step: it is done as a whole or not
/// at all, and all clients see all steps in one order. It may block for some milliseconds, where others are at it.
///
/// A session is over when its time has passed by the database's clock, in whatever step that is found first. It begins
/// once: a step that comes late finds it over, and so do all after that.
pub(crate) trait Database: Send + 'static {
    /// Begins a session that lasts for so long.
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), Trouble>;

    /// Has a session last for so long from now on. `false`: it is over.
    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, Trouble>;

    /// Ends a session, and its claims.
    fn end(&mut self, session: Uuid) -> Result<(), Trouble>;

    /// Makes a claim, unless that is there already; where it is `unless_blocked`, and is to wait, it makes none.
    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, Trouble>;

    /// Deletes a claim on a lock, whose path is empty where it is not known. `false`: there is none.
    fn release(&mut self, claim: Uuid, lock: &str) -> Result<bool, Trouble>;

    /// The holders of a lock.
    fn front(&mut self, lock: &str) -> Result<Front, Trouble>;

    /// Whose claim keeps out one of that kind and number: the nearest before it.
    fn ahead(&mut self, lock: &str, number: i64, kind: Kind) -> Result<Option<Contender>, Trouble>;

    /// The first claims on a lock, up to that number.
    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, Trouble>;

    /// Writes what is wanted of a holder. `false`: that claim does not hold.
    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, Trouble>;

    /// Whether there is a claim with that number.
    fn is_there(&mut self, lock: &str, number: i64) -> Result<bool, Trouble>;

    /// What others want of a session's claims; `None`: it is over.
    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, Trouble>;

    /// The numbers and ids of a session's claims; `None`: it is over.
    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, Trouble>;

    /// How many permits a semaphore has, if that is known.
    fn limit(&mut self, lock: &str) -> Result<Option<u32>, Trouble>;

    /// Sets that.
    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), Trouble>;

    /// Makes all numbers from now on larger than `above`. It can be repeated.
    fn raise_tokens(&mut self, above: i64) -> Result<(), Trouble>;

    /// What others may have changed since the last time that this was asked. Costs next to nothing.
    fn changes(&mut self) -> Result<Changes, Trouble>;

    /// Ends the sessions whose time has passed; gives how long it takes until that of the next one has.
    fn sweep(&mut self) -> Result<Option<Duration>, Trouble>;

    /// For how long nobody comes to hold, because the server may have forgotten who does. `None`: somebody can.
    fn quiet(&mut self) -> Result<Option<Duration>, Trouble> {
        Ok(None)
    }

    /// Gives a session of a lease from now on to each claim that has none, because somebody has deleted the session's row:
    /// its holder may live, and renew it.
    fn adopt_orphans(&mut self) -> Result<(), Trouble> {
        Ok(())
    }

    /// How soon it is looked for changes after one, where somebody waits for them.
    fn shortest_look(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// And how seldom where none have come.
    fn longest_look(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// And where locks are held, and nobody waits: then others may want them.
    fn held_look(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Whether [`changes`](Database::changes) tells changes that concern no claim of this client's session, too.
    fn tells_what_concerns_others(&self) -> bool {
        true
    }

    /// Has that be called at a change that others make, where the database can say so, until it gives `false`.
    fn announce(&mut self, _changed: Box<dyn Fn() -> bool + Send>) {}
}

/// What others may have changed.
#[derive(Clone, Debug)]
pub(crate) enum Changes {
    None,
    /// Claims of this client on these locks may hold by now. Nothing else that concerns it has changed.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only Redis names the locks"))]
    Locks(Vec<Arc<str>>),
    Any,
}

/// A claim that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Nobody else's.
    pub(crate) id: Uuid,
    pub(crate) session: Uuid,
    pub(crate) lock: String,
    pub(crate) kind: Kind,
    /// How many permits a semaphore has, unless that is known.
    pub(crate) limit: u32,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) thread: String,
    pub(crate) label: String,
}

/// What became of a claim.
#[derive(Clone, Debug)]
pub(crate) enum Claimed {
    Holds {
        number: i64,
    },
    Waits {
        number: i64,
        ahead: Option<Contender>,
    },
    /// It would have to wait, and was not made.
    Blocked(Option<Contender>),
}

/// The first claims on a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// Those that hold.
    pub(crate) holding: Vec<i64>,
    /// The first that waits.
    pub(crate) next: Option<i64>,
    /// How many permits there are, where that is known.
    pub(crate) limit: Option<u32>,
}

/// What others want of the claims of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wants {
    /// How many claims it has.
    pub(crate) claims: usize,
    pub(crate) revocations: Vec<(i64, Revocation)>,
}

/// Why a step was not done, or may not have been.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) what: What,
    /// In words.
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Others are at it: nothing was done.
    Busy,
    /// It may have been done.
    Unknown,
    /// The session is over: nothing was done.
    SessionOver,
    /// A semaphore has too few permits: nothing was done.
    TooFewPermits,
    /// A permission is missing: nothing was done.
    NotPermitted,
    /// There can be no lock there: nothing was done.
    Unusable,
    /// It has failed: nothing was done.
    Failed,
}

impl Trouble {
    pub(crate) fn new(what: What, why: impl Into<String>) -> Trouble {
        Trouble { what, why: why.into() }
    }

    pub(crate) fn is(&self, what: What) -> bool {
        self.what == what
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
