//! What became of each claim, from one look at its lock to the next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zklock::Contender;

use super::meters::Meters;

/// So many holds that have ended are kept.
const KEPT: usize = 5_000;
/// So many ends are looked through for those of one session.
const ENDS: usize = 1_024;

/// That a lock is held, or was.
#[derive(Clone, Debug)]
pub struct Hold {
    pub path: Arc<str>,
    pub holder: Contender,
    /// By this machine's clock, if it was seen to begin; by the servers' it was not before that, otherwise.
    pub began: SystemTime,
    pub was_seen_to_begin: bool,
    /// `None` while it goes on.
    pub ended: Option<SystemTime>,
}

pub type Past = VecDeque<Arc<Hold>>;

/// A look at one lock.
pub struct Look<'a> {
    pub path: &'a str,
    pub contenders: &'a [Contender],
    /// The last transaction on the lock's children; `None` where the lock is gone, or is one znode.
    pub pzxid: Option<i64>,
    /// What has changed since the last look did not change before; `None` where that is not known.
    pub changed: Option<SystemTime>,
    pub now: SystemTime,
}

#[derive(Default)]
pub struct Holds {
    locks: HashMap<Arc<str>, Lock>,
    past: Past,
    /// Sessions whose claims went, by the transaction that they may have gone in.
    ends: VecDeque<End>,
}

#[derive(Default)]
struct Lock {
    /// Claims by token, in their order.
    order: Vec<i64>,
    claims: HashMap<i64, Claim>,
}

struct Claim {
    session: i64,
    /// When it was made; by this machine's clock where it was seen to be.
    made: SystemTime,
    hold: Option<Arc<Hold>>,
}

struct End {
    session: i64,
    pzxid: i64,
    path: Arc<str>,
    is_counted: bool,
}

impl Holds {
    pub fn past(&self) -> Past {
        self.past.clone()
    }

    /// Takes a look into account. Gives the holds that go on, in the contenders' order.
    pub fn look(&mut self, look: &Look, meters: &Meters) -> Vec<Arc<Hold>> {
        let mut lock = self.locks.remove(look.path).unwrap_or_default();
        self.note_ends(&mut lock, look, meters);
        let path: Arc<str> = Arc::from(look.path);
        for contender in look.contenders {
            note(&mut lock, &path, contender, look, meters);
        }
        lock.order = look.contenders.iter().map(|contender| contender.token).collect();
        let holds = lock.order.iter().filter_map(|token| lock.claims[token].hold.clone()).collect();
        if !lock.order.is_empty() {
            self.locks.insert(path, lock);
        }
        holds
    }

    fn note_ends(&mut self, lock: &mut Lock, look: &Look, meters: &Meters) {
        let here: HashSet<i64> = look.contenders.iter().map(|contender| contender.token).collect();
        // Whoever went while somebody before it has stayed gave up waiting.
        let mut is_blocked = false;
        for token in std::mem::take(&mut lock.order) {
            if here.contains(&token) {
                is_blocked = true;
                continue;
            }
            let Some(claim) = lock.claims.remove(&token) else { continue };
            self.note_end(claim.session, look, meters);
            match claim.hold {
                Some(hold) => self.keep(&hold, look, meters),
                None if is_blocked => meters.gave_up.inc(),
                // It may have held for a moment that nobody saw.
                None => {}
            }
        }
    }

    fn keep(&mut self, hold: &Arc<Hold>, look: &Look, meters: &Meters) {
        let ended = look.changed.filter(|changed| *changed > hold.began).unwrap_or(look.now);
        if hold.was_seen_to_begin && look.changed.is_some() {
            meters.hold_seconds.observe(between(hold.began, ended).as_secs_f64());
        }
        if self.past.len() == KEPT {
            self.past.pop_front();
        }
        self.past.push_back(Arc::new(Hold { ended: Some(ended), ..Hold::clone(hold) }));
    }

    /// Only the end of a session takes claims on several locks in one transaction.
    fn note_end(&mut self, session: i64, look: &Look, meters: &Meters) {
        let Some(pzxid) = look.pzxid else { return };
        let mut same = self
            .ends
            .iter_mut()
            .filter(|end| (end.session, end.pzxid) == (session, pzxid) && &*end.path != look.path);
        let mut is_counted = false;
        if let Some(first) = same.next() {
            is_counted = first.is_counted;
            first.is_counted = true;
            if !is_counted {
                meters.sessions_ended.inc();
            }
            is_counted = true;
        }
        if self.ends.len() == ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(End { session, pzxid, path: Arc::from(look.path), is_counted });
    }
}

/// A contender as it stands now.
fn note(lock: &mut Lock, path: &Arc<str>, contender: &Contender, look: &Look, meters: &Meters) {
    // Another machine's clock, put right as far as it can be.
    let put_right = |time: SystemTime| match look.changed {
        Some(changed) => time.clamp(changed.min(look.now), look.now),
        None => time,
    };
    let claim = lock.claims.entry(contender.token).or_insert_with(|| Claim {
        session: contender.session,
        made: put_right(contender.since),
        hold: None,
    });
    let Some(held) = contender.held_since.filter(|_| claim.hold.is_none()) else { return };
    let began = put_right(held.earliest);
    if look.changed.is_some() {
        meters.wait_seconds.observe(between(claim.made, began).as_secs_f64());
    }
    claim.hold = Some(Arc::new(Hold {
        path: Arc::clone(path),
        holder: contender.clone(),
        began,
        was_seen_to_begin: look.changed.is_some(),
        ended: None,
    }));
}

fn between(begin: SystemTime, end: SystemTime) -> Duration {
    end.duration_since(begin).unwrap_or_default()
}
