//! What a run tells: words about faults, a table for people, a line of JSON for programs.

use std::time::Duration;

use serde_json::{Value, json};
use zklock::Strategy;

use crate::acquire::Acquire;
use crate::args::Args;
use crate::checks::Violations;
use crate::latency::Quantiles;
use crate::server::{Servers, Traffic};

/// Of more nodes and losses than that, only the number is printed.
const TOLD: usize = 10;

/// What one strategy's run has come to.
pub struct Report {
    pub strategy: Strategy,
    pub threads: usize,
    pub sessions: usize,
    pub seconds: f64,
    /// Acquisitions of each thread.
    pub per_thread: Vec<u64>,
    pub acquire: Option<Quantiles>,
    pub handoff: Option<Quantiles>,
    /// Or why the servers don't tell.
    pub traffic: Result<Traffic, String>,
    pub violations: Violations,
    /// Paths of nodes that nobody has deleted; `None` when they could not be looked for.
    pub left: Option<Vec<String>>,
    /// How often a thread lost the lock while it held it.
    pub lost: u64,
    pub losses: Vec<String>,
    /// All acquires in the order of their ends; none unless there is to be a picture.
    pub acquires: Vec<Acquire>,
}

impl Report {
    pub fn has_fault(&self) -> bool {
        self.violations.count > 0 || self.left.as_ref().is_some_and(|left| !left.is_empty())
    }

    fn acquisitions(&self) -> u64 {
        self.per_thread.iter().sum()
    }

    fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.acquisitions() as f64 / self.seconds } else { 0.0 }
    }

    fn per_acquisition(&self, what: impl Fn(&Traffic) -> u64) -> Option<f64> {
        let traffic = self.traffic.as_ref().ok()?;
        let acquisitions = self.acquisitions();
        (acquisitions > 0).then(|| what(traffic) as f64 / acquisitions as f64)
    }

    /// What went wrong, in words, and what is worth knowing.
    pub fn complaints(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.violations.first.iter().map(|it| format!("violation: {it}")).collect();
        let more = self.violations.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("and {more} more violations"));
        }
        let left = self.left.as_deref().unwrap_or_default();
        lines.extend(
            left.iter().take(TOLD).map(|path| format!("node left: {}", path.escape_debug())),
        );
        if left.len() > TOLD {
            lines.push(format!("and {} more nodes left", left.len() - TOLD));
        }
        lines.extend(self.losses.iter().take(TOLD).map(|loss| format!("note: {loss}")));
        if self.lost > TOLD as u64 {
            lines.push(format!("note: the lock was lost {} times in all", self.lost));
        }
        lines
    }

    /// Why there are no packets and events.
    pub fn silence(&self) -> Option<String> {
        let why = self.traffic.as_ref().err()?;
        Some(format!("the servers don't tell their packets and events: {why}"))
    }

    /// One object; programs rely on the names and their order up to `nodes_left`.
    pub fn json(&self) -> Value {
        let micros = |quantiles: Option<Quantiles>| json!({ "p50": quantiles.map(|q| q.p50), "p99": quantiles.map(|q| q.p99) });
        json!({
            "strategy": self.strategy.to_string(),
            "threads": self.threads,
            "sessions": self.sessions,
            "seconds": rounded(self.seconds),
            "acquisitions": self.acquisitions(),
            "per_thread": self.per_thread,
            "acquire_us": micros(self.acquire),
            "handoff_us": micros(self.handoff),
            "server_packets_per_acquisition": self.per_acquisition(|t| t.packets).map(rounded),
            "violations": self.violations.count,
            "nodes_left": self.left.as_ref().map(Vec::len),
            "watch_events_per_acquisition": self.per_acquisition(|t| t.events).map(rounded),
            "acquisitions_per_second": rounded(self.per_second()),
            "lost": self.lost,
        })
    }

    fn cells(&self) -> Vec<String> {
        let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let micros = |number: Option<u64>| or_dash(number.map(|number| number.to_string()));
        let each = |number: Option<f64>| or_dash(number.map(|number| format!("{number:.2}")));
        vec![
            self.strategy.to_string(),
            self.acquisitions().to_string(),
            format!("{:.0}", self.per_second()),
            micros(self.per_thread.iter().min().copied()),
            micros(self.per_thread.iter().max().copied()),
            micros(self.acquire.map(|q| q.p50)),
            micros(self.acquire.map(|q| q.p99)),
            micros(self.handoff.map(|q| q.p50)),
            micros(self.handoff.map(|q| q.p99)),
            each(self.per_acquisition(|t| t.packets)),
            each(self.per_acquisition(|t| t.events)),
            self.violations.count.to_string(),
            or_dash(self.left.as_ref().map(|left| left.len().to_string())),
        ]
    }
}

/// To three digits behind the point.
fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

/// Column groups with their columns.
const COLUMNS: [(&str, &[&str]); 7] = [
    ("", &["strategy"]),
    ("acquisitions", &["total", "per s"]),
    ("per thread", &["min", "max"]),
    ("acquire, us", &["p50", "p99"]),
    ("hand-off, us", &["p50", "p99"]),
    ("server, per acq.", &["packets", "events"]),
    ("faults", &["viol.", "nodes"]),
];

const LEGEND: &str = "\
acquire   from the call until the lock is held
hand-off  from one thread's release until the next one, which waited already, holds the lock
packets   requests that the server received
events    watch events that the server sent; watch wakes every waiter at each release: the herd
viol.     holders together, lost increments, tokens that don't grow, threads that starve
nodes     lock nodes left on the server
";

/// All strategies' reports for people.
pub fn table(args: &Args, servers: &Servers, reports: &[Report]) -> String {
    let each = match (args.rounds, args.time()) {
        (Some(rounds), _) => format!("{rounds} rounds"),
        (None, time) => format!("{:?}", time.unwrap_or_default()),
    };
    let hold = match args.hold {
        Duration::ZERO => "no hold".to_owned(),
        hold => format!("hold {hold:?}"),
    };
    let (threads, sessions) =
        (plural(args.threads(), "thread"), plural(args.sessions(), "session"));
    let servers = servers.describe();
    let rows: Vec<Vec<String>> = reports.iter().map(Report::cells).collect();
    let rows = aligned(&rows);
    let silence = match reports.iter().find_map(Report::silence) {
        Some(why) => format!("-         {why}\n"),
        None => String::new(),
    };
    format!("{threads}, {sessions}, {each}, {hold}, {servers}\n\n{rows}\n{LEGEND}{silence}")
}

fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// One line for each row below two lines of headings.
fn aligned(rows: &[Vec<String>]) -> String {
    let mut group_line = String::new();
    let mut lines = vec![String::new(); rows.len() + 1];
    let mut column = 0;
    for (group, names) in COLUMNS {
        let mut widths: Vec<usize> = (column..column + names.len())
            .zip(names)
            .map(|(at, name)| rows.iter().map(|row| row[at].len()).fold(name.len(), usize::max))
            .collect();
        let width = widths.iter().sum::<usize>() + names.len() - 1;
        widths[0] += group.len().saturating_sub(width);
        let gap = if column == 0 { "" } else { "  " };
        group_line.push_str(&format!("{gap}{group:>0$}", width.max(group.len())));
        for (index, (name, width)) in names.iter().zip(&widths).enumerate() {
            let gap = if index == 0 { gap } else { " " };
            let cells = rows.iter().map(|row| row[column + index].as_str());
            for (line, cell) in lines.iter_mut().zip(std::iter::once(*name).chain(cells)) {
                match column {
                    0 => line.push_str(&format!("{cell:<width$}")),
                    _ => line.push_str(&format!("{gap}{cell:>width$}")),
                }
            }
        }
        column += names.len();
    }
    let lines: Vec<&str> =
        std::iter::once(&group_line).chain(&lines).map(|l| l.trim_end()).collect();
    lines.join("\n") + "\n"
}
