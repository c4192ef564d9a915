//! `lock_test`: threads contend for one lock on a real ZooKeeper server, and everything they see is
//! checked. `lock_test --help` says how to use it.

mod acquire;
mod args;
mod checks;
mod counter;
mod history;
mod interrupt;
mod latency;
mod leftovers;
mod output;
mod progress;
mod report;
mod run;
mod server;
mod timeline;
mod trouble;
mod worker;

use std::process::ExitCode;

use args::Args;
use counter::Counter;
use history::History;
use interrupt::Stop;
use output::{say, show};
use report::Report;
use run::Bench;
use server::Servers;
use trouble::{INTERRUPTED, Trouble};

/// Two holders at once, a lost increment, a node left behind: what the program looks for.
const FOUND_A_FAULT: u8 = 1;

fn main() -> ExitCode {
    let args = Args::read();
    ExitCode::from(match test(&args) {
        Ok(code) => code,
        Err(trouble) => {
            if let Some(message) = trouble.message() {
                say(format_args!("lock_test: {message}"));
            }
            trouble.exit_code()
        }
    })
}

fn test(args: &Args) -> Result<u8, Trouble> {
    let stop = Stop::on_interrupt()?;
    let counter = Counter::open(args.counter.as_deref())?;
    let history = args.history.as_deref().map(History::open).transpose()?;
    let servers = Servers::get(args, &stop)?;
    let bench = Bench {
        args,
        stop: &stop,
        servers: &servers,
        counter: &counter,
        history: history.as_ref(),
    };
    let mut reports: Vec<Report> = Vec::new();
    let outcome = run_all(&bench, &mut reports);
    if let Some(path) = args.timeline.as_ref().filter(|_| !reports.is_empty()) {
        std::fs::write(path, timeline::draw(&reports))
            .map_err(|error| Trouble::Cannot(format!("--timeline {}: {error}", path.display())))?;
    }
    if !args.json && !reports.is_empty() {
        show(format_args!("{}", report::table(args, &servers, &reports)));
    }
    if reports.iter().any(Report::has_fault) {
        // A fault is the news, also where something else ended the test.
        if let Err(trouble) = outcome {
            say(format_args!("lock_test: {}", trouble.message().unwrap_or("interrupted")));
        }
        return Ok(FOUND_A_FAULT);
    }
    outcome?;
    Ok(if stop.is_interrupted() { INTERRUPTED } else { 0 })
}

fn run_all(bench: &Bench, reports: &mut Vec<Report>) -> Result<(), Trouble> {
    for strategy in bench.args.strategies() {
        if bench.stop.is_raised() {
            break;
        }
        let (report, trouble) = bench.run(strategy)?;
        for line in report.complaints() {
            say(format_args!("lock_test: {strategy}: {line}"));
        }
        if bench.args.json {
            show(format_args!("{}\n", report.json()));
            if let Some(why) = report.silence() {
                say(format_args!("lock_test: {strategy}: note: {why}"));
            }
        }
        reports.push(report);
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
    }
    Ok(())
}
