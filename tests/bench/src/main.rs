//! `bench`: zklock measured beside its peers, in rounds that each contestant has its turn in. `bench --help` says
//! how to use it.

mod args;
mod contestants;
mod document;
mod figures;
mod machine;
mod peer;
mod picture;
mod play;
mod question;
mod ratios;
mod run;
mod servers;
mod table;

use std::io::Write as _;
use std::process::ExitCode;

use args::Args;
use clap::Parser as _;
use document::Document;
use figures::Report;

/// Why there are no results: a sentence.
type Trouble = String;

const COULD_NOT: u8 = 3;

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.role {
        Some(role) => role.play(),
        None => bench(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("bench: {trouble}");
            ExitCode::from(COULD_NOT)
        }
    }
}

fn bench(args: &Args) -> Result<(), Trouble> {
    let report = run::run(args)?;
    let document = Document::of(report.ensemble);
    let before = document.ratios();
    let text = if args.json { format!("{}\n", report.json()) } else { table::text(&report) };
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    if let Some(directory) = &args.svg {
        document.write_pictures(&report, directory)?;
    }
    if args.write {
        document.write(&report)?;
    }
    point_out_what_fell(&report, &before);
    Ok(())
}

fn point_out_what_fell(report: &Report, before: &[(String, f64)]) {
    for line in ratios::fallen(&report.ratios, before) {
        eprintln!("bench: {line}");
    }
}
