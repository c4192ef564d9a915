//! Where handles of the C client's come from: from it, or from a simulated machine.

use std::io;

use crate::raw::{self, Event, Handle, Zhandle};
#[cfg(test)]
use crate::runtime::simulated::current as simulated;

/// Whether hosts can be asked how they are.
pub(super) fn has_a_network() -> bool {
    #[cfg(test)]
    return simulated().is_none();
    #[cfg(not(test))]
    true
}

/// Opens a handle of the C client's.
///
/// # Errors
/// As [`Zhandle::open`].
pub(super) fn open(
    config: &raw::Config,
    listener: impl Fn(Event) + Send + Sync + 'static,
) -> io::Result<Box<dyn Handle>> {
    #[cfg(test)]
    if let Some(machine) = simulated() {
        return Ok(machine.open(config, Box::new(listener)));
    }
    Ok(Box::new(Zhandle::open(config, listener)?))
}
