//! Writes into a holder's claim what is wanted of it, and waits until it has broken off.

use super::attempt::{AFTER_TROUBLE, WITHOUT_A_WATCH};
use super::claim_data;
use super::refusal::refused;
use super::spec::Spec;
use crate::client::{TrustedSession, WatchFor};
use crate::error::{Code, Error, Result};
use crate::lock::{Contender, LockError, Revocation};
use crate::runtime::{Timer, within};

/// Asks that holder for the lock; `false`: it does not hold any more.
pub(super) async fn ask(
    spec: &Spec,
    holder: &Contender,
    request: &Revocation,
) -> Result<bool, LockError> {
    let late = || {
        let error = Error::new("revoke", &holder.path, Code::OPERATION_TIMEOUT);
        Err(LockError::outcome_unknown(&spec.path, error))
    };
    let asked = patiently(spec, |session| write(session, holder, request));
    within(spec.client.operation_deadline(), asked, late).await
}

/// Breaks that hold, and waits until its claim is gone; `false`: it was gone before.
pub(super) async fn break_off(
    spec: &Spec,
    holder: &Contender,
    order: &Revocation,
) -> Result<bool, LockError> {
    let mut was_there = false;
    loop {
        let is_there = patiently(spec, |session| write(session, holder, order)).await?;
        if !is_there {
            return Ok(was_there);
        }
        was_there = true;
        patiently(spec, |session| changed(session, holder)).await?;
    }
}

/// Does it on a session that works, until there is an answer.
async fn patiently<T, F: Future<Output = Result<T>>>(
    spec: &Spec,
    work: impl Fn(TrustedSession) -> F,
) -> Result<T, LockError> {
    loop {
        let session = spec.client.trusted_session().await;
        let session = session.map_err(|error| LockError::closed(&spec.path, error))?;
        match work(session).await {
            Err(error) if error.is_transient() => Timer::after(AFTER_TROUBLE).await,
            done => return done.map_err(|error| refused(&spec.path, error)),
        }
    }
}

/// Has it written there, once. `false`: the claim is gone.
async fn write(session: TrustedSession, holder: &Contender, what: &Revocation) -> Result<bool> {
    loop {
        let found = match session.get(&holder.path).await {
            Ok(found) if found.stat.czxid == holder.token => found,
            Ok(_) => return Ok(false),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) => return Err(error),
        };
        let data = claim_data::with_revocation(&found.data, holder.token, what);
        let data = data.ok_or_else(|| {
            let why = "the claim there is another library's, which would not read what is written into it";
            Error::with_detail("revoke", &holder.path, Code::BAD_ARGUMENTS, why)
        })?;
        if data == found.data {
            return Ok(true);
        }
        match session.set(&holder.path, &data, Some(found.stat.version)).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_no_node() => return Ok(false),
            Err(error) if error.code() == Code::BAD_VERSION => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until the claim has changed, or may have.
async fn changed(session: TrustedSession, holder: &Contender) -> Result<()> {
    if !session.has_room_to_watch(&holder.path, WatchFor::Later) {
        Timer::after(WITHOUT_A_WATCH).await;
        return Ok(());
    }
    match session.exists_and_watch(&holder.path).await {
        Ok(found) if found.value.is_some_and(|stat| stat.czxid == holder.token) => {
            // It ends with an error where the session does: the next one shows what has become of it.
            drop(found.watch.await);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
