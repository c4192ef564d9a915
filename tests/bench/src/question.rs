//! What is asked, and of whom.

use clap::ValueEnum;

use crate::contestants::Program;

/// Its name on the command line, in JSON and of its picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Key {
    /// Cycles of acquire and release that nobody disturbs
    Uncontended,
    /// 2, 8, 32 and 128 who wait for one lock, each with a session of its own
    Handoff,
    /// 8 who wait to write under a read/write lock, each with a session of its own
    Writers,
    /// 8 who wait for the only permit of a semaphore, each with a session of its own
    Permit,
    /// 8 who ask for one lock 40 times a second each, at times that are fixed beforehand
    Arrivals,
    /// 64 threads on 64 locks over one session
    Many,
    /// 8 threads that share a client and hand the lock over among themselves
    Local,
    /// What held locks and idle clients take
    Memory,
    /// What a cycle allocates
    Allocations,
}

/// A figure of each contestant.
pub struct Column {
    /// In samples.
    pub field: &'static str,
    pub heading: &'static str,
    pub digits: usize,
    /// Whether it is in the picture.
    pub drawn: bool,
}

/// A contestant's part.
#[derive(Clone, Debug)]
pub struct Entry {
    pub label: String,
    pub program: Program,
    pub n: usize,
    /// How many times a second each asks, at times that are fixed beforehand.
    pub rate: Option<u32>,
    /// What is contended for, if not a lock.
    pub kind: Option<&'static str>,
}

pub struct Question {
    pub key: Key,
    pub title: &'static str,
    /// What `n` is; nothing where it is the same for all.
    pub of: Option<&'static str>,
    pub columns: &'static [Column],
    pub entries: Vec<Entry>,
}

/// Labels that ratios name.
pub const OURS: &str = "zklock";
pub const OURS_AWAITED: &str = "zklock, release awaited";
pub const OURS_UNANNOUNCED: &str = "zklock, not announced";
pub const OURS_LOCAL: &str = "zklock, local hand-off";
pub const OURS_CLIENT_EACH: &str = "zklock, a client each";
pub const FLOOR: &str = "zoo_create, no lock";
pub const PIPELINED: &str = "zoo_acreate, no lock";
pub const CRATE: &str = "zookeeper-client";
/// The least requests for a hand-off by an announced release.
pub const THREE_REQUESTS: &str = "three requests in C";
pub const CLASSIC: &str = "classic recipe in C";

pub const WAITERS: [usize; 4] = [2, 8, 32, 128];
/// Of each client: together, a fraction of what they could.
const RATE: u32 = 40;

const fn column(field: &'static str, heading: &'static str, digits: usize, drawn: bool) -> Column {
    Column { field, heading, digits, drawn }
}

const CYCLES: &[Column] = &[
    column("per_second", "cycles/s", 0, true),
    column("p50_us", "acquire p50, us", 0, true),
    column("p99_us", "p99, us", 0, false),
    column("packets", "packets", 2, false),
];
const HANDOFFS: &[Column] = &[
    column("per_second", "hand-offs/s", 0, true),
    column("p50_us", "p50, us", 0, false),
    column("p99_us", "p99, us", 0, false),
    column("packets", "packets", 2, false),
    column("events", "watch events", 2, false),
];
const ARRIVALS: &[Column] = &[
    column("p50_us", "p50, us", 0, true),
    column("p99_us", "p99, us", 0, true),
    column("p999_us", "p99.9, us", 0, false),
    column("per_second", "acquisitions/s", 0, false),
];
const LOCAL: &[Column] = &[
    column("per_second", "hand-offs/s", 0, true),
    column("p50_us", "p50, us", 1, false),
    column("packets", "packets", 4, false),
];
const MEMORY: &[Column] = &[
    column("bytes_per_lock", "bytes per held lock", 0, true),
    column("bytes_per_client", "bytes per idle client", 0, true),
];
const ALLOCATIONS: &[Column] =
    &[column("blocks", "blocks per cycle", 1, true), column("bytes", "bytes per cycle", 0, true)];

/// All of them; `peers` are the user's own.
pub fn all(locks: u32, peers: &[(String, Vec<String>)]) -> Vec<Question> {
    let entry = |label: &str, program: Program, n| Entry {
        label: label.to_owned(),
        program,
        n,
        rate: None,
        kind: None,
    };
    let role = |name| Program::Own(name);
    let of_kind = |kind| {
        let who =
            [(OURS, role("zklock")), ("kazoo", Program::Kazoo), ("Curator", Program::Curator)];
        let who = who.into_iter();
        who.map(|(label, program)| Entry { kind: Some(kind), ..entry(label, program, 8) }).collect()
    };
    let at_times = |entry: Entry| Entry { rate: Some(RATE), ..entry };
    let locks_for_all = |n| {
        let mut entries = vec![
            entry(OURS, role("zklock"), n),
            entry(CRATE, role("zookeeper-client"), n),
            entry(CLASSIC, Program::C("classic"), n),
            entry("kazoo", Program::Kazoo, n),
            entry("Curator", Program::Curator, n),
        ];
        let given = peers.iter().map(|(name, words)| entry(name, Program::Given(words.clone()), n));
        entries.extend(given);
        entries
    };
    let mut uncontended = locks_for_all(1);
    uncontended.insert(1, entry(OURS_AWAITED, role("zklock-awaited"), 1));
    uncontended.insert(2, entry(FLOOR, Program::C("floor"), 1));
    let question = |key, title, of, columns, entries| Question { key, title, of, columns, entries };
    let held = locks as usize;
    vec![
        question(
            Key::Uncontended,
            "An uncontended acquire and its release",
            None,
            CYCLES,
            uncontended,
        ),
        question(
            Key::Handoff,
            "Hand-offs among waiters with a session each",
            Some("waiters"),
            HANDOFFS,
            WAITERS
                .into_iter()
                .flat_map(|n| {
                    let mut entries = locks_for_all(n);
                    entries.insert(1, entry(OURS_UNANNOUNCED, role("zklock-unannounced"), n));
                    entries.insert(2, entry(THREE_REQUESTS, Program::C("three_requests"), n));
                    entries
                })
                .collect(),
        ),
        question(
            Key::Writers,
            "Hand-offs among 8 who wait to write, with a session each",
            None,
            HANDOFFS,
            of_kind("write"),
        ),
        question(
            Key::Permit,
            "Hand-offs among 8 who wait for a semaphore's only permit, with a session each",
            None,
            HANDOFFS,
            of_kind("permit"),
        ),
        question(
            Key::Arrivals,
            "From the time at which it is asked for until it is there: 8 clients, 320 times a second",
            None,
            ARRIVALS,
            vec![
                at_times(entry(OURS, role("zklock"), 8)),
                at_times(entry(CRATE, role("zookeeper-client"), 8)),
                at_times(entry(CLASSIC, Program::C("classic"), 8)),
            ],
        ),
        question(
            Key::Many,
            "64 threads on 64 locks over one session",
            None,
            CYCLES,
            vec![
                entry(OURS, role("zklock-many"), 64),
                entry(PIPELINED, Program::C("floor"), 64),
                entry(CRATE, role("zookeeper-client-many"), 64),
            ],
        ),
        question(
            Key::Local,
            "8 threads on one lock: one client that they share, or a client each",
            None,
            LOCAL,
            vec![
                entry(OURS_LOCAL, role("zklock-local"), 8),
                entry(OURS_CLIENT_EACH, role("zklock"), 8),
            ],
        ),
        question(
            Key::Memory,
            "Memory: locks held on one session, and idle clients",
            Some("locks"),
            MEMORY,
            vec![
                entry(OURS, role("zklock-memory"), held),
                entry(CRATE, role("zookeeper-client-memory"), held),
            ],
        ),
        question(
            Key::Allocations,
            "Allocations of an uncontended cycle, in all threads",
            None,
            ALLOCATIONS,
            vec![
                entry(OURS, Program::Allocations("zklock"), 1),
                entry(CRATE, Program::Allocations("zookeeper-client"), 1),
            ],
        ),
    ]
}

impl Key {
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
