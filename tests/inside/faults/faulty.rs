//! A database of which one step fails, where the test wants it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::leased::database::{
    Cause, Changes, Claimed, Database, Front, Row, StepError, Swept, Wants,
};
use crate::lock::{Contender, Kind, Revocation};

/// Of both stores.
pub(super) const LEASE: Duration = Duration::from_millis(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Begin,
    Renew,
    End,
    Claim,
    Release,
    Front,
    Ahead,
    Wanted,
    Numbers,
    Changes,
    Sweep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is refused, and was not done.
    Refused,
    /// The user may not do it, and it was not done.
    Forbidden,
    /// Others are at it.
    Busy,
    /// It is not known whether it was done, and it was not.
    LostRequest,
    /// It is not known whether it was done, and it was.
    LostReply,
    /// As that, after half of the lease.
    LateLostReply,
    /// It is done, and takes a twentieth of the lease.
    Slow,
    /// It is done when the lease is over.
    LateRequest,
    /// It is done, and the answer comes when the lease is over.
    LateReply,
    /// It is done, the answer comes when half of the lease is over, and no renewal is answered after that.
    LateReplyAndSilence,
}

pub(super) const FAULTS: [Fault; 6] = [
    Fault::Refused,
    Fault::Busy,
    Fault::LostRequest,
    Fault::LostReply,
    Fault::LateRequest,
    Fault::LateReply,
];

/// Which faults come next, one after the other, and where.
pub(super) type Plan = Arc<Mutex<VecDeque<(Op, Fault)>>>;

pub(super) struct Faulty {
    pub(super) database: Box<dyn Database>,
    pub(super) plan: Plan,
    pub(super) is_silent: bool,
}

impl Faulty {
    fn run<T>(
        &mut self,
        op: Op,
        mut work: impl FnMut(&mut dyn Database) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let planned = {
            let mut plan = self.plan.lock();
            let is_next = plan.front().is_some_and(|(at, _)| *at == op);
            if is_next { plan.pop_front() } else { None }
        };
        let (_, fault) = match planned {
            None if op == Op::Renew && self.is_silent => (op, Fault::Busy),
            None => return work(&mut *self.database),
            Some(planned) => planned,
        };
        let failure = |what| Err(StepError::new(what, format!("{op:?}: {fault:?}")));
        match fault {
            Fault::Refused => failure(Cause::Failed),
            Fault::Forbidden => failure(Cause::NotPermitted),
            Fault::Busy => failure(Cause::Busy),
            Fault::LostRequest => failure(Cause::Unknown),
            Fault::LostReply => {
                work(&mut *self.database)?;
                failure(Cause::Unknown)
            }
            Fault::LateLostReply => {
                work(&mut *self.database)?;
                thread::sleep(LEASE / 2);
                failure(Cause::Unknown)
            }
            Fault::Slow => {
                thread::sleep(LEASE / 20);
                work(&mut *self.database)
            }
            Fault::LateRequest => {
                thread::sleep(LEASE + LEASE / 4);
                work(&mut *self.database)
            }
            Fault::LateReplyAndSilence => {
                self.is_silent = true;
                let done = work(&mut *self.database);
                thread::sleep(LEASE / 2);
                done
            }
            Fault::LateReply => {
                let done = work(&mut *self.database);
                thread::sleep(LEASE + LEASE / 4);
                done
            }
        }
    }
}

impl Database for Faulty {
    fn begin(&mut self, session: Uuid, lease: Duration) -> Result<(), StepError> {
        self.run(Op::Begin, |database| database.begin(session, lease))
    }
    fn renew(&mut self, session: Uuid, lease: Duration) -> Result<bool, StepError> {
        self.run(Op::Renew, |database| database.renew(session, lease))
    }
    fn end(&mut self, session: Uuid) -> Result<(), StepError> {
        self.run(Op::End, |database| database.end(session))
    }
    fn claim(&mut self, row: &Row, unless_blocked: bool) -> Result<Claimed, StepError> {
        self.run(Op::Claim, |database| database.claim(row, unless_blocked))
    }
    fn release(&mut self, claim: Uuid, lock: &str) -> Result<bool, StepError> {
        self.run(Op::Release, |database| database.release(claim, lock))
    }
    fn front(&mut self, lock: &str) -> Result<Front, StepError> {
        self.run(Op::Front, |database| database.front(lock))
    }
    fn ahead(
        &mut self,
        lock: &str,
        number: i64,
        kind: Kind,
    ) -> Result<Option<Contender>, StepError> {
        self.run(Op::Ahead, |database| database.ahead(lock, number, kind))
    }
    fn contenders(&mut self, lock: &str, number: usize) -> Result<Vec<Contender>, StepError> {
        self.database.contenders(lock, number)
    }
    fn revoke(&mut self, lock: &str, number: i64, what: &Revocation) -> Result<bool, StepError> {
        self.database.revoke(lock, number, what)
    }
    fn is_there(&mut self, lock: &str, number: i64) -> Result<bool, StepError> {
        self.database.is_there(lock, number)
    }
    fn wanted(&mut self, session: Uuid) -> Result<Option<Wants>, StepError> {
        self.run(Op::Wanted, |database| database.wanted(session))
    }
    fn numbers(&mut self, session: Uuid) -> Result<Option<Vec<(i64, Uuid)>>, StepError> {
        self.run(Op::Numbers, |database| database.numbers(session))
    }
    fn limit(&mut self, lock: &str) -> Result<Option<u32>, StepError> {
        self.database.limit(lock)
    }
    fn set_limit(&mut self, lock: &str, limit: u32) -> Result<(), StepError> {
        self.database.set_limit(lock, limit)
    }
    fn changes(&mut self) -> Result<Changes, StepError> {
        self.run(Op::Changes, |database| database.changes())
    }
    fn may_concern(&self, lock: &str) -> bool {
        self.database.may_concern(lock)
    }
    fn sweep(&mut self) -> Result<Swept, StepError> {
        self.run(Op::Sweep, |database| database.sweep())
    }
    fn raise_tokens(&mut self, above: i64) -> Result<(), StepError> {
        self.database.raise_tokens(above)
    }
    fn shortest_look(&self) -> Duration {
        self.database.shortest_look()
    }
    fn repair(&mut self) -> Result<(), StepError> {
        self.database.repair()
    }
    fn longest_look(&self) -> Duration {
        self.database.longest_look()
    }
    fn held_look(&self) -> Duration {
        self.database.held_look()
    }
    fn tells_what_concerns_others(&self) -> bool {
        self.database.tells_what_concerns_others()
    }
    fn announce(&mut self, changed: Box<dyn Fn() -> bool + Send>) {
        self.database.announce(changed);
    }
}
