//! When a request is sent again: pauses, so that a connection that breaks again at once does not make a loop spin.

use std::time::Duration;

use crate::error::Code;

/// The pause after a failed request that a caller waits for.
pub(crate) const SOON: Duration = Duration::from_millis(5);
/// The pause after a failed request of a background task.
pub(crate) const LATER: Duration = Duration::from_millis(50);
/// The pause between two looks where the client has no room for another watch.
pub(crate) const WITHOUT_A_WATCH: Duration = Duration::from_millis(500);

/// Whether a request that ended with this code may have been executed. The reply to an executed request may be unreadable.
pub(crate) fn may_be_done(code: Code) -> bool {
    code.is_outcome_unknown() || code == Code::MARSHALLING_ERROR
}
