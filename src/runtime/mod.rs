//! What futures run on: one driver thread for all of a process, its timers, helper threads for what may
//! block, and results that can be awaited and waited for. It knows neither sessions nor locks.

mod block;
mod blocked;
mod carried_on;
mod clock;
mod driver;
mod in_place;
mod latest;
pub(crate) mod machine;
mod offload;
mod pending;
pub(crate) mod role;
#[cfg(test)]
#[path = "../../tests/inside/simulated.rs"]
pub(crate) mod simulated;
mod timer;
mod unfinished;
mod updates;
pub(crate) mod wake;

pub use pending::Pending;
pub use updates::{Timeout, Updates};

pub(crate) use block::{block_on, block_on_until};
pub(crate) use clock::{BootInstant, now};
pub(crate) use in_place::run_in_place;
pub(crate) use latest::Latest;
pub(crate) use pending::Late;
#[cfg(test)]
pub(crate) use timer::Timers;
pub(crate) use timer::{Timer, within};
pub(crate) use unfinished::{Unfinished, wait_at_exit};
