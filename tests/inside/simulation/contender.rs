//! What a contender does: its acquires, one after the other, by the public lock.

use std::hash::Hash;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_lite::future::or;

use super::board::{Post, SeenTenure, SharedBoard};
use super::handle::Shared;
use super::scenario::{Scenario, Wait};
use super::server::{Life, Record, number, parent};
use super::share::Share;
use crate::client::Client;
use crate::lock::{Access, Guard, Lock, LockError, MultiLock, Strategy};
use crate::runtime::Pending;
use crate::znode::Stat;
use crate::zookeeper::claim::payload;
use crate::zookeeper::name;
use crate::zookeeper::shortcuts::memory::PathMemory;
use crate::zookeeper::shortcuts::succession::UNWATCHED;

/// What a contender contends for.
enum Wanted {
    One(Lock),
    Several(MultiLock),
}

impl Wanted {
    fn labelled(&self, label: &str) -> Wanted {
        match self {
            Wanted::One(lock) => Wanted::One(lock.clone().label(label)),
            Wanted::Several(all) => {
                let locks = all.locks().iter();
                Wanted::Several(MultiLock::new(locks.map(|lock| lock.clone().label(label))))
            }
        }
    }

    fn acquire(&self) -> Pending<Guard, LockError> {
        match self {
            Wanted::One(lock) => lock.acquire(),
            Wanted::Several(all) => all.acquire(),
        }
    }

    fn try_acquire(&self) -> Pending<Option<Guard>, LockError> {
        match self {
            Wanted::One(lock) => lock.try_acquire(),
            Wanted::Several(all) => all.try_acquire(),
        }
    }
}

/// One contender, with all it needs.
struct Party {
    number: usize,
    client: usize,
    wanted: Wanted,
    locks: &'static [&'static str],
    in_queue: bool,
    share: Share,
    /// What it turns what it holds into.
    becomes: Vec<Access>,
    /// Whether numbers are given out of turn, and what is held stays what it is.
    at_the_end: bool,
    /// What its client knows of each lock.
    memories: Vec<Arc<PathMemory>>,
    world: Shared,
    board: SharedBoard,
    /// Whether nothing can go wrong.
    calm: bool,
    waits: bool,
    operation_timeout: Duration,
}

/// Does all acquires of a contender.
pub(super) async fn contend(
    client: Client,
    world: Shared,
    board: SharedBoard,
    number: usize,
    of: Arc<Scenario>,
) {
    let contender = &of.contenders[number];
    let (locks, share) = (contender.locks, contender.share);
    let memories = locks.iter().map(|path| client.inner().registry.of(path)).collect();
    let at = |path: &str| match share {
        Share::Reads => client.read_write(path).read(),
        Share::Looks => client.read_write(path).upgradeable(),
        Share::Takes(permits) => client.semaphore(path, of.limit).permits(permits),
        Share::Alone if !contender.becomes.is_empty() => client.read_write(path).write(),
        // Both names of those who hold alone are there beside each other.
        Share::Alone if number % 2 == 1 && of.is_mixed() => client.read_write(path).write(),
        Share::Alone => client.lock(path).strategy(of.strategy),
    };
    let wanted = match locks {
        [path] => Wanted::One(at(path)),
        paths => Wanted::Several(MultiLock::new(paths.iter().map(|path| at(path)))),
    };
    let in_queue = of.strategy == Strategy::Queue;
    let (calm, waits, client) = (of.faults == 0, contender.waits, contender.client);
    let operation_timeout = of.operation_timeout;
    let (becomes, at_the_end) =
        (contender.becomes.clone(), of.directory.is_some_and(|next| next > 1 << 30));
    let party = Party {
        number,
        client,
        wanted,
        locks,
        in_queue,
        share,
        becomes,
        at_the_end,
        memories,
        world,
        board,
        calm,
        waits,
        operation_timeout,
    };
    for wait in &contender.acquires {
        party.run(*wait).await;
    }
    party.board.lock().posts[number].done = true;
}

impl Party {
    async fn run(&self, wait: Wait) {
        let attempt = self.post(|post| {
            post.acquires = Some(wait);
            post.attempts += 1;
            post.attempts
        });
        let label = label(self.number, attempt);
        let wanted = self.wanted.labelled(&label);
        let (seen, begun) = (self.seen(), crate::runtime::now());
        let acquiring = async {
            Some(match wait {
                Wait::Forever => wanted.acquire().await.map(Some),
                Wait::Within(limit) => wanted.acquire().within(limit).await.map(Some),
                Wait::Not => wanted.try_acquire().await,
            })
        };
        let cancelled = async {
            self.told(|post| post.told_to_cancel).await;
            None
        };
        let outcome = or(acquiring, cancelled).await;
        self.world.lock().clients[self.client].ended += 1;
        self.post(|post| {
            post.acquires = None;
            post.told_to_cancel = false;
        });
        let limit = match wait {
            Wait::Forever => None,
            Wait::Within(limit) => Some(limit),
            Wait::Not => Some(self.operation_timeout),
        };
        let is_late = limit.is_some_and(|limit| crate::runtime::now() >= begun + limit);
        match outcome {
            Some(Ok(Some(guard))) => self.hold(&label, guard).await,
            Some(Ok(None)) => self.check_sent_away(&label, seen),
            Some(Err(error)) if is_late && error.is_timeout() => self.board.lock().late += 1,
            None => {}
            Some(Err(error)) => self.complain(|| format!("an acquire failed: {error}")),
        }
    }

    /// Which of its handles the client has, and what it has seen of the servers.
    fn seen(&self) -> (usize, i64) {
        let world = self.world.lock();
        let client = &world.clients[self.client];
        (client.link, client.seen)
    }

    /// Who only tries is sent away if another claim is there, or was when it was looked for: also its own of
    /// a session that the servers have not ended yet.
    fn check_sent_away(&self, label: &str, (link, seen): (usize, i64)) {
        let (link_now, _) = self.seen();
        let seen = if link_now == link { seen } else { 0 };
        let (anybody, own) = {
            let world = self.world.lock();
            let session = world.clients[self.client].session;
            let is_own = |it: &Record| it.session == session && is_labelled(it, label);
            let alive = world.leader.life(session) == Life::Alive;
            let was_there = |it: &&Record| !is_own(it) && it.gone.is_none_or(|gone| gone > seen);
            let records = world.leader.records.values();
            let is_kept_out_of = |lock: &str| {
                let of_lock = |it: &&Record| it.path == lock || parent(&it.path) == lock;
                let others = records.clone().filter(of_lock).filter(was_there);
                // Who has the only number that is left to be given keeps everybody out.
                let is_last = |it: &Record| name::sequence(name::last(&it.path)) == Some(i32::MAX);
                if self.at_the_end && others.clone().any(is_last) {
                    return true;
                }
                self.share.is_kept_out_by(others.map(|it| Share::of(&it.path)), world.limits.0)
            };
            let anybody = self.locks.iter().any(|lock| is_kept_out_of(lock));
            (anybody, alive && records.clone().any(|it| it.gone.is_none() && is_own(it)))
        };
        if !anybody {
            self.complain(|| "it was sent away, and nobody else was there".to_owned());
        }
        if own {
            self.complain(|| "it was sent away, and its claim is there".to_owned());
        }
    }

    /// What is wrong with a tenure from the start.
    fn check_birth(&self, label: &str, tenure: &SeenTenure) -> Option<String> {
        let (node, ended) = (&tenure.node, tenure.ended());
        if let Some(reason) = ended.filter(|_| node.session.is_trusted()) {
            return Some(format!("its guard is lost from the start: {reason:?}"));
        }
        let token = tenure.number();
        let world = self.world.lock();
        let Some(record) = world.leader.records.get(&token) else {
            return Some(format!("its token {token} is no claim's czxid"));
        };
        if (record.path.as_str(), record.session) != (&*node.path, node.session.id()) {
            return Some(format!(
                "its token {token} is that of {}, not {}",
                record.path, node.path
            ));
        }
        if !is_labelled(record, label) {
            return Some(format!("it holds with another's claim, {token}"));
        }
        if self.in_queue && record.gone.is_none() && !world.is_named_for(&node.path) {
            return Some(format!("it holds with {}, the name of another directory", node.path));
        }
        let client = &world.clients[self.client];
        if client.shown.has_told(token) {
            return Some(format!("it holds with {token}, which it was shown to be gone"));
        }
        // One is believed to be there as long as it is young.
        let is_young = client.clock < record.submitted + UNWATCHED;
        (world.robbed.get(&token) == Some(&false) && !is_young)
            .then(|| format!("it holds with {token}, which never might"))
    }

    async fn hold(&self, label: &str, guard: Guard) {
        let tenures = SeenTenure::all_of(&guard);
        if tenures.len() != self.locks.len() {
            self.complain(|| format!("it holds {} of {:?}", tenures.len(), self.locks));
        }
        for tenure in &tenures {
            if let Some(complaint) = self.check_birth(label, tenure) {
                self.complain(|| complaint);
            }
        }
        let claims: Vec<i64> = tenures.iter().map(SeenTenure::number).collect();
        for (lock, claim) in self.locks.iter().zip(&claims) {
            self.enter(lock, *claim);
        }
        {
            let mut board = self.board.lock();
            board.tenures += 1;
            board.posts[self.number].tenures = tenures;
        }
        for to in &self.becomes {
            if !self.change(&guard, *to).await {
                break;
            }
        }
        self.told(|post| post.told_to_release).await;
        let present: Vec<i64> = self.post(|post| {
            post.told_to_release = false;
            let present = post.tenures.drain(..).map(|tenure| {
                let node = tenure.present();
                number(&node.path, node.czxid)
            });
            present.collect()
        });
        let had_gone: Vec<bool> = present.iter().map(|claim| self.is_gone(*claim)).collect();
        let before = self.changes();
        if self.waits {
            let released = guard.release().await;
            for (claim, had_gone) in present.into_iter().zip(had_gone) {
                // The deletion may have hit another by that name.
                let is_plain = self.is_named_alone(claim) && self.changes() == before;
                if released.is_ok() && had_gone && is_plain {
                    self.complain(|| format!("{claim} was released, and had been deleted before"));
                }
                self.check_release(claim, &released);
            }
        } else {
            drop(guard);
            for (memory, claim) in self.memories.iter().zip(present) {
                self.check_is_known(memory, claim);
            }
        }
    }

    /// It holds that lock with that claim: tokens grow.
    fn enter(&self, lock: &'static str, claim: i64) {
        let (robbed, most) = {
            let world = self.world.lock();
            (world.robbed.contains_key(&claim), world.limits.1)
        };
        let mut board = self.board.lock();
        let is_other = |(at, of): &(&str, Share)| *at == lock && !of.goes_with(self.share, most);
        let others = board.largest.iter().filter(|(of, _)| is_other(of));
        let before = others.map(|(_, claim)| *claim).max().unwrap_or(0);
        if !board.tokens.insert(claim) {
            board.complain(|| format!("two tenures have the claim {claim}"));
        }
        if !robbed && claim <= before {
            let number = self.number;
            board.complain(|| format!("contender {number} holds with {claim}, after {before}"));
        }
        let largest = board.largest.entry((lock, self.share)).or_insert(claim);
        *largest = claim.max(*largest);
    }

    /// Turns what it holds into that, unless that is given up. Gives whether it has.
    async fn change(&self, guard: &Guard, to: Access) -> bool {
        let was = guard.access();
        self.post(|post| post.acquires = Some(Wait::Forever));
        let changing = async {
            Some(match to {
                Access::Write => guard.upgrade().await,
                to => guard.downgrade(to).await,
            })
        };
        let cancelled = async {
            self.told(|post| post.told_to_cancel).await;
            None
        };
        let outcome = or(changing, cancelled).await;
        self.post(|post| {
            post.acquires = None;
            post.told_to_cancel = false;
        });
        let (now, is_lost) = (guard.access(), guard.is_lost());
        let is_right = match &outcome {
            Some(Ok(())) => now == Some(to),
            Some(Err(LockError::NotHeld { .. })) => is_lost,
            Some(Err(LockError::Unusable { .. })) => self.at_the_end && now == was,
            Some(Err(_)) => false,
            // A downgrade is done before others know.
            None => now == was || to != Access::Write && now == Some(to),
        };
        if !is_right {
            self.complain(|| {
                format!("to {to:?}: {outcome:?}, and now it is {now:?}, lost {is_lost}")
            });
        }
        if now == Some(Access::Write) && !is_lost && self.share == Share::Looks {
            let token = guard.fencing_token();
            let robbed = self.world.lock().robbed.contains_key(&token);
            let mut board = self.board.lock();
            let writers = board.largest.entry((self.locks[0], Share::Alone)).or_insert(token);
            let before = *writers;
            *writers = token.max(before);
            if before > token && !robbed {
                board.complain(|| format!("it writes with token {token}, after {before}"));
            }
        }
        matches!(outcome, Some(Ok(())))
    }

    /// While its deletion is under way, a claim is known to its client: nobody else deletes it too.
    fn check_is_known(&self, memory: &PathMemory, token: i64) {
        let world = self.world.lock();
        let session = world.clients[self.client].session;
        // The end of a session deletes its claims.
        let is_alive = world.leader.life(session) == Life::Alive;
        let record = world.leader.records.get(&token).filter(|_| is_alive);
        let there = record.is_some_and(|it| it.gone.is_none() && it.session == session);
        // Its number is one more than its czxid where it is in the second directory.
        let is_forgotten = there && memory.is_claim(token / 2 * 2) == Some(false);
        drop(world);
        if is_forgotten {
            self.complain(|| format!("{token} was released, and is forgotten before it is gone"));
        }
    }

    fn is_gone(&self, token: i64) -> bool {
        let world = self.world.lock();
        world.leader.records.get(&token).is_none_or(|record| record.gone.is_some())
    }

    /// Whether no other claim ever had the name of that one.
    fn is_named_alone(&self, token: i64) -> bool {
        let world = self.world.lock();
        let records = &world.leader.records;
        let path = records.get(&token).map(|record| &record.path);
        records.values().filter(|record| Some(&record.path) == path).count() == 1
    }

    /// How often the circumstances of the client have changed.
    /// Of what may leave an outcome unknown.
    fn changes(&self) -> usize {
        let world = self.world.lock();
        let client = &world.clients[self.client];
        client.changes + client.given_up
    }

    fn check_release(&self, token: i64, released: &Result<(), LockError>) {
        let there = self.world.lock().path_of(token).is_some();
        match released {
            Ok(()) if there => self.complain(|| format!("{token} was released and is there")),
            Ok(()) => {}
            Err(error) if self.calm => self.complain(|| format!("a release failed: {error}")),
            Err(LockError::Lost { .. }) => {}
            Err(error) => self.complain(|| format!("a release gave up: {error}")),
        }
    }

    fn complain(&self, what: impl FnOnce() -> String) {
        self.board.lock().complain(|| format!("contender {}: {}", self.number, what()));
    }

    fn post<T>(&self, change: impl FnOnce(&mut Post) -> T) -> T {
        change(&mut self.board.lock().posts[self.number])
    }

    async fn told(&self, what: impl Fn(&Post) -> bool) {
        std::future::poll_fn(|context| {
            let mut board = self.board.lock();
            let post = &mut board.posts[self.number];
            if what(post) {
                return Poll::Ready(());
            }
            post.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// What the claim of a contender's acquire is labelled.
pub(super) fn label(contender: usize, attempt: usize) -> String {
    format!("contender {contender}, acquire {attempt}")
}

/// Whether a claim was made with that label.
pub(super) fn is_labelled(record: &Record, label: &str) -> bool {
    payload::read(String::new(), &record.data, &Stat::default()).label == label
}

/// What a contender has heard is part of what its client's code has ever heard.
pub(super) fn note(world: &Shared, client: usize, what: impl Hash) {
    what.hash(&mut world.lock().clients[client].history);
}
