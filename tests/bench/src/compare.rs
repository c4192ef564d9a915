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

    /// How often each of them has its turn: the medians are shown
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: usize,

    /// A Python with redis-py and psycopg: then redis-py's Lock and PostgreSQL's advisory locks are compared, too
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,

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

    /// Of several rounds, that with the median of the acquisitions.
    fn median(mut rounds: Vec<Outcome>) -> Option<Outcome> {
        rounds.sort_by(|a, b| a.per_second().total_cmp(&b.per_second()));
        let middle = rounds.len() / 2;
        (middle < rounds.len()).then(|| rounds.swap_remove(middle))
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
    let zookeeper = Server::builder().jvm_arg("-XX:TieredStopAtLevel=4").start()?; // as one that runs for long
    let (redis, postgres) = (Database::redis()?, Database::postgres()?);
    let mariadb = Database::mariadb()?;
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let mut contestants = vec![
        ("zookeeper", args.ours(&format!("zookeeper://{}", zookeeper.hosts()))),
        ("redis", args.ours(&redis.url())),
        ("postgres", args.ours(&postgres.url())),
        ("mysql", args.ours(&mariadb.url())),
        ("sqlite", args.ours(&file)),
        ("local", args.ours("local:")),
    ];
    contestants.extend(args.peer("redis", &redis.url()).map(|peer| ("redis-py", peer)));
    contestants.extend(args.peer("postgres", &postgres.url()).map(|peer| ("advisory lock", peer)));
    println!(
        "| store | threads | acquisitions/s | fairness | acquire, us | hand-off, us | packets | faults |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut outcomes = Vec::new();
    for threads in args.threads.iter().copied() {
        let mut rounds: Vec<Vec<Outcome>> = contestants.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for ((store, program), rounds) in contestants.iter().zip(&mut rounds) {
                rounds.push(Outcome { store, threads, said: program(threads)? });
            }
        }
        for outcome in rounds.into_iter().filter_map(Outcome::median) {
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
    if args.python.is_some() {
        println!(
            "redis-py, advisory lock   other libraries on the same servers, which were not checked for faults"
        );
    }
    println!(
        "faults    holders together, increments and locks that were lost, claims that are left"
    );
    if let Some(file) = &args.picture {
        fs::write(file, draw(&outcomes))?;
    }
    let ours = outcomes.iter().filter(|outcome| outcome.said.get("library").is_none());
    let faults = ours.into_iter().any(|outcome| outcome.number("violations") != Some(0.0));
    if faults { Err("two held at a time".into()) } else { Ok(()) }
}

type Contestant = Box<dyn Fn(u32) -> Result<Value, Box<dyn Error>>>;

impl Args {
    /// zklock, on the store with that address.
    fn ours(&self, address: &str) -> Contestant {
        let (lock_test, address, seconds) =
            (self.lock_test.clone(), address.to_owned(), self.seconds.to_string());
        Box::new(move |threads| {
            let mut command = Command::new(&lock_test);
            command.args([
                "--store",
                &address,
                "--strategy",
                "queue",
                "--json",
                "--seconds",
                &seconds,
            ]);
            play(command.args(["--threads", &threads.to_string()]))
        })
    }

    /// Another library, on a server of that kind.
    fn peer(&self, kind: &'static str, url: &str) -> Option<Contestant> {
        let (python, url, seconds) =
            (self.python.clone()?, url.to_owned(), self.seconds.to_string());
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/store_locks.py");
        Some(Box::new(move |threads| {
            let mut command = Command::new(&python);
            play(command.args([program, kind, &url, &threads.to_string(), &seconds]))
        }))
    }
}

/// Runs a program that prints one object.
fn play(command: &mut Command) -> Result<Value, Box<dyn Error>> {
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
