//! A picture of how threads wait and hold: a row for each thread, the strategies one above the other.

use std::time::Duration;

use svg::node::element::{Line, Rectangle, Style, Text};
use svg::{Document, Node};

use crate::acquire::Acquire;
use crate::report::Report;

/// What is shown are about so many holds of the strategy that has the most in a time.
const SHOWN: usize = 60;
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = WIDTH - 20.0;
const ROW: f64 = 20.0;
/// What is too short to be seen is drawn so wide.
const NARROWEST: f64 = 1.5;
const COLOURS: [&str; 6] = ["#2b6cb0", "#dd7a2b", "#3f8f4f", "#a23b72", "#8a6d1d", "#5b57a6"];
const STYLE: &str = "text{font-family:sans-serif;font-size:12px;fill:#333}\
    .head{font-size:14px;font-weight:bold}.small{font-size:11px;fill:#666}";

/// The same stretch of time of each run, from its middle on.
pub fn draw(reports: &[Report]) -> String {
    let span = span(reports);
    let mut page = Page { document: Document::new().add(Style::new(STYLE)), bottom: 12.0 };
    for report in reports {
        page.draw_run(report, span);
    }
    let legend = format!(
        "{:.1} ms of each run. Thick: holds, a colour for each thread. Thin: waits, from the call of acquire on.",
        span.as_secs_f64() * 1_000.0
    );
    page.text((LEFT, page.bottom + 16.0), "start", "small", &legend);
    let height = page.bottom + 28.0;
    let view = format!("0 0 {WIDTH} {height:.0}");
    let sized = page.document.set("width", WIDTH).set("height", height).set("viewBox", view);
    format!("{sized}\n")
}

/// How long it takes whoever is quickest to get the lock as often as is shown; no longer than half of any run.
fn span(reports: &[Report]) -> Duration {
    let taken = |report: &Report| {
        let holds = report.acquires.iter().filter(|acquire| acquire.got.is_some()).count().max(1);
        let time = Duration::from_secs_f64(report.seconds);
        time.mul_f64(SHOWN as f64 / holds as f64).min(time / 2)
    };
    reports.iter().map(taken).min().unwrap_or_default()
}

struct Page {
    document: Document,
    bottom: f64,
}

impl Page {
    fn draw_run(&mut self, report: &Report, span: Duration) {
        let middle = report.acquires.get(report.acquires.len() / 2);
        let from = middle.map_or(Duration::ZERO, |acquire| acquire.ended);
        let x = |at: Duration| {
            let share = at.saturating_sub(from).as_secs_f64() / span.as_secs_f64().max(1e-9);
            LEFT + (RIGHT - LEFT) * share.min(1.0)
        };
        let title = format!("{}, {} threads", report.strategy, report.threads);
        self.text((LEFT, self.bottom + 14.0), "start", "head", &title);
        let top = self.bottom + 22.0;
        for thread in 0..report.threads {
            let floor = top + ROW * (thread + 1) as f64;
            self.text((LEFT - 8.0, floor - 6.0), "end", "", &format!("thread {thread}"));
            let line = Line::new().set("x1", LEFT).set("x2", RIGHT).set("y1", floor);
            self.add(line.set("y2", floor).set("stroke", "#eee"));
        }
        let in_view = |acquire: &&Acquire| acquire.ended >= from && acquire.asked <= from + span;
        for acquire in report.acquires.iter().filter(in_view) {
            let middle = top + ROW * (acquire.thread as f64 + 0.5);
            let colour = COLOURS[acquire.thread % COLOURS.len()];
            let waited = acquire.got.unwrap_or(acquire.ended);
            self.bar((x(acquire.asked), x(waited)), middle, 3.0, colour, 0.35);
            if let Some(got) = acquire.got.filter(|got| *got <= from + span) {
                let end = x(acquire.ended).max(x(got) + NARROWEST);
                self.bar((x(got), end), middle, 14.0, colour, 1.0);
            }
        }
        self.bottom = top + ROW * report.threads as f64 + 12.0;
    }

    fn bar(
        &mut self,
        (from, until): (f64, f64),
        middle: f64,
        height: f64,
        colour: &str,
        opacity: f64,
    ) {
        let rectangle =
            Rectangle::new().set("x", rounded(from)).set("width", rounded(until - from));
        let rectangle = rectangle.set("y", rounded(middle - height / 2.0)).set("height", height);
        self.add(rectangle.set("fill", colour).set("fill-opacity", opacity));
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
        let text = Text::new(text).set("x", x).set("y", y);
        self.add(text.set("text-anchor", anchor).set("class", class));
    }

    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.document.append(node);
    }
}

/// To tenths of a pixel.
fn rounded(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}
