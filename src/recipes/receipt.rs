//! Receipts: what tells whether a transaction was executed when its reply is lost.
//!
//! A receipt is an ephemeral znode without data under [`DIRECTORY`]. Each transaction that must not
//! be repeated blindly begins with an operation on one: it creates the receipt, or replaces the
//! data of one that is at version `n`, which makes it `n + 1`. Such a transaction can be executed
//! only once, however often it is sent. So after an unknown outcome it is simply sent again: either
//! it is executed now, or the receipt refuses it, which proves that it was executed before. That
//! holds also when the first copy is still on its way somewhere and comes later than the second.
//!
//! A receipt is used by one operation at a time, and kept for the next one of its session. It dies
//! with the session; the directory is a container, which the servers remove when it is empty.

use std::sync::Arc;

use uuid::Uuid;

use super::per_session::PerSession;
use crate::client::{Link, Op};
use crate::error::{Code, Error};
use crate::znode::CreateMode;

/// Where receipts are. It is nobody's queue and no lock's path.
pub(super) const DIRECTORY: &str = "/zklock/receipts";

/// One receipt, in the hands of one operation.
pub(super) struct Receipt {
    path: String,
    /// The version of its data; `None` before it exists.
    version: Option<i32>,
}

/// What a refused transaction says of its receipt.
pub(super) enum Word {
    /// This transaction, or one by somebody else who changed the receipt, was executed before.
    Used,
    /// The directory for it is missing. The transaction was not executed.
    NoDirectory,
    /// Somebody has deleted it.
    Deleted,
    /// There can't be one: the servers' access control forbids it.
    Forbidden,
}

/// The receipts of a session that are in nobody's hands.
#[derive(Default)]
struct Drawer {
    free: Vec<Receipt>,
    forbidden: bool,
}

static DRAWERS: PerSession<Drawer> = PerSession::new();

/// A receipt of that session; `None` where there can be none.
pub(super) fn take(link: &Arc<Link>) -> Option<Receipt> {
    DRAWERS.with(link, |drawer| match drawer.free.pop() {
        _ if drawer.forbidden => None,
        Some(receipt) => Some(receipt),
        None => Some(Receipt { path: format!("{DIRECTORY}/{}", Uuid::new_v4()), version: None }),
    })
}

/// Notes that the session may have no receipts.
pub(super) fn forbid(link: &Arc<Link>) {
    DRAWERS.with(link, |drawer| drawer.forbidden = true);
}

impl Receipt {
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What a transaction begins with.
    pub(super) fn op(&self) -> Op {
        match self.version {
            None => Op::create(&self.path, "", CreateMode::Ephemeral),
            version => Op::Set { path: self.path.clone(), data: Vec::new(), version },
        }
    }

    /// What a refusal means, if it was the receipt that was refused.
    pub(super) fn word(&self, error: &Error) -> Option<Word> {
        // Receipts' paths are short, so the error has all of it.
        if error.path() != self.path {
            return None;
        }
        match (error.code(), self.version) {
            (Code::NODE_EXISTS, None) | (Code::BAD_VERSION, Some(_)) => Some(Word::Used),
            (Code::NO_NODE, None) => Some(Word::NoDirectory),
            (Code::NO_NODE, Some(_)) => Some(Word::Deleted),
            (Code::NO_AUTH | Code::NO_CHILDREN_FOR_EPHEMERALS, _) => Some(Word::Forbidden),
            _ => None,
        }
    }

    /// The transaction was executed.
    pub(super) fn stamp(&mut self) {
        self.version = Some(self.version.map_or(0, |version| version.wrapping_add(1)));
    }

    /// Back for the next operation. Nothing may be on its way that names it.
    pub(super) fn put_back(self, link: &Arc<Link>) {
        // Beyond it, -1 would come to mean any version.
        if self.version != Some(i32::MAX) {
            DRAWERS.with(link, |drawer| drawer.free.push(self));
        }
    }
}
