//! Attempts to reach a server: not one after the other without a pause, and for the first connection not for ever.

use std::time::{Duration, Instant};

use super::database::{Cause, StepError};

/// How long the first connection is tried for.
const CONNECT: Duration = Duration::from_secs(3);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

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

/// Does the first step, which may take some seconds. While the database is busy, `is_given_up` gets the reason, and
/// returns whether the caller has cancelled.
pub(crate) fn first<T>(
    is_given_up: &dyn Fn(&str) -> bool,
    mut step: impl FnMut() -> Result<T, StepError>,
) -> Result<T, StepError> {
    let begun = Instant::now();
    loop {
        match step() {
            Err(failure) if failure.is(Cause::Busy) => {
                if begun.elapsed() > CONNECT || is_given_up(&failure.why) {
                    return Err(StepError { cause: Cause::Failed, ..failure });
                }
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}
