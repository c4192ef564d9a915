//! Several locks of one client, claimed in one transaction.
//!
//! The claims of one transaction have the same place in every queue: before all later claims, behind all earlier ones. A
//! waiter waits only for an earlier transaction, so waits form no cycle, whatever is held alone, together, or by readers.
//! This needs all claims of an acquire to be of one transaction. So if one of them is gone (deleted, or with its
//! directory), the others are abandoned, and all are created again.

use std::sync::Arc;

use super::attempt::{Attempt, ClaimStatus};
use super::claiming;
use crate::client::{Created, Op, OpResult, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::runtime::{Pending, wake};
use crate::zookeeper::claim::lookup;
use crate::zookeeper::refusal::NOT_A_QUEUE;
use crate::zookeeper::shortcuts::prove::{self, Guess};

/// Makes all claims, if one is missing. If they can't be made, gives the one that keeps them out.
pub(super) async fn claim(
    attempts: &mut [Attempt],
    session: &TrustedSession,
) -> Result<Option<(usize, ClaimStatus)>> {
    if attempts.iter().all(|attempt| attempt.claim.node().is_some()) {
        return Ok(None);
    }
    abandon(attempts).await;
    for (at, attempt) in attempts.iter_mut().enumerate() {
        if let Some(status) = claiming::enter(attempt, session, Guess::default()).await? {
            return Ok(Some((at, status)));
        }
    }
    send(attempts, session);
    let mut outcome = Ok(());
    for attempt in &mut *attempts {
        // All of them, as the replies to all come together.
        outcome = outcome.and(attempt.claim.confirm().await.map(drop));
    }
    let Err(error) = outcome else {
        for attempt in attempts {
            attempt.held_in = prove::is_first_by_its_number(attempt).then(|| session.clone());
        }
        return Ok(None);
    };
    let at = error.failed_op_index().filter(|at| *at < attempts.len());
    let Some(at) = at else { return Err(error) };
    let attempt = &mut attempts[at];
    let status = match error.code() {
        Code::NO_NODE => claiming::make_directory(&attempt.spec, session).await?,
        Code::NODE_EXISTS => claiming::wait_for_the_last_number(attempt, session).await?,
        Code::NO_CHILDREN_FOR_EPHEMERALS => ClaimStatus::Impossible(NOT_A_QUEUE),
        code => return Err(Error::new("create", error.path(), code).of_operation(at)),
    };
    Ok(Some((at, status)))
}

/// Deletes all claims. A try waits until they are gone, or it would take them for another client's.
async fn abandon(attempts: &mut [Attempt]) {
    for attempt in &mut *attempts {
        (attempt.behind, attempt.held_in) = (None, None);
        attempt.claim.abandon();
    }
    for attempt in attempts {
        attempt.claim.abandoned_are_gone().await;
    }
}

/// Submits the transaction. Each claim gets its own reply.
fn send(attempts: &mut [Attempt], session: &TrustedSession) {
    let mut ops: Vec<Op> = Vec::with_capacity(attempts.len());
    let mut replies = Vec::with_capacity(attempts.len());
    for attempt in &mut *attempts {
        let path = Arc::clone(&attempt.spec.lock.path);
        attempt.claim.send_by(session, |claim, prefix, mode| {
            ops.push(claim.op(prefix, mode));
            let (reply, to_come) = oneshot::async_channel();
            replies.push(reply);
            Pending::reply("create", path, to_come)
        });
    }
    let (data, number) = (attempts[0].claim.data().to_vec(), replies.len());
    let (sent, session) = (session.multi(&ops), session.clone());
    attempts[0].spec.lock.client.spawn(async move {
        let mut created = created(&session, sent, &data, number).await.map(Vec::into_iter);
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

async fn created(
    session: &TrustedSession,
    sent: Pending<Vec<OpResult>>,
    data: &[u8],
    number: usize,
) -> Result<Vec<Created>> {
    let path_of = |result| match result {
        OpResult::Created(path) => Some(path),
        _ => None,
    };
    let paths: Vec<String> = sent.await?.into_iter().filter_map(path_of).collect();
    if paths.len() != number {
        return Err(Error::new("create", "", Code::OPERATION_TIMEOUT));
    }
    let made: Vec<&str> = paths.iter().map(String::as_str).collect();
    let stat = lookup::read_created(session, &made, data).await?;
    Ok(paths.into_iter().map(|path| Created { path, stat }).collect())
}
