//! A picture for each question: a panel for each number of contenders and each figure, a bar for each contestant.

use test_support::svg::{Anchor, Page};

use crate::figures::{Answer, Figure, Row};
use crate::question::Column;

const WIDTH: f64 = 920.0;
const MARGIN: f64 = 20.0;
/// Two panels side by side.
const PANEL: f64 = (WIDTH - 3.0 * MARGIN) / 2.0;
const ROW: f64 = 22.0;
const BAR: f64 = 13.0;
/// Room for names, and for numbers.
const NAMES: f64 = 180.0;
const NUMBERS: f64 = 60.0;
const OURS: &str = "#2b6cb0";
const OTHERS: &str = "#b8c4d0";

struct Panel<'a> {
    title: String,
    column: &'a Column,
    rows: Vec<(&'a Row, Figure)>,
}

impl Panel<'_> {
    fn height(&self) -> f64 {
        30.0 + ROW * self.rows.len() as f64
    }
}

pub fn draw(answer: &Answer) -> String {
    let mut page = Page::new(WIDTH);
    page.text((MARGIN, 30.0), Anchor::Start, "title", answer.question.title);
    page.bottom = 50.0;
    for pair in panels(answer).chunks(2) {
        for (at, panel) in pair.iter().enumerate() {
            draw_panel(&mut page, panel, MARGIN + at as f64 * (PANEL + MARGIN), pair.len());
        }
        page.bottom += pair.iter().map(Panel::height).fold(0.0, f64::max) + 14.0;
    }
    let legend = "Bars: medians of the rounds. Lines: the least and the most.";
    page.text((MARGIN, page.bottom + 8.0), Anchor::Start, "small", legend);
    page.bottom += 22.0;
    page.finish()
}

fn panels(answer: &Answer) -> Vec<Panel<'_>> {
    let mut numbers: Vec<usize> = answer.rows.iter().map(|row| row.entry.n).collect();
    numbers.dedup();
    let drawn = || answer.question.columns.iter().filter(|column| column.drawn);
    let panels = numbers.into_iter().flat_map(|n| drawn().map(move |column| (n, column)));
    panels
        .map(|(n, column)| Panel {
            title: match answer.question.of {
                Some(of) => format!("{}, {n} {of}", column.heading),
                None => column.heading.to_owned(),
            },
            column,
            rows: answer
                .rows
                .iter()
                .filter(|row| row.entry.n == n)
                .filter_map(|row| Some((row, row.figure(column.field)?)))
                .collect(),
        })
        .collect()
}

fn draw_panel(page: &mut Page, panel: &Panel, left: f64, side_by_side: usize) {
    let right = if side_by_side == 1 { WIDTH - MARGIN } else { left + PANEL };
    let top = page.bottom;
    let zero = left + NAMES;
    let most = panel.rows.iter().map(|(_, figure)| figure.most).fold(f64::MIN_POSITIVE, f64::max);
    let x = |value: f64| zero + (right - NUMBERS - zero) * value / most;
    page.text((left, top + 14.0), Anchor::Start, "head", &panel.title);
    for (place, (row, figure)) in panel.rows.iter().enumerate() {
        let y = top + 26.0 + ROW * place as f64;
        let middle = y + BAR / 2.0;
        let colour = if row.entry.label.starts_with(crate::question::OURS) { OURS } else { OTHERS };
        page.text((zero - 8.0, middle + 4.0), Anchor::End, "", &row.entry.label);
        page.rect(zero, y, (x(figure.median) - zero).max(1.0), BAR, &format!("fill=\"{colour}\""));
        let whisker = "stroke=\"#444\" stroke-width=\"1.2\"";
        page.line((x(figure.least), middle), (x(figure.most), middle), whisker);
        for end in [figure.least, figure.most] {
            page.line((x(end), middle - 3.0), (x(end), middle + 3.0), whisker);
        }
        let number = thousands(figure.median, panel.column.digits);
        page.text((x(figure.most) + 6.0, middle + 4.0), Anchor::Start, "small", &number);
    }
}

fn thousands(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let bytes = whole.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = bytes.map(String::from_utf8_lossy).collect();
    let whole = groups.join(",");
    fraction.map_or(whole.clone(), |fraction| format!("{whole}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_parted_in_threes() {
        assert_eq!(thousands(7.25, 1), "7.2");
        assert_eq!(thousands(1_234_567.0, 0), "1,234,567");
        assert_eq!(thousands(123.0, 0), "123");
    }
}
