//! Which frames something happens to.

use std::fmt;
use std::sync::Arc;

use super::seen::{Direction, Seen};
use crate::wire::Ops;

/// Picks frames by direction, operation, path and more; all that is named must hold.
///
/// ```
/// use zklock_testing::{Op, Ops, Rule};
/// let second_claim = Rule::request(Ops::creates()).path_prefix("/locks/").nth(2);
/// let transfer = Rule::reply(Op::Multi).containing(Op::SetData).path("/account").once();
/// let refused = Rule::reply(Op::SetData).error(-103); // bad version
/// # let _ = (second_claim, transfer, refused);
/// ```
///
/// # What it counts, and when it fires
/// [`nth`](Rule::nth), [`once`](Rule::once) and [`from_nth`](Rule::from_nth) count the frames that fit in the order in
/// which they arrive at the proxy: over all its connections, from the rule's installation, also those that another
/// rule then drops. Without them every frame that fits is picked.
///
/// The action is done when the frame's turn comes: what came before it in its stream has been forwarded, and what
/// comes after it waits. [`InstalledRule::hits`](super::InstalledRule::hits) counts the actions, not the frames.
#[derive(Clone)]
#[must_use]
pub struct Rule {
    direction: Direction,
    ops: Ops,
    path: Option<PathTest>,
    parts: Option<Ops>,
    watch: Option<bool>,
    error: Option<i32>,
    connection: Option<u64>,
    which: Which,
}

#[derive(Clone)]
struct PathTest {
    holds: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    text: String,
}

#[derive(Clone, Copy)]
enum Which {
    Every,
    Only(u64),
    From(u64),
}

impl Rule {
    /// Requests with one of these operations, an [`Op`](crate::Op) or several.
    pub fn request(ops: impl Into<Ops>) -> Rule {
        Rule::new(Direction::Request, ops.into())
    }

    /// Replies to requests with one of these operations. Paths and parts are those of the request.
    pub fn reply(ops: impl Into<Ops>) -> Rule {
        Rule::new(Direction::Reply, ops.into())
    }

    /// Watch events.
    pub fn event() -> Rule {
        Rule::new(Direction::Event, Ops::any())
    }

    fn new(direction: Direction, ops: Ops) -> Rule {
        Rule {
            direction,
            ops,
            path: None,
            parts: None,
            watch: None,
            error: None,
            connection: None,
            which: Which::Every,
        }
    }

    /// Only for this path. A multi has several: one suffices.
    pub fn path(self, path: impl Into<String>) -> Rule {
        let path = path.into();
        let text = format!("is {path}");
        self.with_path(text, move |candidate| candidate == path)
    }

    /// Only for paths that start so.
    pub fn path_prefix(self, prefix: impl Into<String>) -> Rule {
        let prefix = prefix.into();
        let text = format!("starts with {prefix}");
        self.with_path(text, move |candidate| candidate.starts_with(&prefix))
    }

    /// Only for paths that `holds` says yes to. It is called within the proxy and must not call it.
    pub fn path_matching(self, holds: impl Fn(&str) -> bool + Send + Sync + 'static) -> Rule {
        self.with_path("matches".to_owned(), holds)
    }

    fn with_path(
        mut self,
        text: String,
        holds: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Rule {
        let holds = Arc::new(holds);
        self.path = Some(PathTest { holds, text });
        self
    }

    /// Only a multi that contains one of these operations.
    pub fn containing(mut self, ops: impl Into<Ops>) -> Rule {
        self.parts = Some(ops.into());
        self
    }

    /// Only reads that set a watch, or only those that don't, and the replies to them.
    pub fn watching(mut self, watch: bool) -> Rule {
        self.watch = Some(watch);
        self
    }

    /// Only replies with this error code; zero for success.
    pub fn error(mut self, code: i32) -> Rule {
        self.error = Some(code);
        self
    }

    /// Only frames of this connection, see [`Seen::connection`].
    pub fn connection(mut self, connection: u64) -> Rule {
        self.connection = Some(connection);
        self
    }

    /// Only the `n`-th frame that fits, counted over all connections from the rule's installation, from one.
    ///
    /// # Panics
    /// When `n` is zero: a rule that never fires would make a test pass that has tested nothing.
    #[track_caller]
    pub fn nth(mut self, n: u64) -> Rule {
        assert!(n > 0, "frames are counted from one");
        self.which = Which::Only(n);
        self
    }

    /// Only the first frame that fits.
    pub fn once(self) -> Rule {
        self.nth(1)
    }

    /// The `n`-th frame that fits and all after it, counted from one.
    pub fn from_nth(mut self, n: u64) -> Rule {
        self.which = Which::From(n);
        self
    }

    /// Whether the frame fits; how many came before it is not looked at.
    pub fn matches(&self, seen: &Seen) -> bool {
        self.direction == seen.direction
            && self.ops.contains(seen.op)
            && self
                .error
                .is_none_or(|code| seen.direction == Direction::Reply && seen.error == code)
            && self.watch.is_none_or(|watch| seen.watch == watch)
            && self.connection.is_none_or(|connection| seen.connection == connection)
            && self
                .parts
                .as_ref()
                .is_none_or(|ops| seen.parts.iter().any(|part| ops.contains(*part)))
            && self
                .path
                .as_ref()
                .is_none_or(|test| seen.paths.iter().any(|path| (test.holds)(path)))
    }

    /// Whether the `n`-th frame that fits is picked.
    pub(super) fn picks(&self, n: u64) -> bool {
        match self.which {
            Which::Every => true,
            Which::Only(only) => n == only,
            Which::From(first) => n >= first,
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {:?}", self.direction, self.ops)?;
        if let Some(test) = &self.path {
            write!(formatter, ", path {}", test.text)?;
        }
        if let Some(ops) = &self.parts {
            write!(formatter, ", containing {ops:?}")?;
        }
        match self.watch {
            Some(true) => formatter.write_str(", watching")?,
            Some(false) => formatter.write_str(", not watching")?,
            None => {}
        }
        if let Some(code) = self.error {
            write!(formatter, ", error {code}")?;
        }
        if let Some(connection) = self.connection {
            write!(formatter, ", connection {connection}")?;
        }
        match self.which {
            Which::Every => Ok(()),
            Which::Only(n) => write!(formatter, ", number {n} only"),
            Which::From(n) => write!(formatter, ", number {n} and after"),
        }
    }
}
