//! Why a soak could not be made, as opposed to what it found.

use std::fmt;

/// What was tried, and why it can't be.
#[derive(Debug)]
pub struct Trouble(String);

impl Trouble {
    /// For `map_err`.
    pub fn new<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Trouble {
        move |error| Trouble(format!("{what}: {error}"))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
