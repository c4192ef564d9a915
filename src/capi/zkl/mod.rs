//! The API of `zklock.h`: clients, locks and guards for programs that are written for it.

pub(super) mod async_calls;
pub(super) mod attempt;
pub(super) mod client;
pub(super) mod contenders;
pub(super) mod errors;
pub(super) mod guard;
pub(super) mod lock;
pub(super) mod loss_signals;
pub(super) mod options;
pub(super) mod present;
pub(super) mod revocation;
pub(super) mod sharing;
pub(super) mod timeout;
pub(super) mod version;
