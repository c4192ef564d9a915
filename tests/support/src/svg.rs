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
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

impl Page {
    /// An empty one, so wide.
    pub fn new(width: f64) -> Page {
        Page { body: String::new(), width, bottom: 0.0 }
    }

    /// A rectangle; `style` are attributes of SVG.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, style: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}/>"
        );
    }

    /// A line from one point to another.
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

    /// A line of text; `class` is one of `title`, `head`, `small`, `inside`, or empty.
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

    /// The picture as SVG.
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
