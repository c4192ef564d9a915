//! A little SVG: shapes on a page whose height grows as it is drawn.

use std::fmt::Write as _;

/// A page under construction.
pub struct Page {
    body: String,
    width: f64,
    /// How far down the page is in use.
    pub bottom: f64,
}

/// Where a text stands in relation to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Page {
    pub fn new(width: f64) -> Page {
        Page { body: String::new(), width, bottom: 0.0 }
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}/>"
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
        );
    }

    /// An area between the points and the line `floor` below them.
    pub fn area(&mut self, points: &[(f64, f64)], floor: f64, style: &str) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return;
        };
        let mut path = format!("M{:.1} {floor:.1}", first.0);
        for (x, y) in points {
            let _ = write!(path, "L{x:.1} {y:.1}");
        }
        let _ = writeln!(self.body, "<path d=\"{path}L{:.1} {floor:.1}Z\" {style}/>", last.0);
    }

    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let (x, y) = at;
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    pub fn finish(self) -> String {
        let (width, height) = (self.width, self.bottom);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>text{{font-family:sans-serif;\
             font-size:12px;fill:#333}}.title{{font-size:18px;font-weight:bold}}\
             .head{{font-size:14px;font-weight:bold}}.small{{font-size:11px;fill:#666}}\
             .inside{{font-size:11px;fill:#fff}}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Times on the way from left to right.
pub struct Scale {
    pub left: f64,
    pub right: f64,
    /// In seconds since the start of the run.
    pub from: f64,
    pub until: f64,
}

impl Scale {
    pub fn x(&self, time: f64) -> f64 {
        let share = (time - self.from) / (self.until - self.from).max(1e-9);
        self.left + (self.right - self.left) * share.clamp(0.0, 1.0)
    }

    /// Whether any of it is in view.
    pub fn shows(&self, from: f64, until: f64) -> bool {
        until >= self.from && from <= self.until
    }

    /// Round times in view, about ten of them.
    pub fn ticks(&self) -> Vec<f64> {
        const STEPS: [f64; 10] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
        let span = self.until - self.from;
        let step = STEPS.into_iter().find(|step| span / step <= 14.0).unwrap_or(span / 10.0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.until / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    /// The grid and its times, over rows from `top` to `bottom`.
    pub fn draw_axis(&self, page: &mut Page, top: f64, bottom: f64) {
        for tick in self.ticks() {
            let x = self.x(tick);
            page.line((x, top), (x, bottom), "stroke=\"#ddd\"");
            page.text((x, bottom + 14.0), Anchor::Middle, "small", &format!("{tick} s"));
        }
    }
}
