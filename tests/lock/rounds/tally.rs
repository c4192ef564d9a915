//! What the rounds of one scenario came to.

use std::time::{Duration, Instant};

use super::{Ending, Pace, Void};

/// Of the rounds at one pace.
pub(super) struct Tally {
    name: &'static str,
    pace: Pace,
    rounds: usize,
    void: usize,
    /// Rounds in which two guards were held, the old one was not lost, its holder was told too late.
    held: usize,
    alive: usize,
    late: usize,
    /// For how long the old guard was not lost while there was another one, at the most.
    longest: Duration,
    /// By how much the old holder was told before the acquire, at the least.
    closest: Option<Duration>,
}

impl Tally {
    /// What the columns of [`line`](Tally::line) are.
    pub(super) const COLUMNS: &str =
        "scenario, played, with effect, two held, not lost, told late, longest ms, closest ms";

    pub(super) fn new(name: &'static str, pace: Pace) -> Tally {
        Tally {
            name,
            pace,
            rounds: 0,
            void: 0,
            held: 0,
            alive: 0,
            late: 0,
            longest: Duration::ZERO,
            closest: None,
        }
    }

    pub(super) fn add(&mut self, ending: &Ending, told: Instant) {
        let early = ending.acquired.saturating_duration_since(told);
        self.rounds += 1;
        self.held += usize::from(ending.held.is_some());
        self.alive += usize::from(ending.alive.is_some());
        self.late += usize::from(told > ending.acquired);
        self.longest = self.longest.max(ending.alive.unwrap_or_default());
        self.closest = Some(self.closest.map_or(early, |closest| closest.min(early)));
        let (held, alive) = (ending.held, ending.alive);
        self.tell(&format!("two held: {held:?}, not lost: {alive:?}, told {early:?} before"));
    }

    pub(super) fn add_void(&mut self, why: Void) {
        self.void += 1;
        self.tell(&format!("void: {why}"));
    }

    /// For those who wait for the rounds.
    fn tell(&self, news: &str) {
        let session = self.pace.session();
        eprintln!("{} {session:?}, round {}: {news}", self.name, self.rounds + self.void);
    }

    /// The rounds whose fault took effect.
    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    pub(super) fn is_clean(&self) -> bool {
        (self.held, self.alive, self.late) == (0, 0, 0)
    }

    /// A row of the table that `scripts/partitions` makes.
    pub(super) fn line(&self) -> String {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let columns = [
            format!("{} T={}s", self.name, self.pace.session().as_secs_f32()),
            (self.rounds + self.void).to_string(),
            self.rounds.to_string(),
            self.held.to_string(),
            self.alive.to_string(),
            self.late.to_string(),
            millis(self.longest),
            self.closest.map_or("-".into(), millis),
        ];
        format!("tally\t{}", columns.join("\t"))
    }
}
