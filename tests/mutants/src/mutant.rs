//! One bug.

use std::fmt;

/// A bug that is in the copy, behind its switch.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What switches it on.
    pub number: u32,
    /// What it is called: the same as long as neither it nor its function changes.
    pub key: String,
    /// Where it is: the file from the checkout's root, and the line.
    pub file: String,
    pub line: usize,
    /// The function that it is in, or what the bug is called.
    pub place: String,
    /// What is done, as `a < b` becomes `a <= b`; or why it matters.
    pub what: String,
    /// Tests that should find it: they run first.
    pub found_by: Vec<By>,
}

/// Tests by their names: `TARGET FILTER`, or `TARGET FILTER CASE` for a part of the step-fault matrix.
#[derive(Clone, Debug)]
pub struct By {
    pub target: String,
    filter: String,
    /// What `ZKLOCK_CASE` is to the tests; nothing, if empty.
    pub case: String,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.target, self.filter)
    }
}

impl By {
    pub fn parse(text: &str) -> Option<By> {
        let mut parts = text.splitn(3, ' ').map(str::to_owned);
        let (target, filter) = (parts.next()?, parts.next()?);
        Some(By { target, filter, case: parts.next().unwrap_or_default() })
    }

    pub fn names(&self, target: &str, name: &str) -> bool {
        self.target == target && name.contains(&self.filter)
    }
}

impl Mutant {
    /// Whether the test is one of those that should find it.
    pub fn names(&self, target: &str, name: &str, case: &str) -> bool {
        self.found_by.iter().any(|by| by.names(target, name) && by.case == case)
    }

    /// What it is called whatever else its function does: the key without the digest.
    pub fn name(&self) -> &str {
        self.key.rsplit_once(" #").map_or(&self.key, |(name, _)| name)
    }

    /// The folder below the sources.
    pub fn folder(&self) -> &str {
        let end = self.file.match_indices('/').nth(1).map_or(self.file.len(), |(at, _)| at);
        &self.file[..end]
    }

    pub fn headline(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line, self.place, self.what)
    }
}
