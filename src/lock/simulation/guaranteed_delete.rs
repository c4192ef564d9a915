//! Deletions that must happen: the same contract as the client's `guaranteed_delete.rs`, on simulated
//! requests.

use std::sync::Arc;

use oneshot::Sender;

use super::request::{Answer, Op, Reply, Value};
use super::world::World;
use crate::error::{Code, Error, Result};

/// A znode that must go.
pub(super) struct GuaranteedDelete {
    pub(super) path: String,
    pub(super) czxid: i64,
    /// Whether to look first if it is still the one that this transaction created.
    pub(super) look: bool,
    /// Whether no deletion was tried before: after one, a missing znode is how success looks.
    pub(super) first: bool,
    pub(super) done: Sender<Result<bool>>,
    pub(super) _kept: Arc<()>,
}

impl GuaranteedDelete {
    fn end(self, answer: std::result::Result<(), Code>) {
        let result = match answer {
            Ok(()) => Ok(true),
            Err(Code::NO_NODE) => Ok(!self.first),
            Err(code) => Err(Error::new("delete", &self.path, code)),
        };
        // Nobody may be waiting.
        let _ = self.done.send(result);
    }
}

impl World {
    /// Submits the deletion, or the look before it, on one session.
    pub(super) fn attempt_delete(&mut self, client: usize, link: usize, delete: GuaranteedDelete) {
        let path = delete.path.clone();
        if !delete.look {
            self.submit_deletion(client, link, delete);
        } else if delete.first || self.careless {
            self.submit(client, link, Op::Get { watch: false }, &path, Reply::Look(delete));
        } else {
            self.submit(client, link, Op::Sync, &path, Reply::Sync(delete));
        }
    }

    fn submit_deletion(&mut self, client: usize, link: usize, delete: GuaranteedDelete) {
        let (path, czxid) = (delete.path.clone(), delete.czxid);
        let gone = self.leader.records.get(&czxid).and_then(|record| record.gone);
        let too_late = gone.is_some_and(|gone| gone <= self.clients[client].seen);
        let op = Op::Delete { czxid, too_late };
        self.submit(client, link, op, &path, Reply::Deletion(delete));
    }

    /// The server has caught up with an earlier deletion, if that has succeeded.
    pub(super) fn caught_up(&mut self, client: usize, delete: GuaranteedDelete, answer: Answer) {
        let link = self.clients[client].link;
        match answer {
            Ok(_) => {
                let path = delete.path.clone();
                self.submit(client, link, Op::Get { watch: false }, &path, Reply::Look(delete));
            }
            Err(code) => self.end_or_try_later(client, delete, code),
        }
    }

    pub(super) fn looked(&mut self, client: usize, delete: GuaranteedDelete, answer: Answer) {
        let link = self.clients[client].link;
        match answer {
            Ok(Value::Data(_, stat)) if stat.czxid == delete.czxid => {
                self.submit_deletion(client, link, delete);
            }
            // Somebody else's by now.
            Ok(_) => delete.end(Err(Code::NO_NODE)),
            Err(code) => self.end_or_try_later(client, delete, code),
        }
    }

    pub(super) fn deleted(&mut self, client: usize, mut delete: GuaranteedDelete, answer: Answer) {
        match answer {
            Ok(_) => delete.end(Ok(())),
            Err(code) => {
                delete.first &= !code.is_outcome_unknown();
                self.end_or_try_later(client, delete, code);
            }
        }
    }

    fn end_or_try_later(&mut self, client: usize, mut delete: GuaranteedDelete, code: Code) {
        if code.is_server_decision() || code.is_session_over() && !code.is_outcome_unknown() {
            return delete.end(Err(code));
        }
        delete.look = true;
        let client = &mut self.clients[client];
        if client.over {
            return delete.end(Err(Code::SESSION_EXPIRED));
        }
        client.unconfirmed.push(delete);
    }

    /// Tries the deletions again whose outcome is unknown.
    pub(super) fn retry_deletes(&mut self, client: usize) {
        let link = self.clients[client].link;
        for delete in std::mem::take(&mut self.clients[client].unconfirmed) {
            self.attempt_delete(client, link, delete);
        }
    }

    /// The session is over: nothing can be tried any more.
    pub(super) fn end_deletes(&mut self, client: usize) {
        for delete in std::mem::take(&mut self.clients[client].unconfirmed) {
            delete.end(Err(Code::SESSION_EXPIRED));
        }
    }
}
