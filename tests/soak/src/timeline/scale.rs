//! Times on the way from left to right: where they are, and the grid.

use test_support::svg::{Anchor, Page};

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
