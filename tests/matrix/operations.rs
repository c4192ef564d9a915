//! The operations that are put through the matrix.
//!
//! Where something happens on the way ("its reply to create lost"), the steps that repair it are
//! steps like all others, and meet every fault as well.

use std::sync::Arc;

use zklock::{Access, LockError};
use zklock_testing::Rule;
use zklock_testing::wire::{Op, Ops};

use crate::foreign::Interference;
use crate::operation::{Answer, Begins, How, Operation, Then};
use crate::recipe::Recipe;
use crate::scenario::{Outcome, Scenario, TIMEOUT};

pub const OPERATIONS: &[Operation] = &[
    Operation::new("acquire a free lock").restarts().pairs().sample(),
    Operation::new("acquire in a missing directory").before(|_| Ok(())).also_shared(),
    Operation::new("acquire while its directory is tidied away")
        .before(tidied_away)
        .begins(Begins::WithTheDisturbance),
    Operation::new("acquire behind a holder that releases")
        .before(behind_a_holder)
        .restarts()
        .pairs()
        .sample(),
    Operation::new("acquire behind a holder that announces")
        .before(behind_one_that_announces)
        .restarts()
        .pairs()
        .sample()
        .only(Recipe::is_announced),
    Operation::new("acquire behind a holder that dies")
        .before(behind_a_dying_holder)
        .begins(Begins::WithTheDisturbance),
    Operation::new("acquire while the one ahead goes")
        .before(the_one_ahead_goes)
        .begins(Begins::WithTheDisturbance)
        .only(Recipe::watches),
    Operation::new("acquire behind a waiter that goes unseen")
        .before(the_waiter_ahead_goes_unseen)
        .begins(Begins::WithTheDisturbance)
        .only(Recipe::is_numbered),
    Operation::new("acquire behind a waiter that gives up")
        .before(the_waiter_ahead_gives_up)
        .begins(Begins::WithTheDisturbance)
        .only(Recipe::is_numbered),
    Operation::new("acquire behind a holder again")
        .before(behind_a_holder_again)
        .only(Recipe::is_numbered),
    Operation::new("acquire a free lock that was busy").before(wait_once).only(Recipe::is_numbered),
    Operation::new("acquire through a reconnection")
        .before(behind)
        .meanwhile(reconnect_and_leave)
        .begins(Begins::WithTheDisturbance)
        .restarts()
        .only(Recipe::watches),
    Operation::new("acquire with its reply lost")
        .before(reply_to_create_lost)
        .begins(Begins::WithTheDisturbance)
        .restarts(),
    Operation::new("acquire with its claim deleted by somebody")
        .before(claim_deleted)
        .begins(Begins::WithTheDisturbance)
        .only(Recipe::is_numbered),
    Operation::new("acquire with its claim replaced by another's")
        .before(claim_replaced)
        .begins(Begins::WithTheDisturbance)
        .only(|recipe| !recipe.is_numbered()),
    Operation::new("acquire with its lost claim still shown")
        .before(lost_claim_shown)
        .begins(Begins::WithTheDisturbance)
        .ends_the_session()
        .only(Recipe::is_numbered),
    Operation::new("acquire with its claim's name another's")
        .before(name_of_claim_taken)
        .begins(Begins::WithTheDisturbance)
        .ends_the_session()
        .only(Recipe::is_numbered),
    Operation::new("acquire and come back late")
        .how(How::ComeBackLate, Answer::Held)
        .begins(Begins::WithTheDisturbance)
        .ends_the_session(),
    Operation::new("try a free lock").how(How::Try, Answer::Held).also_shared(),
    Operation::new("try a taken lock").how(How::Try, Answer::Taken).before(behind).also_shared(),
    Operation::new("try and be overtaken")
        .how(How::Try, Answer::Taken)
        .before(overtaken)
        .begins(Begins::WithTheDisturbance)
        .only(Recipe::is_numbered),
    Operation::new("give up while waiting")
        .how(How::GiveUp, Answer::Nothing)
        .before(given_up)
        .restarts()
        .pairs(),
    Operation::new("give up while claiming")
        .how(How::GiveUp, Answer::Nothing)
        .before(given_up_while_claiming),
    Operation::new("give up with its reply lost")
        .how(How::GiveUp, Answer::Nothing)
        .before(given_up_with_its_reply_lost)
        .begins(Begins::WithTheDisturbance)
        .pairs(),
    Operation::new("hold").then(Then::Hold).begins(Begins::WithTheAnswer).restarts(),
    Operation::new("hold what is announced")
        .then(Then::Hold)
        .begins(Begins::WithTheAnswer)
        .restarts()
        .sample()
        .only(Recipe::is_announced),
    Operation::new("drop the guard").then(Then::Drop).begins(Begins::WithTheAnswer).pairs(),
    Operation::new("release with its request lost")
        .before(request_to_delete_lost)
        .loses_deletions()
        .pairs()
        .begins(Begins::WithTheAnswer),
    Operation::new("release with its reply lost")
        .before(reply_to_delete_lost)
        .loses_deletions()
        .begins(Begins::WithTheAnswer),
    Operation::new("release with its reply lost and a successor")
        .before(succeeded_unseen)
        .loses_deletions()
        .begins(Begins::WithTheAnswer),
    Operation::new("release what another holds")
        .then(Then::ReleaseTooLate)
        .begins(Begins::WithTheAnswer)
        .only(|recipe| !recipe.is_numbered()),
    Operation::new("time out while waiting")
        .how(How::TimeOut, Answer::TimedOut)
        .before(behind)
        .begins(Begins::WithTheAnswer)
        .pairs()
        .only(Recipe::is_numbered),
    Operation::new("time out while claiming")
        .how(How::TimeOut, Answer::TimedOut)
        .before(timed_out_while_claiming)
        .begins(Begins::WithTheAnswer)
        .pairs(),
    Operation::new("drop the guard with its reply lost")
        .then(Then::Drop)
        .before(reply_to_delete_lost)
        .loses_deletions()
        .begins(Begins::WithTheAnswer),
    Operation::new("write under the lock")
        .then(Then::Write)
        .before(data_beside)
        .begins(Begins::WithTheAnswer),
    Operation::new("upgrade")
        .how(How::Change(Access::Write), Answer::Changed(Access::Write))
        .before(held)
        .pairs()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("upgrade behind a reader that releases")
        .how(How::Change(Access::Write), Answer::Changed(Access::Write))
        .before(held_behind_a_reader)
        .also_shared()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("upgrade past a writer that waits")
        .how(How::Change(Access::Write), Answer::Changed(Access::Write))
        .before(held_before_a_writer)
        .pairs()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("upgrade past a writer that gives up")
        .how(How::Change(Access::Write), Answer::Changed(Access::Write))
        .before(held_before_a_writer_that_gives_up)
        .begins(Begins::WithTheDisturbance)
        .also_shared()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("upgrade and give up")
        .how(How::GiveUpTheUpgrade, Answer::Changed(Access::Upgradeable))
        .before(upgrade_given_up)
        .also_shared()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("return from an upgrade")
        .how(How::Change(Access::Upgradeable), Answer::Changed(Access::Upgradeable))
        .before(held_and_upgraded)
        .also_shared()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("downgrade after an upgrade")
        .how(How::Change(Access::Read), Answer::Changed(Access::Read))
        .before(held_and_upgraded)
        .also_shared()
        .sample()
        .only(Recipe::is_upgradeable),
    Operation::new("downgrade to a reader")
        .how(How::Change(Access::Read), Answer::Changed(Access::Read))
        .before(held_before_a_writer)
        .pairs()
        .only(Recipe::is_a_writers),
    Operation::new("downgrade to an upgradeable reader")
        .how(How::Change(Access::Upgradeable), Answer::Changed(Access::Upgradeable))
        .before(held)
        .also_shared()
        .only(Recipe::is_a_writers),
    Operation::new("acquire again")
        .then(Then::Again)
        .begins(Begins::WithTheAnswer)
        .also_shared()
        .sample()
        .only(Recipe::is_reentrant),
    Operation::new("break another's hold")
        .how(How::Break, Answer::Broken)
        .before(another_holds)
        .also_shared()
        .sample()
        .only(Recipe::is_broken),
    Operation::new("hold what another breaks")
        .then(Then::Broken)
        .begins(Begins::WithTheAnswer)
        .also_shared()
        .sample()
        .only(Recipe::is_broken),
    Operation::new("close while holding").then(Then::Close).begins(Begins::WithTheAnswer).closes(),
    Operation::new("close while waiting")
        .how(How::Close, Answer::Closed)
        .before(given_up)
        .begins(Begins::WithTheDisturbance)
        .closes()
        .only(Recipe::watches),
    Operation::new("close while claiming")
        .how(How::Close, Answer::Closed)
        .before(given_up_while_claiming)
        .begins(Begins::WithTheDisturbance)
        .closes(),
    Operation::new("close after dropping the guard")
        .then(Then::DropAndClose)
        .begins(Begins::WithTheAnswer)
        .closes(),
];

fn behind(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.stranger_claims()
}

fn behind_a_holder(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

fn behind_a_dying_holder(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.when_refused(Scenario::strangers_die);
    Ok(())
}

/// It is held, and its claim is watched.
fn held(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let guard = scenario.lock.acquire().within(TIMEOUT).wait();
    let guard = guard.map_err(|error| error.to_string())?;
    scenario.wait_until_watched(&guard.claim_path())?;
    *scenario.held.lock() = Some(guard);
    Ok(())
}

fn held_and_upgraded(scenario: &Arc<Scenario>) -> Outcome {
    held(scenario)?;
    let held = scenario.held.lock();
    let upgraded = held.as_ref().map_or(Ok(()), |held| held.upgrade().within(TIMEOUT).wait());
    upgraded.map_err(|error| error.to_string())
}

fn held_behind_a_reader(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.stranger_claims_by("__READ__", b"stranger")?;
    held(scenario)?;
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

fn held_before_a_writer(scenario: &Arc<Scenario>) -> Outcome {
    held(scenario)?;
    scenario.stranger_claims_by("__WRIT__", b"stranger")
}

/// The writer goes between the look that found it and the claim in its place.
fn held_before_a_writer_that_gives_up(scenario: &Arc<Scenario>) -> Outcome {
    held_before_a_writer(scenario)?;
    let claim = scenario.recipe.creates(Rule::request).path_prefix(&scenario.directory);
    scenario.when(claim.nth(2), Scenario::strangers_leave);
    Ok(())
}

fn upgrade_given_up(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.stranger_claims_by("__READ__", b"stranger")?;
    held(scenario)?;
    scenario.when_refused(Scenario::tell_to_give_up);
    Ok(())
}

fn another_holds(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let guard = scenario.other.acquire().within(TIMEOUT).wait();
    let guard = guard.map_err(|error| error.to_string())?;
    scenario.wait_until_watched(&guard.claim_path())?;
    let contenders = scenario.other.contenders().within(TIMEOUT).wait();
    let contenders = contenders.map_err(|error| error.to_string())?;
    *scenario.holder.lock() = contenders.into_iter().next();
    *scenario.held.lock() = Some(guard);
    Ok(())
}

/// The lock had to be waited for before, so the next acquire expects that, too.
pub fn wait_once(scenario: &Arc<Scenario>) -> Outcome {
    behind_a_holder(scenario)?;
    let guard =
        scenario.lock.acquire().within(TIMEOUT).wait().map_err(|error| error.to_string())?;
    guard.release().within(TIMEOUT).wait().map_err(|error| error.to_string())?;
    scenario.disturbed.lower();
    Ok(())
}

/// The other client has waited before as well, and holds.
fn behind_one_that_announces(scenario: &Arc<Scenario>) -> Outcome {
    let wrong = |error: LockError| error.to_string();
    behind(scenario)?;
    let other = scenario.other.clone();
    let waiting = std::thread::spawn(move || other.acquire().within(TIMEOUT).wait());
    let directory = format!("{}/", scenario.path);
    let waited = scenario.until("the other one waits", || {
        let watches = scenario.server.watches().unwrap_or_default();
        watches.keys().any(|path| path.starts_with(&directory))
    });
    scenario.strangers_leave()?;
    let waited_for = waiting.join().map_err(|_| "the other one panicked".to_owned())?;
    waited_for.and_then(|guard| guard.release().within(TIMEOUT).wait()).map_err(wrong)?;
    waited?;
    let guard = scenario.other.acquire().within(TIMEOUT).wait().map_err(wrong)?;
    scenario.wait_until_watched(&guard.claim_path())?;
    *scenario.anothers.lock() = Some(guard);
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

fn behind_a_holder_again(scenario: &Arc<Scenario>) -> Outcome {
    wait_once(scenario)?;
    behind_a_holder(scenario)
}

/// Its predecessor goes between the look that found it and the look at it.
fn the_one_ahead_goes(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    let look = Rule::request(Op::GetData).watching(true).path_prefix(&scenario.directory);
    scenario.when(look.once(), Scenario::strangers_leave);
    Ok(())
}

/// As [`the_one_ahead_goes`], but the one ahead was only a waiter: the holder stays a while.
fn the_waiter_ahead_goes_unseen(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.stranger_claims()?;
    let look = Rule::request(Op::GetData).watching(true).path_prefix(&scenario.directory);
    scenario.when(look.once(), Scenario::last_stranger_leaves);
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

/// The one that is watched goes, and did not hold.
fn the_waiter_ahead_gives_up(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.stranger_claims()?;
    scenario.when_refused(Scenario::last_stranger_leaves);
    let again = scenario.recipe.refusals(&scenario.directory).nth(2);
    scenario.when(again, Scenario::strangers_leave);
    Ok(())
}

/// What was just made above the claim is gone again before the claim comes.
fn tidied_away(scenario: &Arc<Scenario>) -> Outcome {
    let claim = scenario.recipe.creates(Rule::request).path_prefix(&scenario.directory);
    scenario.when(claim.nth(2), |scenario| {
        scenario.tree.delete(&scenario.path)?;
        scenario.tree.delete(&scenario.directory)
    });
    Ok(())
}

/// The connection breaks while the contender watches; the holder leaves after that.
fn reconnect_and_leave(scenario: &Scenario) -> Outcome {
    let refusals = scenario.recipe.refusals(&scenario.directory);
    let told = || scenario.proxy.count(&refusals);
    scenario.unless_answered("it is told to wait", || told() > 0)?;
    scenario.wait_until_heard();
    scenario.disturbed.raise();
    scenario.proxy.reset_all();
    let again = Rule::reply([Op::SetWatches, Op::SetWatches2]);
    scenario
        .unless_answered("it watches again", || scenario.proxy.count(&again) > 0 || told() > 1)?;
    scenario.strangers_leave()
}

fn reply_to_create_lost(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.when(replies_to_create(scenario).once(), Scenario::lose);
    Ok(())
}

fn replies_to_create(scenario: &Scenario) -> Rule {
    scenario.recipe.creates(Rule::reply).path_prefix(&scenario.directory)
}

/// Somebody deletes the contender's claim, and the holder leaves.
fn claim_deleted(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.when_refused(|scenario| {
        scenario.interfere(Interference::DeletesClaim)?;
        scenario.strangers_leave()
    });
    Ok(())
}

/// Its claim, found again after a lost reply, is another's when it is looked at.
fn claim_replaced(scenario: &Arc<Scenario>) -> Outcome {
    reply_to_create_lost(scenario)?;
    let looks = Rule::request(Op::GetData).watching(false).path_prefix(&scenario.directory);
    scenario.when(looks.nth(2), |scenario| {
        scenario.tree.delete(&scenario.path)?;
        scenario.stranger_claims()
    });
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

/// The reply is lost and the session ends, but the claim is still there to be seen, word for word: so
/// a server shows it that lags behind the others.
fn lost_claim_shown(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.when(replies_to_create(scenario).once(), |scenario| {
        let claims = scenario.tree.claims(scenario.recipe, &scenario.path)?;
        let data =
            claims.first().map_or(Ok(Vec::new()), |claim| scenario.tree.data(&claim.path))?;
        scenario.expire_session_and(|| {
            scenario.make_way_anew()?;
            scenario.stranger_claims_as(&data)
        })
    });
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

/// The session ends with the claim made and not yet known to be first. Then numbers begin anew, and
/// a stranger gets the one that the claim had.
fn name_of_claim_taken(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    // The first listing asks for the directory, the second follows the claim.
    let listing = Rule::reply(Ops::lists()).path_prefix(&scenario.directory);
    scenario.when(listing.nth(2), |scenario| {
        scenario.expire_session_and(|| {
            scenario.make_way_anew()?;
            scenario.stranger_claims()
        })
    });
    scenario.when_refused(Scenario::strangers_leave);
    Ok(())
}

/// Somebody claims between the look that found the lock free and the claim.
fn overtaken(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let claim = scenario.recipe.creates(Rule::request).path_prefix(&scenario.directory);
    scenario.when(claim.once(), Scenario::stranger_claims);
    Ok(())
}

fn given_up(scenario: &Arc<Scenario>) -> Outcome {
    behind(scenario)?;
    scenario.when_refused(Scenario::tell_to_give_up);
    Ok(())
}

fn given_up_while_claiming(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.when(replies_to_create(scenario).once(), Scenario::tell_to_give_up);
    Ok(())
}

fn given_up_with_its_reply_lost(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.when(replies_to_create(scenario).once(), |scenario| {
        scenario.tell_to_give_up()?;
        scenario.lose()
    });
    Ok(())
}

/// The reply comes to nobody, and is lost.
fn timed_out_while_claiming(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.when_released(replies_to_create(scenario).once(), |scenario| {
        scenario.answered.wait(TIMEOUT);
        scenario.lose()
    });
    Ok(())
}

fn data_beside(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    scenario.tree.make(&scenario.data_path())
}

fn deletes(scenario: &Scenario) -> [Rule; 2] {
    [scenario.recipe.deletes(Rule::request), scenario.recipe.deletes(Rule::reply)]
        .map(|rule| rule.path_prefix(&scenario.directory).once())
}

fn request_to_delete_lost(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let [request, _] = deletes(scenario);
    scenario.when_released(request, Scenario::lose);
    Ok(())
}

fn reply_to_delete_lost(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let [_, reply] = deletes(scenario);
    scenario.when_released(reply, Scenario::lose);
    Ok(())
}

/// The claim is deleted, its owner does not know, and another's has its name by now.
fn succeeded_unseen(scenario: &Arc<Scenario>) -> Outcome {
    scenario.create_parents()?;
    let [_, reply] = deletes(scenario);
    scenario.when_released(reply, |scenario| {
        if scenario.recipe.is_numbered() {
            scenario.make_way_anew()?;
        }
        scenario.stranger_claims()?;
        scenario.lose()
    });
    Ok(())
}
