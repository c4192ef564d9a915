//! Which of our threads this is, if it is one.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It waits for nothing, and runs no code of others.
    Driver,
    /// It does for the driver what may block.
    Helper,
}

thread_local! {
    static ROLE: Cell<Option<Role>> = const { Cell::new(None) };
}

/// This thread has that role from now on.
pub(crate) fn take(role: Role) {
    ROLE.set(Some(role));
}

pub(crate) fn is_driver() -> bool {
    ROLE.get() == Some(Role::Driver)
}

/// Whether it is one of ours: it must not wait for a client's end, which may have to be brought about here.
pub(crate) fn is_ours() -> bool {
    ROLE.get().is_some()
}
