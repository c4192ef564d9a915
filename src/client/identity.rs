//! An identity that a session has to itself: what only that session may do is allowed to it alone.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::raw::Credentials;

/// A `digest` identity with a password that no other client knows.
pub(super) struct OwnIdentity {
    credentials: Credentials,
    /// Its form in an ACL.
    id: String,
    /// Whether the servers have accepted it.
    is_accepted: AtomicBool,
}

const USER: &str = "zklock";

impl OwnIdentity {
    pub(super) fn new() -> OwnIdentity {
        let secret = format!("{USER}:{}", uuid::Uuid::new_v4());
        let digest = sha1_smol::Sha1::from(&secret).digest().bytes();
        let id = format!("{USER}:{}", BASE64.encode(digest));
        let credentials = Credentials { scheme: "digest".to_owned(), secret: secret.into_bytes() };
        OwnIdentity { credentials, id, is_accepted: AtomicBool::new(false) }
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The servers have accepted it: on this connection, and on those that follow, as the C client repeats it there ahead of
    /// all requests.
    pub(super) fn accept(&self) {
        self.is_accepted.store(true, Ordering::Release);
    }

    /// The id of it in the scheme `digest`, once the servers have accepted it.
    pub(super) fn id(&self) -> Option<&str> {
        self.is_accepted.load(Ordering::Acquire).then_some(&self.id)
    }
}
