//! One bug.

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
    /// Tests that should find it, as `TARGET FILTER`: they run first.
    pub found_by: Vec<String>,
}

impl Mutant {
    /// Whether the test is one of those that should find it.
    pub fn names(&self, target: &str, name: &str) -> bool {
        self.found_by
            .iter()
            .filter_map(|by| by.split_once(' '))
            .any(|(of, filter)| target == of && name.contains(filter))
    }

    /// Whether a test of this program is one of those.
    pub fn names_target(&self, target: &str) -> bool {
        self.found_by.iter().any(|by| by.split(' ').next() == Some(target))
    }

    pub fn headline(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line, self.place, self.what)
    }
}
