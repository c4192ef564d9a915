//! A leader's choice of the next one: the waiters before the chosen one give way to it.
//!
//! The leader acquires a lock below the election's, with the claim of the chosen one in its label, and resigns. A claim
//! that acquires the election's lock reads that label before it leads. If the label names another claim that still
//! waits, it goes to the end of the queue. That only chooses a waiter: the holder of the election's lock leads, so a late,
//! stale or senseless label cannot make two leaders. Each claim gives way at most once, because it is behind the chosen one
//! then. The label is gone with the session of the leader that hands over.
//!
//! No look can miss the label: it was written before the lock was released, and any server that shows the release shows
//! the label.

use std::time::Duration;

use super::Lock;
use super::caller::Caller;
use super::error::LockError;
use super::guard::Guard;
use super::store::Change;
use crate::error::Error;
use crate::path::own_name;
use crate::runtime::{Pending, Timer};

/// Between two looks, where one has failed.
const PAUSE: Duration = Duration::from_millis(20);

/// The prefix of the chosen one's name.
const TO: &str = "to ";

#[derive(Clone, Debug)]
pub(super) struct Handover {
    /// Whose holder leads.
    lock: Lock,
    /// Whose holder has named the next one.
    name: Lock,
}

impl Handover {
    pub(super) fn new(lock: &Lock) -> Handover {
        let path =
            format!(concat!("{}/", own_name!("handover")), lock.path().trim_end_matches('/'));
        let name = Lock::new(lock.stored().with(Change::Path(path)));
        Handover { lock: lock.clone(), name }
    }

    pub(super) fn path(&self) -> &str {
        self.lock.path()
    }

    /// Gives way for as long as another is chosen that waits.
    pub(super) async fn give_way(
        &self,
        mut guard: Guard,
        caller: &Caller,
    ) -> Result<Guard, LockError> {
        while self.is_for_another(&guard).await? {
            // Before the next of those who wait can do the same: so they keep their order.
            let again = caller.acts(|| self.lock.acquire());
            // Whatever becomes of the answer: its claim is deleted, or its session is over.
            let _ = guard.release().await;
            guard = again.await?;
        }
        Ok(guard)
    }

    /// Gives way if another is chosen that waits: then the time is over.
    #[cfg(feature = "capi")]
    pub(super) async fn lead_at_once(&self, guard: Guard) -> Result<Guard, LockError> {
        if self.is_for_another(&guard).await? {
            let path = guard.path().to_owned();
            let _ = guard.release().await;
            return Err(LockError::timed_out(&path, None));
        }
        Ok(guard)
    }

    /// Whether the holder is not to lead: because another is chosen, or because it does not hold any more.
    async fn is_for_another(&self, guard: &Guard) -> Result<bool, LockError> {
        let asked = async {
            let is_for_another = match self.chosen().await? {
                Some(chosen) if chosen != guard.fencing_token() => self.is_there(chosen).await?,
                _ => false,
            };
            Ok(is_for_another || guard.is_lost())
        };
        // Servers may be away for long.
        let lost = async {
            guard.lost().await;
            Ok(true)
        };
        futures_lite::future::or(asked, lost).await
    }

    async fn chosen(&self) -> Result<Option<i64>, LockError> {
        let who_hands_over = until_answered(|| self.name.holder()).await?;
        Ok(who_hands_over.and_then(|who| who.label.strip_prefix(TO)?.parse().ok()))
    }

    async fn is_there(&self, claim: i64) -> Result<bool, LockError> {
        let contenders = until_answered(|| self.lock.contenders()).await?;
        Ok(contenders.iter().any(|contender| contender.token == claim))
    }

    /// Has the holder let go in favour of that claim.
    pub(super) async fn run(&self, guard: &Guard, to: i64) -> Result<bool, LockError> {
        let named = async {
            let name = self.name.clone().label(format!("{TO}{to}")).acquire().await?;
            Ok((name, self.is_there(to).await?))
        };
        let lost = async { Err(LockError::not_held(guard.path(), guard.lost().await)) };
        let (name, is_there) = futures_lite::future::or(lost, named).await?;
        if !is_there || to == guard.fencing_token() {
            return Ok(is_there);
        }
        guard.release_now().await?;
        let lost = async {
            let reason = name.lost().await;
            Err(LockError::not_held(name.path(), reason))
        };
        let led = futures_lite::future::or(self.has_come_to_lead(to), lost).await;
        led.map_err(|error| {
            let detail = format!("whether the chosen one comes to lead: {error}");
            let error = Error::with_detail("hand over", self.path(), error.code(), detail);
            LockError::outcome_unknown(self.path(), error)
        })
    }

    async fn has_come_to_lead(&self, to: i64) -> Result<bool, LockError> {
        let mut holders = self.lock.watch_holder();
        loop {
            match holders.next().await {
                Some(Ok(Some(holder))) if holder.token == to => return Ok(true),
                // The holder after it is another than all before, and so is none.
                Some(Ok(_)) if !self.is_there(to).await? => return Ok(false),
                Some(Ok(_)) => {}
                Some(Err(error)) if !may_pass(&error) => return Err(error),
                Some(Err(_)) | None => {
                    Timer::after(PAUSE).await;
                    holders = self.lock.watch_holder();
                }
            }
        }
    }
}

async fn until_answered<T>(ask: impl Fn() -> Pending<T, LockError>) -> Result<T, LockError> {
    loop {
        match ask().await {
            Err(error) if may_pass(&error) => Timer::after(PAUSE).await,
            answer => return answer,
        }
    }
}

/// Whether another try may succeed: the store is out of reach, say.
fn may_pass(error: &LockError) -> bool {
    matches!(error, LockError::Store { .. })
}
