//! Attempts to reach a server: not one after the other without a pause.

use std::time::Duration;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use std::time::Instant;

use super::database::{Cause, StepError};

/// Between two attempts, and the most that it grows to while a program connects.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Remembers when the last one failed, and why.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failed: Option<(Instant, String)>,
}

#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
impl Attempts {
    /// Connects, unless that has failed a moment ago. Nothing was asked for yet where it fails: others are at it, or a
    /// person has to do something.
    pub(crate) fn connect<C>(
        &mut self,
        connect: impl FnOnce() -> Result<C, StepError>,
    ) -> Result<C, StepError> {
        if let Some((_, why)) = self.failed.as_ref().filter(|(at, _)| at.elapsed() < PAUSE) {
            return Err(StepError::new(Cause::Busy, why.clone()));
        }
        match connect() {
            Ok(connection) => {
                self.failed = None;
                Ok(connection)
            }
            Err(failure) if failure.is(Cause::NotPermitted) || failure.is(Cause::Unusable) => {
                Err(failure)
            }
            Err(failure) => {
                self.failed = Some((Instant::now(), failure.why.clone()));
                Err(StepError { cause: Cause::Busy, ..failure })
            }
        }
    }
}

/// Does a step of connecting, which may be repeated. While it can't be done, `is_given_up` gets the reason, and returns
/// whether that is the end.
pub(crate) fn first<T>(
    is_given_up: &dyn Fn(&str) -> bool,
    mut step: impl FnMut() -> Result<T, StepError>,
) -> Result<T, StepError> {
    let mut pause = PAUSE;
    loop {
        match step() {
            Err(failure) if failure.is(Cause::Busy) || failure.is(Cause::Unknown) => {
                if is_given_up(&failure.why) {
                    return Err(StepError { cause: Cause::Failed, ..failure });
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}
