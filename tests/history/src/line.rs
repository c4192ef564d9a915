//! One line of a history.

use serde::Deserialize;

/// What a line tells: its fields are in `docs/history.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Nanoseconds of the machine's monotonic clock: before a call or a look, after a return.
    pub at: i64,
    pub process: String,
    pub event: Event,
    /// Absent for a look.
    pub operation: Option<Operation>,
    pub kind: Kind,
    pub path: String,
    pub token: Option<i64>,
    /// Of a return.
    pub outcome: Option<Outcome>,
    /// How many permits an acquire asks for; 1 if it does not say.
    pub permits: Option<usize>,
    /// How many permits a change of the limit sets.
    pub limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    Call,
    Return,
    /// A look at the guard said that it holds.
    Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Acquire,
    Release,
    /// A write that the servers refuse once the claim is gone.
    Write,
    /// Deletes or breaks the claims of others.
    Break,
    /// Sets a semaphore's limit.
    Limit,
    /// Puts an element into a work queue.
    Put,
    /// Removes an element that was delivered, for good.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Mutex,
    Election,
    Read,
    Write,
    Semaphore,
    /// An element of a work queue: a hold is a delivery.
    Work,
}

impl Kind {
    pub fn excludes(self, other: Kind) -> bool {
        (self, other) != (Kind::Read, Kind::Read)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::Election => "election",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Semaphore => "semaphore",
            Kind::Work => "work",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    /// It certainly had no effect.
    Refused,
    /// It may take effect at any time after its call, or never.
    Unknown,
}
