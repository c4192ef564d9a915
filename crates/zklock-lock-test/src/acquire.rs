//! What is kept of each acquire for a picture.

use std::time::Duration;

/// One acquire and what came of it, in times since the run's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acquire {
    pub thread: usize,
    pub asked: Duration,
    /// `None` where the time was over first.
    pub got: Option<Duration>,
    /// When it was released, or the acquire given up.
    pub ended: Duration,
}
