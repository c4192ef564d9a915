//! Where handles of the C client's come from: from it, or in the library's own tests from a simulated machine.

#[cfg(test)]
use std::cell::RefCell;
use std::io;
#[cfg(test)]
use std::rc::Rc;

use crate::raw::{self, Event, Handle, Zhandle};
#[cfg(test)]
use crate::runtime::simulated;

#[cfg(test)]
pub(crate) type Listener = Box<dyn Fn(Event) + Send + Sync>;

/// Opens the handles of a simulated machine.
#[cfg(test)]
pub(crate) trait Handles {
    fn open(&self, config: &raw::Config, listener: Listener) -> Box<dyn Handle>;
}

#[cfg(test)]
thread_local! {
    static CURRENT: RefCell<Option<Rc<dyn Handles>>> = const { RefCell::new(None) };
}

/// Runs `body`, for which handles come from there.
#[cfg(test)]
pub(crate) fn of<T>(handles: &Rc<dyn Handles>, body: impl FnOnce() -> T) -> T {
    simulated::within(&CURRENT, handles, body)
}

#[cfg(test)]
fn simulated() -> Option<Rc<dyn Handles>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

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
