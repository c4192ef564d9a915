//! `compare`: all stores beside each other. It starts a server of each, lets `lock_test` contend for one lock there, and
//! prints one table; the picture shows how many acquisitions there were. `scripts/compare` builds and calls it.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::Parser;
use serde_json::Value;
use test_support::svg::{Anchor, Page};
use zklock_testing::{Database, Server};

/// Compares stores: the same threads contend for one lock in each of them.
#[derive(Debug, Parser)]
#[command(name = "compare", version, max_term_width = 100)]
struct Args {
    /// The program lock_test, with all stores built in
    #[arg(long, value_name = "FILE")]
    lock_test: PathBuf,

    /// How long each store is tried, with each number of threads
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u32,

    /// How many threads contend, each with a session of its own
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_values_t = [1, 4, 16])]
    threads: Vec<u32>,

    /// Draws how many acquisitions there were
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
}

/// What contended where, and what lock_test says of it.
struct Outcome {
    store: &'static str,
    threads: u32,
    said: Value,
}

impl Outcome {
    fn number(&self, of: &str) -> Option<f64> {
        of.split('/').try_fold(&self.said, |value, name| value.get(name))?.as_f64()
    }

    fn per_second(&self) -> f64 {
        self.number("acquisitions_per_second").unwrap_or(0.0)
    }

    /// How many acquisitions the thread with the fewest has, of those of the one with the most.
    fn fairness(&self) -> Option<f64> {
        let each = self.said.get("per_thread")?.as_array()?.iter().filter_map(Value::as_f64);
        let (least, most) = each.fold((f64::MAX, 0.0), |(least, most), number| {
            (f64::min(least, number), f64::max(most, number))
        });
        (most > 0.0).then_some(least / most)
    }

    fn line(&self) -> String {
        let shown = |number: Option<f64>, digits: usize| {
            number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
        };
        let faults = ["violations", "lost", "nodes_left"].map(|of| self.number(of).unwrap_or(0.0));
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.store,
            self.threads,
            shown(Some(self.per_second()), 0),
            shown(self.fairness(), 2),
            shown(self.number("acquire_us/p50"), 0),
            shown(self.number("handoff_us/p50"), 0),
            shown(self.number("server_packets_per_acquisition"), 1),
            faults.iter().sum::<f64>()
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let zookeeper = Server::start()?;
    let (redis, postgres) = (Database::redis()?, Database::postgres()?);
    let mariadb = Database::mariadb()?;
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let stores = [
        ("zookeeper", format!("zookeeper://{}", zookeeper.hosts())),
        ("redis", redis.url()),
        ("postgres", postgres.url()),
        ("mysql", mariadb.url()),
        ("sqlite", file),
        ("local", "local:".to_owned()),
    ];
    println!(
        "| store | threads | acquisitions/s | fairness | acquire, us | hand-off, us | packets | faults |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut outcomes = Vec::new();
    for threads in args.threads.iter().copied() {
        for (store, address) in &stores {
            let outcome = Outcome { store, threads, said: play(&args, address, threads)? };
            println!("{}", outcome.line());
            outcomes.push(outcome);
        }
    }
    println!();
    println!(
        "fairness  the acquisitions of the thread with the fewest, of those of the one with the most"
    );
    println!(
        "packets   requests that the server received for each acquisition, where it tells that"
    );
    println!(
        "faults    holders together, increments and locks that were lost, claims that are left"
    );
    if let Some(file) = &args.picture {
        fs::write(file, draw(&outcomes))?;
    }
    let faults = outcomes.iter().any(|outcome| outcome.number("violations") != Some(0.0));
    if faults { Err("two held at a time".into()) } else { Ok(()) }
}

fn play(args: &Args, address: &str, threads: u32) -> Result<Value, Box<dyn Error>> {
    let mut command = Command::new(&args.lock_test);
    command.args(["--store", address, "--json"]);
    command.args(["--threads", &threads.to_string(), "--seconds", &args.seconds.to_string()]);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    match said.lines().next() {
        Some(line) => Ok(serde_json::from_str(line)?),
        None => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// A bar for each store, by its acquisitions in a second; a group for each number of threads.
fn draw(outcomes: &[Outcome]) -> String {
    const WIDTH: f64 = 760.0;
    const ROW: f64 = 22.0;
    let mut page = Page::new(WIDTH);
    page.text((20.0, 30.0), Anchor::Start, "title", "Acquisitions of one lock in a second");
    page.bottom = 50.0;
    let mut threads = 0;
    let most = |threads| {
        let group = outcomes.iter().filter(move |outcome| outcome.threads == threads);
        group.map(Outcome::per_second).fold(1.0, f64::max)
    };
    for outcome in outcomes {
        if threads != outcome.threads {
            threads = outcome.threads;
            let head =
                if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
            page.text((20.0, page.bottom + 16.0), Anchor::Start, "head", &head);
            page.bottom += 26.0;
        }
        let (y, number) = (page.bottom, outcome.per_second());
        let length = ((WIDTH - 220.0) * number / most(threads)).max(1.0);
        page.text((112.0, y + 11.0), Anchor::End, "", outcome.store);
        page.rect(120.0, y, length, 14.0, "fill=\"#2b6cb0\"");
        page.text((126.0 + length, y + 11.0), Anchor::Start, "small", &format!("{number:.0}"));
        page.bottom += ROW;
    }
    page.finish()
}
