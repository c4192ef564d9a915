//! A session's id and password: the proof that it is ours.

use std::fmt;

/// A session's id and password: enough to take the session up again from another handle.
///
/// Two live handles on one session push each other off the server, so use it only when the first
/// handle is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionKey {
    id: i64,
    password: [u8; 16],
}

impl SessionKey {
    /// A key from its parts.
    pub const fn new(id: i64, password: [u8; 16]) -> SessionKey {
        SessionKey { id, password }
    }

    /// The session's id; servers print it in hexadecimal.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The password that the server gave. Keep it secret: it lets anyone end the session.
    pub const fn password(&self) -> [u8; 16] {
        self.password
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionKey({:#x})", self.id)
    }
}
