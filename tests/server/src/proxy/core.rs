//! What the threads of one proxy share.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::action::Effect;
use super::link::Link;
use super::rule::Rule;
use super::seen::{Direction, Seen};
use crate::wire::Op;

/// How many frames are remembered: enough for any test, and bounded for a measurement.
const REMEMBERED: usize = 100_000;

pub(super) struct Shared {
    /// The servers, one at least.
    pub(super) upstream: Vec<SocketAddr>,
    pub(super) traffic: Traffic,
    /// Locked before a link's own state, never after.
    pub(super) core: Mutex<Core>,
    /// Something in `core`, or the fate of a link, has changed.
    pub(super) changed: Condvar,
}

pub(super) struct Core {
    pub(super) mode: Mode,
    pub(super) listening: bool,
    pub(super) stopping: bool,
    pub(super) latency: Duration,
    pub(super) rules: Vec<Installed>,
    pub(super) next_rule: u64,
    pub(super) next_connection: u64,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    /// The passwords of the sessions that were opened and not closed.
    pub(super) sessions: BTreeMap<i64, [u8; 16]>,
    pub(super) log: VecDeque<Seen>,
    pub(super) counts: BTreeMap<(Direction, Op), u64>,
}

/// Between whom a proxy stands, which decides what it makes of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Clients and a server: the bytes are frames, and rules look at them.
    Clients,
    /// Followers and their leader: the bytes pass as they come.
    Quorum,
    /// Members and the election of a leader: as well, after an [introduction](super::introduction).
    Election,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Open,
    Cut,
    Refuse,
}

pub(super) struct Installed {
    pub(super) id: u64,
    pub(super) rule: Rule,
    pub(super) effect: Effect,
    /// How many frames fitted so far.
    pub(super) fitted: u64,
    /// How often the effect was carried out; outlives the rule.
    pub(super) hits: Arc<AtomicU64>,
}

/// An effect that is to be carried out on a frame.
pub(super) struct Fired {
    pub(super) rule: u64,
    pub(super) effect: Effect,
    /// The frame's, among those that fit the rule.
    pub(super) number: u64,
    pub(super) hits: Arc<AtomicU64>,
}

impl Shared {
    pub(super) fn new(upstream: Vec<SocketAddr>, traffic: Traffic) -> Shared {
        Shared {
            upstream,
            traffic,
            core: Mutex::new(Core {
                mode: Mode::Open,
                listening: true,
                stopping: false,
                latency: Duration::ZERO,
                rules: Vec::new(),
                next_rule: 0,
                next_connection: 0,
                links: Vec::new(),
                threads: Vec::new(),
                sessions: BTreeMap::new(),
                log: VecDeque::new(),
                counts: BTreeMap::new(),
            }),
            changed: Condvar::new(),
        }
    }

    /// Notes a frame that has arrived, and says what is to happen to it and how long it is to travel.
    pub(super) fn judge(&self, seen: Seen) -> (Vec<Fired>, Duration) {
        let mut core = self.core.lock();
        let mut delay = core.latency;
        let mut fired = Vec::new();
        for installed in &mut core.rules {
            if !installed.rule.matches(&seen) {
                continue;
            }
            installed.fitted += 1;
            let ended = fired.last().is_some_and(|last: &Fired| last.effect.ends_connection());
            if installed.rule.picks(installed.fitted) && !ended {
                delay = delay.saturating_add(installed.effect.delay());
                fired.push(Fired {
                    rule: installed.id,
                    effect: installed.effect.clone(),
                    number: installed.fitted,
                    hits: Arc::clone(&installed.hits),
                });
            }
        }
        *core.counts.entry((seen.direction, seen.op)).or_default() += 1;
        if core.log.len() == REMEMBERED {
            core.log.pop_front();
        }
        core.log.push_back(seen);
        self.changed.notify_all();
        (fired, delay)
    }

    /// Notes that a session was opened or closed, if that is what was answered.
    pub(super) fn note_session(&self, answered: Op, (id, password): (i64, [u8; 16])) {
        match answered {
            Op::Connect => drop(self.core.lock().sessions.insert(id, password)),
            Op::CloseSession => drop(self.core.lock().sessions.remove(&id)),
            _ => {}
        }
    }

    /// How long bytes travel that no rule looks at.
    pub(super) fn latency(&self) -> Duration {
        self.core.lock().latency
    }
}

impl Core {
    pub(super) fn has_rule(&self, id: u64) -> bool {
        self.rules.iter().any(|installed| installed.id == id)
    }

    /// The last few frames that a program asked for or was answered, for those who waited for another one.
    pub(super) fn latest(&self) -> String {
        const SHOWN: usize = 8;
        let telling = |seen: &&Seen| !matches!(seen.op, Op::Ping | Op::Connect);
        let mut last: Vec<String> =
            self.log.iter().rev().filter(telling).take(SHOWN).map(Seen::to_string).collect();
        last.reverse();
        if last.is_empty() {
            return "no client has asked anything".to_owned();
        }
        format!("the last frames: {}", last.join(", "))
    }

    /// Remembers a thread that the drop of the proxy waits for, and forgets those that have ended.
    pub(super) fn add_thread(&mut self, thread: JoinHandle<()>) {
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(thread);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let core = self.core.lock();
        formatter
            .debug_struct("Shared")
            .field("upstream", &self.upstream)
            .field("mode", &core.mode)
            .field("connections", &core.links.len())
            .field("rules", &core.rules.iter().map(|installed| &installed.rule).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
