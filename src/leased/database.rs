//! The database under a store of leases: it keeps the claims and their sessions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::lock::{Contender, Kind, Revocation};

/// Keeps claims, and the sessions that they live on. Each function is one step: it is atomic, and all clients see all steps
/// in the same order. It may block for some milliseconds while other steps run.
///
/// A session is over when its time has passed by the database's clock. The first step that finds this ends it. A session
/// begins only once: late steps find it over.
pub(crate) trait Database: Send + 'static {
    /// Begins a session that lasts for `lease`.
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), StepError>;

    /// Lets a session last for `lease` from now on. `false`: it is over.
    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, StepError>;

    /// Ends a session, and its claims.
    fn end(&mut self, session: Uuid) -> Result<(), StepError>;

    /// Makes a claim, unless it exists. With `unless_blocked`, it makes no claim that would have to wait.
    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, StepError>;

    /// Deletes a claim. `lock` is empty where the path is not known. `false`: there is no such claim.
    fn release(&mut self, claim: Uuid, lock: &str) -> Result<bool, StepError>;

    /// The holders of a lock.
    fn front(&mut self, lock: &str) -> Result<Front, StepError>;

    /// The nearest claim before that number that keeps a claim of that kind waiting.
    fn ahead(
        &mut self,
        lock: &str,
        number: i64,
        kind: Kind,
    ) -> Result<Option<Contender>, StepError>;

    /// The first claims on a lock, at most `number` of them.
    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, StepError>;

    /// Asks a holder to release, or orders it to. `false`: that claim does not hold.
    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, StepError>;

    /// Whether there is a claim with that number.
    fn is_there(&mut self, lock: &str, number: i64) -> Result<bool, StepError>;

    /// The requests and orders to release a session's claims. `None`: it is over.
    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, StepError>;

    /// The numbers and ids of a session's claims. `None`: it is over.
    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, StepError>;

    /// How many permits a semaphore has. `None`: not known.
    fn limit(&mut self, lock: &str) -> Result<Option<u32>, StepError>;

    /// Sets how many permits a semaphore has.
    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), StepError>;

    /// Makes all numbers from now on larger than `above`. It can be repeated.
    fn raise_tokens(&mut self, above: i64) -> Result<(), StepError>;

    /// The changes that others may have made since the last call. Costs next to nothing.
    fn changes(&mut self) -> Result<Changes, StepError>;

    /// Whether the changes of the last such call may concern that lock.
    fn may_concern(&self, _lock: &str) -> bool {
        true
    }

    /// Ends the sessions that are over by the clock.
    fn sweep(&mut self) -> Result<Swept, StepError>;

    /// For how long nobody may acquire a lock, because the server may have forgotten its holder. `None`: all may.
    fn quiet(&mut self) -> Result<Option<Duration>, StepError> {
        Ok(None)
    }

    /// Repairs what no step leaves. A claim without a session, whose row somebody has deleted, gets a new one that lasts for
    /// one lease: its holder may live, and renew it. A session lasts for two leases at the most: if the clock was set back,
    /// one whose client is dead would last for as much longer.
    fn repair(&mut self) -> Result<(), StepError> {
        Ok(())
    }

    /// The pause before the next look for changes, after a change, while somebody waits.
    fn shortest_look(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// The longest pause between two looks while somebody waits and nothing changes.
    fn longest_look(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// The pause while locks are held and nobody here waits: others may want the locks.
    fn held_look(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Whether [`changes`](Database::changes) also reports changes that concern no claim of this client.
    fn tells_what_concerns_others(&self) -> bool {
        true
    }

    /// Calls `changed` at each change that others make, until it returns `false`. Only databases that notify can do so.
    fn announce(&mut self, _changed: Box<dyn Fn() -> bool + Send>) {}
}

/// The changes that others may have made.
#[derive(Clone, Debug)]
pub(crate) enum Changes {
    None,
    /// Claims of this client on these locks may hold by now. Nothing else that concerns it has changed.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only Redis names the locks"))]
    Locks(Vec<Arc<str>>),
    Any,
}

/// The outcome of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    /// How long the next one lasts.
    pub(crate) next: Option<Duration>,
    /// Whether claims of this client may hold by now that it was not told of.
    pub(crate) has_ended: bool,
}

/// A claim that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// No other claim has it.
    pub(crate) id: Uuid,
    pub(crate) session: Uuid,
    pub(crate) lock: String,
    pub(crate) kind: Kind,
    /// How many permits a semaphore has, if the database does not know.
    pub(crate) limit: u32,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) thread: String,
    pub(crate) label: String,
}

/// The outcome of a claim.
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
    /// Those that hold, in their order.
    pub(crate) holding: Vec<i64>,
    /// The first that waits.
    pub(crate) next: Option<i64>,
    /// How many permits there are, if known.
    pub(crate) limit: Option<u32>,
}

/// The requests and orders of others for the claims of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wants {
    /// How many claims it has.
    pub(crate) claims: usize,
    pub(crate) revocations: Vec<(i64, Revocation)>,
}

/// A step was not done, or may not have been.
#[derive(Clone, Debug)]
pub(crate) struct StepError {
    pub(crate) cause: Cause,
    /// In words.
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Other steps are in the way: nothing was done.
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

impl StepError {
    pub(crate) fn new(cause: Cause, why: impl Into<String>) -> StepError {
        StepError { cause, why: why.into() }
    }

    pub(crate) fn is(&self, cause: Cause) -> bool {
        self.cause == cause
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
