//! Tables in Markdown that are aligned, so that they read well on a terminal too.

use std::fmt::Write as _;

use crate::figures::{Answer, Figure, Report, Row};
use crate::ratios::Ratio;

pub fn text(report: &Report) -> String {
    let mut text = format!("{}\n\n", head(report));
    for answer in &report.answers {
        let _ = write!(text, "## {}\n\n{}\n", answer.question.title, of(answer));
    }
    if !report.ratios.is_empty() {
        let _ = write!(text, "## Ratios\n\n{}", of_ratios(&report.ratios));
    }
    text
}

/// What was run, where and when.
pub fn head(report: &Report) -> String {
    format!(
        "{}, {} rounds of {} s for each contestant; medians [least-most].\n{}.",
        if report.ensemble { "An ensemble of three servers" } else { "One server" },
        report.rounds,
        report.seconds,
        report.machine.line()
    )
}

/// A row for each contestant.
pub fn of(answer: &Answer) -> String {
    let question = &answer.question;
    let mut head = vec![String::new()];
    head.extend(question.of.map(str::to_owned));
    head.extend(question.columns.iter().map(|column| column.heading.to_owned()));
    let cells = |row: &Row| {
        let mut cells = vec![row.entry.label.clone()];
        cells.extend(question.of.map(|_| row.entry.n.to_string()));
        cells.extend(question.columns.iter().map(|column| {
            row.figure(column.field).map_or("-".to_owned(), |it| figure(it, column.digits))
        }));
        cells
    };
    let measured = |row: &&Row| row.rounds.iter().any(Option::is_some);
    aligned(&head, &answer.rows.iter().filter(measured).map(cells).collect::<Vec<_>>())
}

pub fn of_ratios(ratios: &[Ratio]) -> String {
    let head = ["ratio", "measured", "better"].map(str::to_owned);
    let row = |ratio: &Ratio| {
        vec![ratio.name.clone(), figure(ratio.figure, 2), ratio.better.name().to_owned()]
    };
    let rows: Vec<Vec<String>> = ratios.iter().map(row).collect();
    aligned(&head, &rows)
}

fn figure(figure: Figure, digits: usize) -> String {
    let Figure { median, least, most } = figure;
    format!("{median:.digits$} [{least:.digits$}-{most:.digits$}]")
}

fn aligned(head: &[String], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..head.len())
        .map(|at| {
            rows.iter().chain([&head.to_vec()]).map(|row| row[at].len()).max().unwrap_or(0).max(2)
        })
        .collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(at, &width)| if at == 0 { "-".repeat(width) } else { "-".repeat(width - 1) + ":" })
        .collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    line(head) + &line(&rule) + &rows
}
