//! Runs futures: one driver thread for each process, its timers, workers for blocking code, and results that can be
//! awaited or waited for. It knows neither sessions nor locks.

mod block;
mod clock;
mod continuation;
mod driver;
mod latest;
pub(crate) mod machine;
pub(crate) mod offload;
mod pending;
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
pub(crate) use continuation::run_in_place;
pub(crate) use latest::Latest;
pub(crate) use pending::Late;
#[cfg(test)]
pub(crate) use timer::Timers;
pub(crate) use timer::{Timer, within};
pub(crate) use unfinished::{Unfinished, wait_at_exit};
