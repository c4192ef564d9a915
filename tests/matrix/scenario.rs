//! What one run works on: a server, a proxy before it, a path of its own, a client, and strangers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zklock::zookeeper::{SessionKey, SessionState};
use zklock::{Client, Contender};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Error, Proxy, Rule, Server, expire_session};

use crate::bench::Bench;
use crate::contending::{Contending, Held};
use crate::flag::Flag;
use crate::recipe::{Recipe, Waits};
use crate::tree::{Claim, NO_NODE, Stranger, Tree};

/// How long anything may take that is certain to come.
pub const TIMEOUT: Duration = Duration::from_secs(45);
/// Between two looks for something that tells nobody when it comes.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a part of a run has to say when it went wrong.
pub type Outcome<T = ()> = Result<T, String>;

pub struct Scenario {
    pub recipe: &'static Recipe,
    pub server: Arc<Server>,
    pub proxy: Arc<Proxy>,
    /// Where others connect.
    pub aside: Arc<Proxy>,
    pub tree: Arc<Tree>,
    /// Everything of this run is under it.
    pub directory: String,
    /// The lock's path.
    pub path: String,
    pub client: Client,
    /// One for the whole run: it learns whether it has to wait.
    pub lock: Contending,
    /// Of another client.
    pub other: Contending,
    /// What is held before the operation begins.
    pub held: Mutex<Option<Held>>,
    /// What the other client holds before it, and releases when strangers leave.
    pub anothers: Mutex<Option<Held>>,
    /// Who has it, as others see that.
    pub holder: Mutex<Option<Contender>>,
    pub first_session: SessionKey,
    /// The client's latest session that was heard of.
    session: Mutex<SessionKey>,
    pub strangers: Mutex<Vec<Stranger>>,
    /// A stranger has put a claim in the place of one of the client's.
    pub usurped: Flag,
    /// The tokens of the client's claims that others have deleted.
    pub taken: Mutex<Vec<i64>>,
    /// The largest fencing token so far.
    pub largest_token: Mutex<i64>,
    /// A guard's release was asked for, has ended, and was asked for while nothing was heard.
    pub releasing: Flag,
    pub released: Flag,
    pub released_in_silence: Flag,
    /// Tells the caller to give the acquire up.
    pub give_up: Flag,
    pub given_up: Flag,
    /// The first thing of those that happen on the way has happened.
    pub disturbed: Flag,
    /// The caller has its answer.
    pub answered: Flag,
    /// Nothing happens any more that an operation had in mind.
    quiet: Mutex<bool>,
    troubles: Mutex<Vec<String>>,
}

impl Scenario {
    pub fn new(
        recipe: &'static Recipe,
        bench: &Bench,
        directory: String,
        client: Client,
    ) -> Outcome<Arc<Scenario>> {
        let session = client.session().ok_or("the client has no session")?;
        let path = format!("{directory}/lock");
        Ok(Arc::new(Scenario {
            recipe,
            server: Arc::clone(&bench.server),
            proxy: Arc::clone(&bench.proxy),
            aside: Arc::clone(&bench.aside),
            tree: Arc::clone(&bench.tree),
            directory,
            lock: recipe.contending(&client, &path),
            other: recipe.contending(bench.other(recipe), &path),
            held: Mutex::default(),
            anothers: Mutex::default(),
            holder: Mutex::default(),
            path,
            client,
            first_session: session,
            session: Mutex::new(session),
            strangers: Mutex::default(),
            usurped: Flag::default(),
            taken: Mutex::default(),
            largest_token: Mutex::default(),
            releasing: Flag::default(),
            released: Flag::default(),
            released_in_silence: Flag::default(),
            give_up: Flag::default(),
            given_up: Flag::default(),
            disturbed: Flag::default(),
            answered: Flag::default(),
            quiet: Mutex::default(),
            troubles: Mutex::default(),
        }))
    }

    /// Remembers what went wrong where nobody can be told.
    pub fn note(&self, outcome: Outcome) {
        if let Err(trouble) = outcome {
            self.troubles.lock().push(trouble);
        }
    }

    pub fn troubles(&self) -> Outcome {
        let troubles = std::mem::take(&mut *self.troubles.lock());
        if troubles.is_empty() { Ok(()) } else { Err(troubles.join("; ")) }
    }

    /// The frames of the run, the last ones of many.
    pub fn story(&self) -> String {
        const LAST: usize = 40;
        let seen = self.proxy.seen();
        let lines = seen.iter().skip(seen.len().saturating_sub(LAST)).map(|seen| {
            let watch = if seen.watch { "+watch" } else { "" };
            let (direction, op, paths) = (seen.direction, seen.op, seen.paths.join(" "));
            let connection = seen.connection;
            format!("    {connection} {direction:?} {op:?}{watch} {paths} {}", seen.error)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Looks until it holds.
    pub fn until(&self, what: &str, holds: impl FnMut() -> bool) -> Outcome {
        match self.within(TIMEOUT, holds) {
            true => Ok(()),
            false => Err(format!("{what}: not within {TIMEOUT:?}")),
        }
    }

    /// Looks until it holds, or so long; tells whether it held.
    pub fn within(&self, timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            if holds() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// As [`until`](Scenario::until), but not beyond the caller's answer.
    pub fn unless_answered(&self, what: &str, mut holds: impl FnMut() -> bool) -> Outcome {
        self.until(what, || self.answered.is_up() || holds())
    }

    /// The client's session, or the last one while there is none.
    pub fn session(&self) -> SessionKey {
        let mut last = self.session.lock();
        if let Some(session) = self.client.session() {
            *last = session;
        }
        *last
    }

    /// The client's claim, if it has one on the server.
    pub fn own_claim(&self) -> Outcome<Option<Claim>> {
        let session = self.session().id();
        let mut claims = self.tree.claims(self.recipe, &self.path)?.into_iter();
        Ok(claims.find(|claim| claim.session == session))
    }

    /// Whether the client can have a claim, by the frames that have passed: asking the server would take
    /// time where time counts.
    pub fn may_have_a_claim(&self) -> bool {
        let below = |rule: Rule| rule.path_prefix(&self.path);
        let asked = self.proxy.count(&below(self.recipe.creates(Rule::request)));
        let replies = below(self.recipe.creates(Rule::reply));
        let made = self.proxy.count(&replies.clone().error(0));
        let refused = self.proxy.count(&replies) - made;
        let deleted = below(self.recipe.deletes(Rule::reply)).error(0);
        asked > refused + self.proxy.count(&deleted)
    }

    /// The requests for the deletion of a znode, and the replies to them: refused, and done.
    pub fn deletions(&self, path: &str) -> (usize, usize, usize) {
        // As a whole, and by itself.
        let whole = self.recipe.deletes_by_transactions();
        let count = |rule: fn(Ops) -> Rule, done: bool| {
            let of = |rule: Rule| {
                let rule = rule.path(path);
                self.proxy.count(&if done { rule.error(0) } else { rule })
            };
            let alone = of(rule(Op::Delete.into()));
            if whole { alone + of(self.recipe.deletes(rule)) } else { alone }
        };
        let (answered, done) = (count(Rule::reply, false), count(Rule::reply, true));
        (count(Rule::request, false), answered - done, done)
    }

    /// What is written to while the lock is held.
    pub fn data_path(&self) -> String {
        format!("{}/data", self.directory)
    }

    /// The servers end the client's session at once.
    pub fn expire_session(&self) -> Outcome {
        self.expire_session_and(|| Ok(()))
    }

    /// As [`expire_session`](Scenario::expire_session), and something happens before the client knows.
    ///
    /// The client must not come back while its session is about to end: of a connection whose session
    /// is gone, the server drops all requests unanswered.
    pub fn expire_session_and(&self, then: impl FnOnce() -> Outcome) -> Outcome {
        let session = self.session();
        self.proxy.cut();
        let expired = match expire_session(&self.server.hosts(), session.id(), &session.password())
        {
            Ok(()) | Err(Error::SessionExpired { .. }) => then(),
            Err(error) => Err(error.to_string()),
        };
        self.proxy.heal();
        expired
    }

    /// Waits until the client's session has timed out at the server.
    pub fn wait_until_session_ends(&self) -> Outcome {
        let session = self.session().id();
        self.until("the session times out", || {
            std::thread::sleep(8 * LOOK_AGAIN);
            self.server.sessions().is_ok_and(|sessions| !sessions.contains(&session))
        })
    }

    /// Waits until the client is connected, on another session than that.
    pub fn wait_until_session_is_not(&self, before: SessionKey) -> Outcome {
        self.until("there is another session", || {
            self.client.state() == SessionState::Connected && self.session() != before
        })
    }

    /// Waits until the client has heard all that was sent to it, or has lost its connection.
    pub fn wait_until_heard(&self) {
        let _ = self.client.exists("/").within(TIMEOUT).wait();
    }

    /// Waits until a claim of a client of ours is watched by it.
    pub fn wait_until_watched(&self, path: &str) -> Outcome {
        self.until("the claim is watched", || {
            self.server.watches().is_ok_and(|watches| watches.contains_key(path))
        })?;
        self.wait_until_heard();
        Ok(())
    }

    /// Tells the caller to give up, and waits until it has.
    pub fn tell_to_give_up(&self) -> Outcome {
        self.give_up.raise();
        if self.given_up.wait(TIMEOUT) { Ok(()) } else { Err("it does not give up".to_owned()) }
    }

    /// Makes what the first claim needs above it.
    pub fn create_parents(&self) -> Outcome {
        self.tree.make(&self.directory)?;
        let second = self.recipe.second(&self.path);
        second.map_or(Ok(()), |second| self.tree.make(&second))?;
        if self.recipe.is_numbered() { self.tree.make(&self.path) } else { Ok(()) }
    }

    /// Deletes what is above the claims, if there are none, and makes it anew: numbers begin anew.
    pub fn make_way_anew(&self) -> Outcome {
        self.tree.delete(&self.path)?;
        self.create_parents()
    }

    /// A stranger claims the lock.
    pub fn stranger_claims(&self) -> Outcome {
        self.stranger_claims_as(b"stranger")
    }

    /// A stranger claims the lock, and says that of itself.
    pub fn stranger_claims_as(&self, data: &[u8]) -> Outcome {
        self.stranger_claims_by(self.recipe.mark(), data)
    }

    /// As [`stranger_claims_as`](Scenario::stranger_claims_as), with that mark in the claim's name.
    pub fn stranger_claims_by(&self, mark: &str, data: &[u8]) -> Outcome {
        let claim = || Stranger::claim(&self.server, self.recipe, &self.path, mark, data);
        let stranger = match claim() {
            // Somebody has tidied up.
            Err(error) if error.code() == Some(NO_NODE) => {
                self.create_parents()?;
                claim()
            }
            claimed => claimed,
        };
        let stranger = stranger.map_err(|error| format!("a stranger claims: {error}"))?;
        self.strangers.lock().push(stranger);
        Ok(())
    }

    /// All strangers delete their claims, and the other client releases what it holds before.
    pub fn strangers_leave(&self) -> Outcome {
        let strangers = std::mem::take(&mut *self.strangers.lock());
        strangers.iter().try_for_each(|stranger| self.tree.delete_claim(&stranger.claim))?;
        let anothers = self.anothers.lock().take();
        let released = anothers.map_or(Ok(()), |held| held.release().within(TIMEOUT).wait());
        released.map_err(|error| format!("the other one releases: {error}"))
    }

    /// The stranger that claimed last deletes its claim.
    pub fn last_stranger_leaves(&self) -> Outcome {
        let last = self.strangers.lock().pop();
        last.map_or(Ok(()), |stranger| self.tree.delete_claim(&stranger.claim))
    }

    /// All strangers' sessions end.
    pub fn strangers_die(&self) -> Outcome {
        let strangers = std::mem::take(&mut *self.strangers.lock());
        strangers.into_iter().try_for_each(|stranger| stranger.die(&self.server))
    }

    /// Strangers' claims that somebody has deleted or replaced.
    pub fn robbed_strangers(&self) -> Outcome<Vec<Claim>> {
        let strangers = self.strangers.lock();
        let mut robbed = Vec::new();
        for stranger in strangers.iter() {
            if self.tree.claim(&stranger.claim.path)?.as_ref() != Some(&stranger.claim) {
                robbed.push(stranger.claim.clone());
            }
        }
        Ok(robbed)
    }

    /// Does something when a frame comes, before it goes on; but not once the caller has its answer.
    /// Faults at that frame come after it.
    pub fn when(self: &Arc<Self>, rule: Rule, act: fn(&Scenario) -> Outcome) {
        let scenario = Arc::clone(self);
        self.on_the_way(
            rule,
            move || if scenario.answered.is_up() { Ok(()) } else { act(&scenario) },
        );
    }

    /// As [`when`](Scenario::when), for what the release asks for.
    pub fn when_released(self: &Arc<Self>, rule: Rule, act: fn(&Scenario) -> Outcome) {
        let scenario = Arc::clone(self);
        self.on_the_way(rule, move || act(&scenario));
    }

    fn on_the_way(self: &Arc<Self>, rule: Rule, act: impl Fn() -> Outcome + Send + 'static) {
        self.at(rule, move |scenario| {
            scenario.disturbed.raise();
            act()
        });
    }

    /// Does something when a frame comes, before it goes on, until the operation is over.
    pub fn at(self: &Arc<Self>, rule: Rule, act: impl Fn(&Scenario) -> Outcome + Send + 'static) {
        let scenario = Arc::clone(self);
        self.proxy.on(
            rule,
            Action::run(move || {
                let quiet = scenario.quiet.lock();
                if !*quiet {
                    scenario.note(act(&scenario));
                }
            }),
        );
    }

    /// The frame that this happens at is lost, with its connection.
    pub fn lose(&self) -> Outcome {
        self.proxy.reset_all();
        Ok(())
    }

    /// Nothing that an operation had in mind happens after this.
    pub fn be_quiet(&self) {
        *self.quiet.lock() = true;
    }

    /// Does something when the contender is told to wait, before it knows.
    pub fn when_refused(self: &Arc<Self>, act: fn(&Scenario) -> Outcome) {
        let refusals = self.recipe.refusals(&self.directory);
        // The first pause of one that asks again is over then.
        let nth = if self.recipe.waits == Waits::Asking { 2 } else { 1 };
        self.when(refusals.nth(nth), act);
    }
}
