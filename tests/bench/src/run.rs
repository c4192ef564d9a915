//! Rounds: each contestant of each question has its turn in each of them.

use std::io::IsTerminal as _;
use std::process::Command;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Args;
use crate::contestants::Contestants;
use crate::figures::{Answer, Report, Row};
use crate::machine::Machine;
use crate::question::{self, Entry};
use crate::servers::Servers;
use crate::{Trouble, play, ratios};

pub fn run(args: &Args) -> Result<Report, Trouble> {
    let mut questions = question::all(args.locks(), &args.peer);
    questions.retain(|question| args.only.is_empty() || args.only.contains(&question.key));
    let mut contestants = Contestants::new()?;
    let mut answers: Vec<Answer> = Vec::new();
    for mut question in questions {
        question.entries.retain(|entry| !args.without.contains(&entry.label));
        let mut rows = Vec::new();
        for entry in &question.entries {
            let trouble = contestants.command(&entry.program).err();
            if let Some(trouble) =
                trouble.as_ref().filter(|_| !rows_have(&answers, &rows, &entry.label))
            {
                eprintln!("bench: without {}: {trouble}", entry.label);
            }
            rows.push(Row { entry: entry.clone(), rounds: Vec::new(), trouble });
        }
        answers.push(Answer { question, rows });
    }
    let servers = Servers::start(args.ensemble)?;
    let mut machine = Machine::look(servers.version());
    let turns: usize =
        answers.iter().map(|it| it.rows.iter().filter(|row| row.trouble.is_none()).count()).sum();
    let progress = progress(turns as u64 * u64::from(args.rounds()));
    for round in 0..args.rounds() {
        for answer in &mut answers {
            let name = answer.question.key.name();
            let number = answer.rows.len();
            for turn in 0..number {
                let row = &mut answer.rows[(turn + round as usize) % number];
                if row.rounds.is_empty() && row.trouble.is_some() {
                    continue;
                }
                progress.set_message(format!("{name}: {}, {}", row.entry.label, row.entry.n));
                let path = format!("/bench/{name}-{round}-{turn}");
                let played = measured(args.seconds(), |seconds| {
                    turn_of(&row.entry, &mut contestants, &servers, &path, seconds)
                });
                row.rounds.push(match played {
                    Ok(sample) => Some(sample),
                    Err(trouble) => {
                        let who = format!("{} at {}", row.entry.label, row.entry.n);
                        progress.suspend(|| eprintln!("bench: {name}: {who}: {trouble}"));
                        row.trouble = Some(trouble);
                        None
                    }
                });
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    machine.look_again();
    let ratios = ratios::all(&answers, args.rounds() as usize);
    Ok(Report {
        ensemble: args.ensemble,
        rounds: args.rounds(),
        seconds: args.seconds(),
        machine,
        answers,
        ratios,
    })
}

fn rows_have(answers: &[Answer], rows: &[Row], label: &str) -> bool {
    let before = answers.iter().flat_map(|answer| &answer.rows);
    before.chain(rows).any(|row| row.entry.label == label)
}

/// Plays a turn. Where a busy machine has let nobody come to anything in that time, another, and for longer.
fn measured(
    seconds: f64,
    mut turn: impl FnMut(f64) -> Result<play::Sample, Trouble>,
) -> Result<play::Sample, Trouble> {
    for longer in [1.0, 5.0, 25.0] {
        let sample = turn(longer * seconds)?;
        if sample.get("count") != Some(&0.0) {
            return Ok(sample);
        }
    }
    Err(format!("it counted nothing in {} s", 25.0 * seconds))
}

fn turn_of(
    entry: &Entry,
    contestants: &mut Contestants,
    servers: &Servers,
    path: &str,
    seconds: f64,
) -> Result<play::Sample, Trouble> {
    let words = contestants.command(&entry.program)?;
    let (program, arguments) = words.split_first().ok_or("no command")?;
    servers.make_path(path)?;
    let mut command = Command::new(program);
    command.args(arguments).arg(servers.hosts()).arg(path);
    command.arg(entry.n.to_string()).arg(seconds.to_string());
    command.envs(entry.rate.map(|rate| ("BENCH_RATE", rate.to_string())));
    command.envs(entry.kind.map(|kind| ("BENCH_KIND", kind)));
    let played = play::play(&mut command, servers, seconds);
    // What is left of a contestant that failed ends with its session.
    let _ = servers.remove(path);
    played
}

fn progress(turns: u64) -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(turns), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_in_which_nothing_was_counted_is_played_again() {
        let turn = |enough: f64| {
            move |seconds| {
                Ok(play::Sample::from([("count".to_owned(), f64::from(seconds > enough))]))
            }
        };
        assert_eq!(measured(1.0, turn(2.0)).unwrap()["count"], 1.0);
        assert_eq!(measured(1.0, turn(50.0)).unwrap_err(), "it counted nothing in 25 s");
        let memory = |_| Ok(play::Sample::from([("bytes".to_owned(), 7.0)]));
        assert_eq!(measured(1.0, memory).unwrap()["bytes"], 7.0);
    }
}
