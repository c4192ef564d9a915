//! Several locks of one client, claimed in one transaction.
//!
//! Claims that are made by one transaction stand in the same order in every queue: before all that were made later,
//! behind all that were made earlier. Whoever waits, waits for an earlier transaction, so nobody waits in a circle,
//! whatever is held alone, together, or by readers. For that, all claims of an acquire have to be of one transaction at
//! any time: where one is gone (deleted, or with its directory), the others are given up, and all are made anew.

use std::sync::Arc;

use super::acquired::Acquired;
use super::attempt::{AFTER_TROUBLE, Attempt, ClaimStatus};
use super::queue;
use super::refusal::{NOT_A_QUEUE, Obstacle, refused};
use super::seen_ahead::SeenAhead;
use super::spec::Spec;
use super::transaction::First;
use crate::client::{Created, Hold, Op, OpResult, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::lock::LockError;
use crate::logging::log;
use crate::runtime::{Pending, Timer, wake};

/// One of the locks.
struct Member {
    attempt: Attempt,
    /// In which session, and which period of trust, it was found to hold.
    held_in: Option<TrustedSession>,
}

/// All of them; deletes what it has, or may have, on the servers when it is dropped.
pub(super) struct Together {
    members: Vec<Member>,
}

/// Where they stand.
enum Standing {
    Held,
    /// That one does not hold yet.
    Waits(usize, ClaimStatus),
}

impl Together {
    /// Of these locks, which are queues of one client; one at least.
    pub(super) fn new(
        specs: impl Iterator<Item = Arc<Spec>>,
        no_wait: bool,
        ahead: &Arc<SeenAhead>,
    ) -> Together {
        let member = |spec| {
            let attempt = Attempt::new(&spec, no_wait, Arc::clone(ahead));
            Member { attempt, held_in: None }
        };
        Together { members: specs.map(member).collect() }
    }

    /// Acquires all; `None` where somebody is ahead who is not to be waited for.
    pub(super) async fn contend(mut self) -> Result<Option<Vec<Acquired>>, LockError> {
        let first = Arc::clone(&self.members[0].attempt.spec);
        loop {
            let session = first.client.trusted_session().await;
            let session = session.map_err(|error| LockError::closed(&first.path, error))?;
            match Box::pin(self.step(&session)).await {
                Ok(Standing::Held) if self.gives_up_what_is_gone() => {}
                // As in the loop of one lock.
                Ok(Standing::Held) if first.client.is_closing() => {
                    drop(first.client.closed().await)
                }
                Ok(Standing::Held) => match self.hold(&session) {
                    Some(held) => return Ok(Some(held)),
                    None => session.proven().await,
                },
                Ok(Standing::Waits(at, status)) => match status {
                    ClaimStatus::Held | ClaimStatus::Again => {}
                    ClaimStatus::Taken => {
                        self.withdraw().await;
                        return Ok(None);
                    }
                    ClaimStatus::Watching(watch) => {
                        self.members[at].attempt.wait_for(watch).await;
                        self.look_again_at_those_before(at);
                    }
                    ClaimStatus::Pausing(pause) => {
                        self.members[at].attempt.behind = None;
                        Timer::after(pause).await;
                        self.look_again_at_those_before(at);
                    }
                    ClaimStatus::Impossible(obstacle) => return Err(self.impossible(at, obstacle)),
                },
                Err(error) if error.is_transient() => {
                    log!(DEBUG, %error, "acquire of several locks goes on");
                    Timer::after(AFTER_TROUBLE).await;
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    /// Gives up claims that are gone by now, as the watches on them say; then all are made anew.
    fn gives_up_what_is_gone(&mut self) -> bool {
        let mut is_any = false;
        for Member { attempt, .. } in &mut self.members {
            if attempt.is_robbed() {
                attempt.claim.give_up();
                is_any = true;
            }
        }
        is_any
    }

    /// While another was waited for, somebody may have deleted a claim that was found to hold.
    fn look_again_at_those_before(&mut self, at: usize) {
        for member in &mut self.members[..at] {
            member.held_in = None;
        }
    }

    /// Claims, or looks again where the claims stand that do not hold yet.
    async fn step(&mut self, session: &TrustedSession) -> Result<Standing> {
        for member in &mut self.members {
            member.attempt.claim.reconcile(session).await?;
            member.attempt.claim.given_up_are_gone().await;
        }
        if self.members.iter().any(|member| member.attempt.claim.node().is_none()) {
            for member in &mut self.members {
                (member.attempt.behind, member.held_in) = (None, None);
            }
            // Whoever only tries would take them for another's.
            self.withdraw().await;
            if let Some(waits) = self.claim(session).await? {
                return Ok(waits);
            }
            for member in &mut self.members {
                let holds = queue::is_first_by_its_number(&member.attempt);
                member.held_in = holds.then(|| session.clone());
            }
        }
        for (at, member) in self.members.iter_mut().enumerate() {
            let of_this_trust = |held: &TrustedSession| Arc::ptr_eq(&held.trust, &session.trust);
            if member.held_in.as_ref().is_some_and(of_this_trust) {
                continue;
            }
            match queue::step(&mut member.attempt, session).await? {
                ClaimStatus::Held => member.held_in = Some(session.clone()),
                status => return Ok(Standing::Waits(at, status)),
            }
        }
        Ok(Standing::Held)
    }

    /// Makes all claims, in one transaction. Gives which of them could not be made, if one could not.
    async fn claim(&mut self, session: &TrustedSession) -> Result<Option<Standing>> {
        for (at, member) in self.members.iter_mut().enumerate() {
            if let Some(status) = queue::enter(&mut member.attempt, session).await? {
                return Ok(Some(Standing::Waits(at, status)));
            }
        }
        self.send(session);
        let mut outcome = Ok(());
        for member in &mut self.members {
            // All of them, as the replies to all come together.
            outcome = outcome.and(member.attempt.claim.confirm().await.map(drop));
        }
        let Err(error) = outcome else { return Ok(None) };
        let at = error.failed_op_index().filter(|at| *at < self.members.len());
        let Some(at) = at else { return Err(error) };
        let attempt = &mut self.members[at].attempt;
        let status = match error.code() {
            Code::NO_NODE => queue::make_directory(&attempt.spec, session).await?,
            Code::NODE_EXISTS => queue::wait_for_the_last_number(attempt, session).await?,
            Code::NO_CHILDREN_FOR_EPHEMERALS => ClaimStatus::Impossible(NOT_A_QUEUE),
            _ => return Err(error),
        };
        Ok(Some(Standing::Waits(at, status)))
    }

    /// Submits the transaction. Each claim gets a reply of its own.
    fn send(&mut self, session: &TrustedSession) {
        let mut ops: Vec<Op> = Vec::with_capacity(self.members.len());
        let mut replies = Vec::with_capacity(self.members.len());
        for Member { attempt, .. } in &mut self.members {
            let path = Arc::clone(&attempt.spec.path);
            attempt.claim.send_by(session, |claim, prefix, mode| {
                ops.push(claim.op(prefix, mode));
                let (reply, to_come) = oneshot::async_channel();
                replies.push(reply);
                Pending::reply("create", path, to_come)
            });
        }
        let (first, number) = (First::of(&ops[0]), replies.len());
        let (sent, session) = (session.multi(&ops), session.clone());
        let client = &self.members[0].attempt.spec.client;
        client.spawn(async move {
            let mut created = created(&session, sent, &first, number).await.map(Vec::into_iter);
            for reply in replies {
                let unknown = || Error::new("create", "", Code::OPERATION_TIMEOUT);
                wake::send(
                    reply,
                    match &mut created {
                        Ok(created) => created.next().ok_or_else(unknown),
                        Err(error) => Err(error.clone()),
                    },
                );
            }
        });
    }

    /// Takes over all nodes, if the session is proven to be alive.
    fn hold(&mut self, session: &TrustedSession) -> Option<Vec<Acquired>> {
        let holds: Option<Vec<Hold>> = self.members.iter().map(|_| session.hold()).collect();
        let members = self.members.iter_mut().zip(holds?);
        members.map(|(member, hold)| member.attempt.acquired(hold)).collect()
    }

    /// Deletes all claims, and waits for that: they stand in the way of nobody who tries.
    async fn withdraw(&mut self) {
        for member in &mut self.members {
            member.attempt.claim.give_up();
        }
        for member in &mut self.members {
            member.attempt.claim.given_up_are_gone().await;
        }
    }

    fn impossible(&self, at: usize, obstacle: Obstacle) -> LockError {
        obstacle.at(&self.members[at].attempt.spec.path)
    }

    fn refused(&self, error: Error) -> LockError {
        let at = error.failed_op_index().filter(|at| *at < self.members.len()).unwrap_or_default();
        // A permission is missing for a create.
        let error = match error.code() {
            Code::NO_AUTH if error.op() == "multi" => {
                Error::new("create", error.path(), Code::NO_AUTH)
            }
            _ => error,
        };
        refused(&self.members[at].attempt.spec.path, error)
    }
}

/// The claims that the transaction has made.
async fn created(
    session: &TrustedSession,
    sent: Pending<Vec<OpResult>>,
    first: &First,
    number: usize,
) -> Result<Vec<Created>> {
    let path_of = |result| match result {
        OpResult::Created(path) => Some(path),
        _ => None,
    };
    let paths: Vec<String> = sent.await?.into_iter().filter_map(path_of).collect();
    let path = paths.first().filter(|_| paths.len() == number);
    let path = path.ok_or_else(|| Error::new("create", "", Code::OPERATION_TIMEOUT))?;
    let stat = first.stat(session, path).await?;
    Ok(paths.into_iter().map(|path| Created { path, stat }).collect())
}
