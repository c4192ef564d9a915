//! What was measured: samples of each contestant, round by round, and their medians.

use serde_json::{Map, Value, json};

use crate::machine::Machine;
use crate::play::Sample;
use crate::question::{Entry, Key, Question};
use crate::ratios::Ratio;

/// The middle of what the rounds have given, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figure {
    /// `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Figure> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = match values.len() {
            0 => return None,
            odd if odd % 2 == 1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Figure { median, least: values[0], most: values[values.len() - 1] })
    }
}

/// What a contestant has come to.
pub struct Row {
    pub entry: Entry,
    /// One for each round; `None` where it failed.
    pub rounds: Vec<Option<Sample>>,
    /// Why it failed, or is not there.
    pub trouble: Option<String>,
}

impl Row {
    pub fn in_round(&self, round: usize, field: &str) -> Option<f64> {
        self.rounds.get(round)?.as_ref()?.get(field).copied()
    }

    pub fn figure(&self, field: &str) -> Option<Figure> {
        Figure::of((0..self.rounds.len()).filter_map(|round| self.in_round(round, field)))
    }
}

/// A question with its answers.
pub struct Answer {
    pub question: Question,
    pub rows: Vec<Row>,
}

impl Answer {
    pub fn row(&self, label: &str, n: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.entry.label == label && row.entry.n == n)
    }
}

pub struct Report {
    pub ensemble: bool,
    pub rounds: u32,
    pub seconds: f64,
    pub machine: Machine,
    pub answers: Vec<Answer>,
    pub ratios: Vec<Ratio>,
}

impl Report {
    pub fn answer(answers: &[Answer], key: Key) -> Option<&Answer> {
        answers.iter().find(|answer| answer.question.key == key)
    }

    pub fn json(&self) -> Value {
        let figure = |it: Figure| json!({ "median": it.median, "min": it.least, "max": it.most });
        let row = |answer: &Answer, row: &Row| {
            let columns = answer.question.columns.iter();
            let figures: Map<String, Value> = columns
                .filter_map(|it| Some((it.field.to_owned(), figure(row.figure(it.field)?))))
                .collect();
            json!({ "contestant": row.entry.label, "n": row.entry.n, "figures": figures, "trouble": row.trouble })
        };
        let answers: Map<String, Value> = self
            .answers
            .iter()
            .map(|answer| {
                let rows: Vec<Value> = answer.rows.iter().map(|it| row(answer, it)).collect();
                (answer.question.key.name(), rows.into())
            })
            .collect();
        let ratios: Vec<Value> = self.ratios.iter().map(Ratio::json).collect();
        json!({
            "ensemble": self.ensemble,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "machine": self.machine.json(),
            "answers": answers,
            "ratios": ratios,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(Figure::of([]), None);
        assert_eq!(
            Figure::of([3.0, 1.0, 8.0]),
            Some(Figure { median: 3.0, least: 1.0, most: 8.0 })
        );
        assert_eq!(Figure::of([4.0, 2.0]).map(|it| it.median), Some(3.0));
    }
}
