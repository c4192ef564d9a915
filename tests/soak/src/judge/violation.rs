//! What must not be, and how it is told.

use std::fmt;
use std::time::Duration;

use crate::clock::Moment;

/// What was found, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: Kind,
    /// When, if that can be said.
    pub at: Option<Moment>,
    pub what: String,
    pub about: About,
}

/// What a violation has to do with: where to look for its story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub lock: Option<usize>,
    /// The znode of the claim.
    pub node: Option<String>,
    pub sessions: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A client has a token that was never first in line.
    NeverHeld,
    /// Two acquires have the same token.
    SharedToken,
    /// A client believed before its tenure had begun.
    TooEarly,
    /// A look at a guard said "not lost" when its tenure was over.
    TooLate,
    /// A client that was neither frozen nor stalled was told after its successor had begun.
    ToldLate,
    /// A session deleted another session's claim.
    Theft,
    /// A session deleted a claim of its own that was still held.
    Undermined,
    /// A write was done outside of its tenure.
    Unfenced,
    /// A write was done that its holder sent when it knew that the lock was lost.
    WroteWhenLost,
    /// Two tenures that exclude each other, or more permits than there were.
    Together,
    /// A reader held before a writer that had come before it.
    Overtaken,
    /// The tokens of a lock's tenures, or in its register, did not grow.
    TokenOrder,
    /// A write that was confirmed is not in the log, or one that was refused is.
    WriteReport,
    /// Somebody waits for ever, or waited too long after the faults.
    Hung,
    /// An acquire failed where it should have gone on.
    Failed,
    /// A close reported success, and its session had not ended.
    Unclosed,
    /// A node that nobody needs any more.
    Orphan,
    /// A client process ended by itself.
    Crashed,
    /// The evidence contradicts itself.
    Evidence,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::NeverHeld => "a token that never held",
            Kind::SharedToken => "a token of two holders",
            Kind::TooEarly => "believed before its tenure",
            Kind::TooLate => "believed after its tenure",
            Kind::ToldLate => "told after its successor began",
            Kind::Theft => "another's claim deleted",
            Kind::Undermined => "a held claim deleted",
            Kind::Unfenced => "a write outside of its tenure",
            Kind::WroteWhenLost => "a write after a loss",
            Kind::Together => "held together",
            Kind::Overtaken => "a writer overtaken",
            Kind::TokenOrder => "tokens that did not grow",
            Kind::WriteReport => "a write reported wrongly",
            Kind::Hung => "a hung waiter",
            Kind::Failed => "a failed acquire",
            Kind::Unclosed => "a close reported wrongly",
            Kind::Orphan => "a node left behind",
            Kind::Crashed => "a client that ended by itself",
            Kind::Evidence => "evidence that contradicts itself",
        }
    }
}

impl Violation {
    pub fn new(kind: Kind, what: impl Into<String>) -> Violation {
        Violation { kind, at: None, what: what.into(), about: About::default() }
    }

    /// `sessions`: those that had a part in it.
    pub fn about(mut self, lock: usize, node: Option<&str>, sessions: &[i64]) -> Violation {
        let (lock, node) = (Some(lock), node.map(str::to_owned));
        self.about = About { lock, node, sessions: sessions.to_vec() };
        self
    }

    pub fn at(mut self, at: Moment) -> Violation {
        self.at = Some(at);
        self
    }

    /// With the time since the start of the run in front.
    pub fn told(&self, start: Moment) -> String {
        let at = self.at.map(|at| format!("{:.3} s: ", at.since(start).as_secs_f64()));
        format!("{}{self}", at.unwrap_or_default())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)
    }
}

/// How much later, in words.
pub fn late(by: Duration) -> String {
    format!("{:.1} ms", by.as_secs_f64() * 1_000.0)
}
