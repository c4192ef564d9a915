//! `soak`: locks on an ensemble whose servers, clients and links fail, judged by the servers' own
//! transaction log. `soak --help` says how to use it.

// The report is one object.
#![recursion_limit = "256"]

mod args;
mod clock;
mod cluster;
mod evidence;
mod explain;
mod export;
mod fault;
mod history;
mod journal;
mod judge;
mod lanes;
mod locks;
mod operator;
mod plan;
mod processes;
mod progress;
mod report;
mod run;
mod shape;
mod timeline;
mod trouble;
mod txnlog;
mod worker;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

use args::Args;
use evidence::Evidence;
use lanes::Until;
use report::Report;
use run::Settings;
use shape::Shape;
use trouble::Trouble;
use worker::Orders;

const FOUND_A_VIOLATION: u8 = 1;
const COULD_NOT: u8 = 3;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    if let Some(orders) = Orders::received() {
        return worker::main(orders);
    }
    let args = Args::parse();
    let code = soak(&args).unwrap_or_else(|trouble| {
        eprintln!("soak: {trouble}");
        COULD_NOT
    });
    ExitCode::from(code)
}

fn soak(args: &Args) -> Result<u8, Trouble> {
    if let Some(directory) = &args.check {
        let logs = evidence::kept_logs(directory).map_err(Trouble::new(directory.display()))?;
        let evidence = read(directory, &logs)?;
        return judge(args, &evidence);
    }
    let until = Arc::new(Until::default());
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_interrupts(&until, &interrupted)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let settings = Settings {
        seed,
        shape: Shape::draw(seed, args.session_timeout, args.wishes()),
        kinds: args.kinds(),
        time: args.time(),
        processes: args.processes,
        sessions: args.sessions.max(args.processes),
        locks_of_each: args.locks,
        session_timeout: args.session_timeout,
    };
    eprintln!("soak: seed {seed}: {}", settings.shape);
    let scratch = tempfile::tempdir().map_err(Trouble::new("make a directory"))?;
    let directory = args.keep.as_deref().unwrap_or(scratch.path());
    let ended = run::run(&settings, directory, &until)?;
    let evidence = read(directory, &ended.logs())?;
    let code = judge(args, &evidence)?;
    let keeps = args.keep.is_some() || code == FOUND_A_VIOLATION;
    if keeps {
        let kept = evidence::keep_logs(directory, &ended.logs());
        kept.map_err(Trouble::new(directory.display()))?;
        let directory = directory.display();
        eprintln!("soak: the evidence is in {directory}; soak --check {directory} judges it again");
    }
    drop(ended);
    if keeps && args.keep.is_none() {
        // It is not deleted with the value.
        let _ = scratch.keep();
    }
    let was_interrupted = interrupted.load(Ordering::SeqCst);
    Ok(if was_interrupted && code == 0 { INTERRUPTED } else { code })
}

fn read(directory: &Path, logs: &[std::path::PathBuf]) -> Result<Evidence, Trouble> {
    Evidence::read(directory, logs).map_err(Trouble::new("read the evidence"))
}

fn judge(args: &Args, evidence: &Evidence) -> Result<u8, Trouble> {
    let verdict = evidence.judge();
    if let Some(path) = &args.svg {
        let picture = timeline::draw(evidence, &verdict);
        std::fs::write(path, picture).map_err(Trouble::new(path.display()))?;
    }
    if let Some(path) = &args.history {
        std::fs::write(path, export::history(evidence)).map_err(Trouble::new(path.display()))?;
    }
    let report = Report { evidence, verdict: &verdict };
    let text = if args.json { format!("{}\n", report.json()) } else { report.text() };
    std::io::stdout().write_all(text.as_bytes()).map_err(Trouble::new("write the report"))?;
    Ok(if verdict.violations.is_empty() { 0 } else { FOUND_A_VIOLATION })
}

/// Ctrl-C ends the faults; what there is by then is judged. The second one ends the program.
fn listen_for_interrupts(until: &Arc<Until>, seen: &Arc<AtomicBool>) -> Result<(), Trouble> {
    let (until, seen) = (Arc::clone(until), Arc::clone(seen));
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED.into());
        }
        until.end();
    })
    .map_err(Trouble::new("listen for Ctrl-C"))
}
