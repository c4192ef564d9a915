//! Carries an operation out.

use futures_lite::future::{block_on, or, pending, poll_once};
use std::time::Duration;
use zklock::{Access, LockError};
use zklock_testing::Rule;
use zklock_testing::wire::Op;

use crate::contending::Held;
use crate::operation::{How, Operation};
use crate::scenario::{Outcome, Scenario, TIMEOUT};

/// A deadline that passes; long enough that a claim is made before it on most machines.
const SOON: Duration = Duration::from_secs(1);

/// What the caller is told.
#[derive(Debug)]
pub enum Told {
    Held(Held),
    /// What is held, and how its change ended, unless that was given up.
    Changed(Held, Option<Result<(), LockError>>),
    /// Another's hold, and whether that was there.
    Broke(Held, Result<bool, LockError>),
    Taken,
    Nothing,
    Failed(LockError),
}

impl From<Result<Held, LockError>> for Told {
    fn from(answer: Result<Held, LockError>) -> Told {
        answer.map_or_else(Told::Failed, Told::Held)
    }
}

/// Asks for the lock. `is_reached`: whether the fault has come.
pub fn ask(
    scenario: &Scenario,
    operation: &Operation,
    deadline: Duration,
    is_reached: &dyn Fn() -> bool,
) -> Outcome<Told> {
    let told = match operation.how {
        How::Acquire => scenario.lock.acquire().within(deadline).wait().into(),
        How::Try => match scenario.lock.try_acquire().wait() {
            Ok(Some(guard)) => Told::Held(Held::Guard(guard)),
            Ok(None) => Told::Taken,
            Err(error) => Told::Failed(error),
        },
        How::GiveUp => {
            let acquire = async { scenario.lock.acquire().within(deadline).await.into() };
            let give_up = async {
                scenario.give_up.up().await;
                Told::Nothing
            };
            block_on(or(acquire, give_up))
        }
        How::TimeOut => scenario.lock.acquire().within(SOON).wait().into(),
        How::Close => {
            let acquire = async { scenario.lock.acquire().within(deadline).await.into() };
            let close = async {
                scenario.give_up.up().await;
                drop(scenario.client.close());
                pending().await
            };
            block_on(or(acquire, close))
        }
        How::Change(to) => {
            let held = held(scenario)?;
            let changed = match to {
                Access::Write => held.upgrade(),
                to => held.downgrade(to),
            };
            let changed = changed.within(deadline).wait();
            Told::Changed(held, Some(changed))
        }
        How::GiveUpTheUpgrade => {
            let held = held(scenario)?;
            let upgrade = async { Some(held.upgrade().within(deadline).await) };
            let give_up = async {
                scenario.give_up.up().await;
                None
            };
            let changed = block_on(or(upgrade, give_up));
            Told::Changed(held, changed)
        }
        How::Break => {
            let held = held(scenario)?;
            let holder = scenario.holder.lock().take().ok_or("nobody holds")?;
            let broken = scenario.lock.break_hold(&holder).within(deadline).wait();
            Told::Broke(held, broken)
        }
        How::ComeBackLate => return come_back_late(scenario, deadline, is_reached),
    };
    scenario.given_up.raise();
    Ok(told)
}

/// What is held from before.
fn held(scenario: &Scenario) -> Outcome<Held> {
    scenario.held.lock().take().ok_or_else(|| "nothing is held".to_owned())
}

/// Looks for the answer only when the session that gave it is over.
fn come_back_late(
    scenario: &Scenario,
    deadline: Duration,
    is_reached: &dyn Fn() -> bool,
) -> Outcome<Told> {
    let mut acquire = scenario.lock.acquire().within(deadline);
    if let Some(answer) = block_on(poll_once(&mut acquire)) {
        return Ok(answer.into());
    }
    let reply = |ops| scenario.proxy.count(&ops_of(scenario, ops));
    let answered = |count: usize| {
        let replies = reply([Op::Create, Op::Create2]) + reply([Op::GetChildren, Op::GetChildren2]);
        is_reached() || replies >= count
    };
    // What a queue asks for first is its directory; then it claims and lists.
    let claimed = if scenario.recipe.is_numbered() { 3 } else { 1 };
    for count in [1, claimed] {
        scenario.until("the claim is answered", || answered(count))?;
        scenario.wait_until_heard();
        if count < claimed {
            if let Some(answer) = block_on(poll_once(&mut acquire)) {
                return Ok(answer.into());
            }
        }
    }
    let session = scenario.session();
    scenario.disturbed.raise();
    scenario.expire_session()?;
    scenario.wait_until_session_is_not(session)?;
    Ok(acquire.within(TIMEOUT).wait().into())
}

fn ops_of(scenario: &Scenario, ops: [Op; 2]) -> Rule {
    Rule::reply(ops).path_prefix(&scenario.directory)
}
