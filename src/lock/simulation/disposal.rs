//! Deletions that must happen: the same contract as the client's `disposal.rs`, on simulated
//! requests.

use std::sync::Arc;

use oneshot::Sender;

use super::request::{Answer, Op, Reply, Value};
use super::world::World;
use crate::error::{Code, Error, Result};

/// A znode that must go.
pub(super) struct Disposal {
    pub(super) path: String,
    pub(super) czxid: i64,
    /// Whether to look first if it is still the one that this transaction created.
    pub(super) look: bool,
    /// Whether no deletion was tried before: after one, a missing znode is how success looks.
    pub(super) first: bool,
    pub(super) done: Sender<Result<bool>>,
    pub(super) _kept: Arc<()>,
}

impl Disposal {
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
    pub(super) fn try_to_dispose(&mut self, client: usize, link: usize, disposal: Disposal) {
        let path = disposal.path.clone();
        if !disposal.look {
            self.submit_deletion(client, link, disposal);
        } else if disposal.first || self.careless {
            self.submit(client, link, Op::Get { watch: false }, &path, Reply::Look(disposal));
        } else {
            self.submit(client, link, Op::Sync, &path, Reply::Sync(disposal));
        }
    }

    fn submit_deletion(&mut self, client: usize, link: usize, disposal: Disposal) {
        let (path, czxid) = (disposal.path.clone(), disposal.czxid);
        let gone = self.leader.records.get(&czxid).and_then(|record| record.gone);
        let too_late = gone.is_some_and(|gone| gone <= self.clients[client].seen);
        let op = Op::Delete { czxid, too_late };
        self.submit(client, link, op, &path, Reply::Deletion(disposal));
    }

    /// The server has caught up with an earlier deletion, if that has succeeded.
    pub(super) fn caught_up(&mut self, client: usize, disposal: Disposal, answer: Answer) {
        let link = self.clients[client].link;
        match answer {
            Ok(_) => {
                let path = disposal.path.clone();
                self.submit(client, link, Op::Get { watch: false }, &path, Reply::Look(disposal));
            }
            Err(code) => self.end_or_try_later(client, disposal, code),
        }
    }

    pub(super) fn looked(&mut self, client: usize, disposal: Disposal, answer: Answer) {
        let link = self.clients[client].link;
        match answer {
            Ok(Value::Data(_, stat)) if stat.czxid == disposal.czxid => {
                self.submit_deletion(client, link, disposal);
            }
            // Somebody else's by now.
            Ok(_) => disposal.end(Err(Code::NO_NODE)),
            Err(code) => self.end_or_try_later(client, disposal, code),
        }
    }

    pub(super) fn deleted(&mut self, client: usize, mut disposal: Disposal, answer: Answer) {
        match answer {
            Ok(_) => disposal.end(Ok(())),
            Err(code) => {
                disposal.first &= !code.is_outcome_unknown();
                self.end_or_try_later(client, disposal, code);
            }
        }
    }

    fn end_or_try_later(&mut self, client: usize, mut disposal: Disposal, code: Code) {
        if code.is_verdict() || code.is_session_over() && !code.is_outcome_unknown() {
            return disposal.end(Err(code));
        }
        disposal.look = true;
        let client = &mut self.clients[client];
        if client.over {
            return disposal.end(Err(Code::SESSION_EXPIRED));
        }
        client.doomed.push(disposal);
    }

    /// Tries the deletions again whose outcome is unknown.
    pub(super) fn retry_disposals(&mut self, client: usize) {
        let link = self.clients[client].link;
        for disposal in std::mem::take(&mut self.clients[client].doomed) {
            self.try_to_dispose(client, link, disposal);
        }
    }

    /// The session is over: nothing can be tried any more.
    pub(super) fn end_disposals(&mut self, client: usize) {
        for disposal in std::mem::take(&mut self.clients[client].doomed) {
            disposal.end(Err(Code::SESSION_EXPIRED));
        }
    }
}
