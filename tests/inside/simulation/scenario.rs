//! Who contends for what, and what may go wrong.

use std::collections::BTreeSet;
use std::time::Duration;

use super::share::Share;
use super::steps::Step;
use crate::lock::{Access, Strategy};

/// The lock that everybody contends for, unless the scenario says otherwise.
pub(super) const LOCK: &str = "/locks/a";

/// Another, which some contend for together with it, or for it alone.
pub(super) const OTHER: &str = "/locks/b";

/// How late an answer can be by a fault.
pub(super) const A_DELAY: Duration = Duration::from_millis(1_500);

/// From this seed on, contenders are of several kinds.
pub(super) const MIXED: u64 = 1 << 32;

/// From this seed on, some contend for both locks together.
pub(super) const SEVERAL: u64 = 1 << 33;

/// Seeds from here on stand for a queue whose clients hold by a listing alone.
pub(super) const LISTED: u64 = 1 << 34;

const A_WHILE: Duration = Duration::from_secs(1);

/// One acquire and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Acquires, however long it takes.
    Forever,
    /// Acquires within a deadline, which can pass at any moment.
    Within(Duration),
    /// Acquires if nobody is ahead.
    Not,
}

#[derive(Clone, Debug)]
pub(super) struct Contender {
    /// On which client.
    pub(super) client: usize,
    /// What it contends for: one lock, or both together.
    pub(super) locks: &'static [&'static str],
    pub(super) acquires: Vec<Wait>,
    pub(super) share: Share,
    /// What it turns what it holds into, one after the other.
    pub(super) becomes: Vec<Access>,
    /// Whether it waits for the end of a release before it goes on.
    pub(super) waits: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) strategy: Strategy,
    pub(super) clients: usize,
    pub(super) contenders: Vec<Contender>,
    /// How many faults there may be, and which.
    pub(super) faults: u32,
    pub(super) kinds: Vec<Fault>,
    /// Whether the sessions' servers may lag behind the leader.
    pub(super) lag: bool,
    /// Whether what only one client sees happens at once: see [`super`].
    pub(super) reduced: bool,
    /// After how long a client gives up on an answer: long before its session is over, or long after.
    pub(super) operation_timeout: Duration,
    /// Whether holders release only when nothing else can happen, so that all who wait come to rest.
    pub(super) holds_long: bool,
    /// The next number in the lock's directory, if that is there from the start.
    pub(super) directory: Option<i32>,
    /// Whether the first acquires expect to wait.
    pub(super) contended: bool,
    /// Whether clients announce releases.
    pub(super) announced: bool,
    /// Whether clients hold by what they know, without a listing.
    pub(super) shortcuts: bool,
    /// The id of the server that opens the sessions.
    pub(super) server_id: u8,
    /// How many permits a semaphore has at first.
    pub(super) limit: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Cut,
    Freeze,
    Doubt,
    TimeOut,
    Kill,
    Cancel,
    Rob,
    Raze,
    Reap,
    Litter,
    Remake,
    Write,
    Silence,
    Foreign,
    Limit,
}

/// What a contender contends for that has that letter in the name of a scenario.
fn locks(letter: char) -> &'static [&'static str] {
    match letter {
        'a' => &[LOCK],
        'b' => &[OTHER],
        'm' => &[LOCK, OTHER],
        _ => panic!("a is one lock, b the other, m both together, and {letter} none"),
    }
}

/// What a contender turns its hold into that has that letter in the name of a scenario.
fn becomes(letter: char) -> Vec<Access> {
    use Access::{Read, Upgradeable, Write};
    match letter {
        'u' => vec![Write],
        'v' => vec![Write, Upgradeable, Write, Read],
        'd' => vec![Read],
        'c' => vec![Upgradeable, Write, Read],
        _ => Vec::new(),
    }
}

impl Fault {
    /// What goes wrong in scenarios that have a name, unless it says otherwise.
    const USUAL: [Fault; 10] = [
        Fault::Cut,
        Fault::Freeze,
        Fault::Doubt,
        Fault::TimeOut,
        Fault::Kill,
        Fault::Cancel,
        Fault::Rob,
        Fault::Raze,
        Fault::Reap,
        Fault::Litter,
    ];

    const UNUSUAL: [Fault; 4] = [Fault::Remake, Fault::Write, Fault::Silence, Fault::Foreign];

    /// What goes wrong with a semaphore alone.
    const OF_SEMAPHORES: [Fault; 1] = [Fault::Limit];

    pub(super) fn all() -> impl Iterator<Item = Fault> {
        Fault::USUAL.into_iter().chain(Fault::UNUSUAL)
    }

    /// With those that only some scenarios have.
    pub(super) fn every() -> impl Iterator<Item = Fault> {
        Fault::all().chain(Fault::OF_SEMAPHORES)
    }

    /// The kind of a step, if it is a fault.
    pub(super) fn of(step: Step) -> Option<Fault> {
        Some(match step {
            Step::Cut(_) => Fault::Cut,
            Step::Freeze(_) => Fault::Freeze,
            Step::Doubt(_) | Step::Expel(_) => Fault::Doubt,
            Step::TimeOut(_) => Fault::TimeOut,
            Step::Kill(_) => Fault::Kill,
            Step::Cancel(_) => Fault::Cancel,
            Step::Rob(_) => Fault::Rob,
            Step::Raze => Fault::Raze,
            Step::Reap(_) => Fault::Reap,
            Step::Litter(_) => Fault::Litter,
            Step::Remake => Fault::Remake,
            Step::Write(_) => Fault::Write,
            Step::Silence(..) => Fault::Silence,
            Step::Foreign => Fault::Foreign,
            Step::Limit(_) => Fault::Limit,
            _ => return None,
        })
    }
}

impl Scenario {
    /// Whether some hold together.
    pub(super) fn is_mixed(&self) -> bool {
        self.contenders.iter().any(|contender| contender.share != Share::Alone)
    }

    /// The locks that anybody contends for.
    pub(super) fn locks(&self) -> BTreeSet<&'static str> {
        self.contenders.iter().flat_map(|contender| contender.locks).copied().collect()
    }

    /// One acquire each, every contender on a client of its own, nothing goes wrong.
    pub(super) fn plain(strategy: Strategy, contenders: usize) -> Scenario {
        let (acquires, share) = (vec![Wait::Forever], Share::Alone);
        let contender = |client| Contender {
            client,
            locks: &[LOCK],
            acquires: acquires.clone(),
            share,
            becomes: Vec::new(),
            waits: true,
        };
        Scenario {
            strategy,
            clients: contenders,
            contenders: (0..contenders).map(contender).collect(),
            faults: 0,
            kinds: Vec::new(),
            lag: false,
            reduced: true,
            operation_timeout: A_DELAY,
            holds_long: false,
            directory: Some(0),
            contended: false,
            announced: false,
            shortcuts: true,
            server_id: 1,
            limit: 3,
        }
    }

    /// What a name such as `queue/plain/3+1` stands for: the strategy, how it is set up, how many
    /// contenders and faults.
    pub(super) fn named(name: &str) -> Scenario {
        let parts: Vec<&str> = name.split(['/', '+']).collect();
        let [strategy, setting, contenders, faults] = parts[..] else {
            panic!("a scenario is called like queue/plain/3+1, not {name}");
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number: {text}"));
        let strategy = strategy.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut scenario = Scenario::plain(strategy, number(contenders));
        scenario.faults = number(faults) as u32;
        scenario.kinds = Fault::USUAL.to_vec();
        match setting {
            "plain" => {}
            "bare" => scenario.directory = None,
            "contended" => scenario.contended = true,
            "announced" => (scenario.contended, scenario.announced) = (true, true),
            "lag" => scenario.lag = true,
            "listed" => (scenario.contended, scenario.shortcuts) = (true, false),
            // The second number is the first after the largest.
            "wrapping" => {
                (scenario.directory, scenario.kinds) = (Some(i32::MAX), vec![Fault::Rob]);
            }
            "unusual" => scenario.kinds = Fault::UNUSUAL.to_vec(),
            "255" => scenario.server_id = u8::MAX,
            "deadline" => scenario.contenders[0].acquires = vec![Wait::Within(A_WHILE)],
            "try" => scenario.contenders[0].acquires = vec![Wait::Not],
            // A letter for each contender.
            _ if setting.starts_with("kinds-") => {
                let letters = setting.trim_start_matches("kinds-").chars();
                scenario.contenders.iter_mut().zip(letters).for_each(|(contender, letter)| {
                    contender.share = Share::named(letter);
                    contender.becomes = becomes(letter);
                });
            }
            _ if setting.starts_with("limit-") => {
                scenario.kinds = Fault::OF_SEMAPHORES.to_vec();
                let letters = setting.trim_start_matches("limit-").chars();
                scenario.contenders.iter_mut().zip(letters).for_each(|(contender, letter)| {
                    contender.share = Share::named(letter);
                });
            }
            _ if setting.starts_with("locks-") => {
                let letters = setting.trim_start_matches("locks-").chars();
                scenario.contenders.iter_mut().zip(letters).for_each(|(contender, letter)| {
                    contender.locks = locks(letter);
                });
            }
            _ => panic!("no scenario is set up like {setting}"),
        }
        scenario
    }

    /// What a seed stands for: from [`MIXED`] on, a queue of several kinds; from [`SEVERAL`] on, two queues; from
    /// [`LISTED`] on, one queue without shortcuts.
    pub(super) fn from_seed(seed: u64) -> Scenario {
        let mut scenario = Scenario::exclusive_from_seed(seed);
        if seed >= LISTED {
            (scenario.strategy, scenario.shortcuts) = (Strategy::Queue, false);
        } else if seed >= SEVERAL {
            let mut random = fastrand::Rng::with_seed(seed ^ 0x0b07_410c);
            scenario.strategy = Strategy::Queue;
            for contender in &mut scenario.contenders {
                contender.locks = locks(['a', 'b', 'm', 'm'][random.usize(0..4)]);
            }
        } else if seed >= MIXED {
            let mut random = fastrand::Rng::with_seed(seed ^ 0x0a11_c1d5);
            scenario.strategy = Strategy::Queue;
            // Readers and writers, a semaphore, or all of them.
            let (readers, takers) = [(6, 0), (3, 0), (0, 12), (0, 10), (3, 6)][random.usize(0..5)];
            let largest = random.u32(1..=2);
            for contender in &mut scenario.contenders {
                contender.share = match random.u8(0..12) {
                    drawn if drawn < readers / 2 => Share::Looks,
                    drawn if drawn < readers => Share::Reads,
                    drawn if drawn < readers + takers => Share::Takes(random.u32(1..=largest)),
                    _ => Share::Alone,
                };
                let may_change = contender.share == Share::Alone && readers > 0;
                contender.becomes = match contender.share {
                    Share::Looks => becomes(['u', 'v'][random.usize(0..2)]),
                    _ if may_change && random.bool() => becomes(['d', 'c'][random.usize(0..2)]),
                    _ => Vec::new(),
                };
            }
            if takers > 0 {
                scenario.kinds.extend(Fault::OF_SEMAPHORES);
                scenario.limit = random.u32(2..=3);
            }
        }
        scenario
    }

    /// Two to eight contenders, up to eight faults.
    fn exclusive_from_seed(seed: u64) -> Scenario {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5ce9_a710);
        let strategy = match seed % 3 {
            0 => Strategy::Queue,
            1 => Strategy::Watch,
            _ => Strategy::Poll,
        };
        let contenders = if random.bool() { random.usize(2..=3) } else { random.usize(4..=8) };
        // Now and then some of them share a session.
        let clients = contenders - [0, contenders / 2][random.usize(0..2)];
        let only_try = random.u8(0..16) == 0;
        let acquire = |random: &mut fastrand::Rng| match random.u8(0..10) {
            _ if only_try => Wait::Not,
            0 => Wait::Not,
            1 | 2 => Wait::Within(Duration::from_millis(random.u64(1..400))),
            _ => Wait::Forever,
        };
        let contender = |number: usize| Contender {
            client: number % clients,
            locks: &[LOCK],
            acquires: (0..random.usize(1..=2)).map(|_| acquire(&mut random)).collect(),
            share: Share::Alone,
            becomes: Vec::new(),
            waits: random.bool(),
        };
        let contenders = (0..contenders).map(contender).collect();
        // In half of the runs only a few things go wrong, and so more often together.
        let mut kinds: Vec<Fault> = Fault::all().collect();
        if random.bool() {
            random.shuffle(&mut kinds);
            kinds.truncate(random.usize(2..=4));
        }
        let mut scenario = Scenario {
            strategy,
            clients,
            contenders,
            faults: random.u32(0..=8),
            kinds,
            lag: random.bool(),
            reduced: false,
            operation_timeout: [A_DELAY, 20 * A_DELAY][random.usize(0..2)],
            // Those who poll never come to rest.
            holds_long: strategy != Strategy::Poll && random.bool(),
            // Sometimes the numbers wrap.
            directory: [None, Some(0), Some(i32::MAX - 2)][random.usize(0..3)],
            contended: random.bool(),
            announced: fastrand::Rng::with_seed(seed ^ 0xa220_0c3d).bool(),
            shortcuts: true,
            server_id: [1, u8::MAX][random.usize(0..2)],
            limit: 3,
        };
        scenario.narrow(random.u8(0..16));
        scenario
    }

    /// Some runs are about what takes several faults of few kinds, soon after one another.
    fn narrow(&mut self, to: u8) {
        let (strategy, kinds) = match to {
            // Claims are deleted while they wait to be proven.
            0 => (Strategy::Watch, [Fault::Rob, Fault::Doubt].as_slice()),
            // Claims without a uuid are found by others of their client.
            1 => (Strategy::Watch, [Fault::Write, Fault::Cut, Fault::TimeOut].as_slice()),
            // What was before goes while it is read.
            2 => (Strategy::Queue, [Fault::Raze, Fault::Rob].as_slice()),
            3 => (Strategy::Queue, [Fault::Raze, Fault::Rob, Fault::Litter].as_slice()),
            // A claim is given up and made again, and the reply is lost.
            4 => (Strategy::Queue, [Fault::Remake, Fault::Cut].as_slice()),
            // Answers come late, and then the servers hear no more of a holder.
            5 => (Strategy::Queue, [Fault::TimeOut, Fault::Silence].as_slice()),
            6 => (Strategy::Watch, [Fault::TimeOut, Fault::Silence, Fault::Cut].as_slice()),
            // The next number is the one after the last, and the directory is another perhaps.
            7 | 8 => (Strategy::Queue, [Fault::Remake, Fault::Foreign, Fault::Cut].as_slice()),
            _ => return,
        };
        (self.strategy, self.kinds, self.faults) = (strategy, kinds.to_vec(), 4);
        match to {
            1 => self.clients = 2.min(self.clients),
            2 => self.directory = Some(i32::MAX - 2),
            7 | 8 => {
                self.contenders.truncate(usize::from(to) - 6);
                self.clients = self.contenders.len();
                self.contenders.iter_mut().for_each(|it| it.acquires = vec![Wait::Forever; 6]);
                self.directory = Some(0);
            }
            5 | 6 => {
                (self.holds_long, self.operation_timeout, self.faults) = (true, 20 * A_DELAY, 8)
            }
            _ => {}
        }
        for (number, contender) in self.contenders.iter_mut().enumerate() {
            contender.client = number % self.clients;
        }
    }
}
