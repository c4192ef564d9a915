//! A few seconds of a run: every tenure by the servers' log, and below it the belief of its holder.

use std::collections::HashMap;

use super::scale::Scale;
use super::{LEFT, RIGHT, colour, seconds, shade};
use crate::evidence::Evidence;
use crate::fault::{Fault, FaultKind};
use crate::judge::{Belief, Verdict};
use test_support::svg::{Anchor, Page};

const FAULT_ROW: f64 = 16.0;
const LOCK_ROW: f64 = 24.0;
const LEGEND_ROW: f64 = 15.0;
const LONGEST: f64 = 12.0;
/// One for each process, over and over.
const COLOURS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7",
    "#86bc86", "#a0cbe8",
];
const UNKNOWN: &str = "#999";

pub fn draw(page: &mut Page, evidence: &Evidence, verdict: &Verdict) {
    let beliefs = Beliefs::new(verdict);
    let (from, until) = beliefs.window(evidence);
    let scale = Scale { left: LEFT, right: RIGHT, from, until };
    let in_view =
        |fault: &&Fault| scale.shows(seconds(evidence, fault.from), seconds(evidence, fault.until));
    let faults: Vec<&Fault> = evidence.faults.iter().filter(in_view).collect();
    let top = page.bottom + 32.0;
    page.text((20.0, page.bottom + 20.0), Anchor::Start, "head", "A closer look");
    let locks_top = top + FAULT_ROW * faults.len() as f64 + 10.0;
    let bottom = locks_top + LOCK_ROW * evidence.locks.len() as f64;
    shade(page, evidence, &scale, locks_top, bottom);
    scale.draw_axis(page, top, bottom);
    for (row, fault) in faults.iter().enumerate() {
        draw_fault(page, evidence, &scale, fault, top + FAULT_ROW * row as f64);
    }
    for (row, lock) in evidence.locks.iter().enumerate() {
        let y = locks_top + LOCK_ROW * row as f64;
        page.text((LEFT - 10.0, y + 13.0), Anchor::End, "", &lock.name);
        draw_tenures(page, evidence, &beliefs, &scale, row, y);
    }
    let legends = [
        "Bars: tenures by the servers' log, a colour for each client process, grey where no client \
         knew of it.",
        "Lines below: what the holder believed; red: slept through the end of its tenure, its writes \
         refused; brown: its claim was deleted by an operator.",
    ];
    for (row, legend) in legends.into_iter().enumerate() {
        let y = bottom + 32.0 + LEGEND_ROW * row as f64;
        page.text((LEFT, y), Anchor::Start, "small", legend);
    }
    page.bottom = bottom + 40.0 + LEGEND_ROW;
}

fn draw_fault(page: &mut Page, evidence: &Evidence, scale: &Scale, fault: &Fault, y: f64) {
    let what = evidence.told(fault);
    page.text((LEFT - 10.0, y + 12.0), Anchor::End, "", &what);
    let x = scale.x(seconds(evidence, fault.from));
    let width = (scale.x(seconds(evidence, fault.until)) - x).max(2.0);
    page.rect(x, y + 3.0, width, FAULT_ROW - 5.0, &format!("fill=\"{}\"", colour(fault.kind)));
    let lasted = format!("{:.1} s", fault.lasted().as_secs_f64());
    let (at, anchor, class) = match (x - 50.0 < LEFT, x + width + 50.0 > RIGHT) {
        (_, false) => (x + width + 5.0, Anchor::Start, "small"),
        (false, true) => (x - 5.0, Anchor::End, "small"),
        (true, true) => (x + 5.0, Anchor::Start, "inside"),
    };
    page.text((at, y + 12.0), anchor, class, &lasted);
}

fn draw_tenures(
    page: &mut Page,
    evidence: &Evidence,
    beliefs: &Beliefs,
    scale: &Scale,
    lock: usize,
    y: f64,
) {
    for tenure in &evidence.history.locks[lock].tenures {
        let from = seconds(evidence, tenure.begin.at);
        let end = tenure.end.map_or(scale.until, |end| seconds(evidence, end.at));
        let belief = beliefs.of(lock, tenure.token);
        let knew = belief.and_then(Belief::knew).map(|at| seconds(evidence, at));
        if !scale.shows(from, end.max(knew.unwrap_or(end))) {
            continue;
        }
        let fill = belief.map_or(UNKNOWN, |it| COLOURS[it.process as usize % COLOURS.len()]);
        let x = scale.x(from);
        let width = (scale.x(end) - x).max(0.8);
        page.rect(x, y + 3.0, width, 12.0, &format!("fill=\"{fill}\""));
        let Some(belief) = belief else {
            continue;
        };
        let got = seconds(evidence, belief.got);
        let line = y + 18.5;
        let until = knew.unwrap_or(end).min(end);
        let style = format!("stroke=\"{fill}\" stroke-width=\"2\"");
        page.line((scale.x(got), line), (scale.x(until), line), &style);
        // A release takes a moment, and is no sleep.
        if let Some(knew) = knew.filter(|knew| *knew > end && belief.is_lost()) {
            let late =
                if tenure.robbed().is_some() { colour(FaultKind::LockDeleted) } else { "#d00" };
            let style = format!("stroke=\"{late}\" stroke-width=\"2\" stroke-dasharray=\"4 3\"");
            page.line((scale.x(end), line), (scale.x(knew), line), &style);
        }
    }
}

/// What holders believed, by lock and token.
struct Beliefs<'a>(HashMap<(usize, i64), &'a Belief>);

impl<'a> Beliefs<'a> {
    fn new(verdict: &'a Verdict) -> Beliefs<'a> {
        let all = verdict.accounts.iter().flat_map(|account| &account.beliefs);
        Beliefs(all.map(|belief| ((belief.lock, belief.token), belief)).collect())
    }

    fn of(&self, lock: usize, token: i64) -> Option<&'a Belief> {
        self.0.get(&(lock, token)).copied()
    }

    /// The seconds to show: around a holder that slept through its end, or a client that was
    /// frozen, or just the first.
    fn window(&self, evidence: &Evidence) -> (f64, f64) {
        let slept = |lock: usize, token: i64, end: f64| {
            let belief = self.of(lock, token).filter(|belief| belief.is_lost())?;
            let knew = seconds(evidence, belief.knew()?);
            (knew > end).then_some((seconds(evidence, belief.got), knew))
        };
        let mut sleepers = Vec::new();
        for (number, lock) in evidence.history.locks.iter().enumerate() {
            for tenure in lock.tenures.iter().filter(|tenure| tenure.robbed().is_none()) {
                let end = tenure.end.map(|end| seconds(evidence, end.at));
                sleepers.extend(end.and_then(|end| slept(number, tenure.token, end)));
            }
        }
        // The one with the fewest other faults beside it is the easiest to read.
        let crowd = |window: &(f64, f64)| {
            let (from, until) = (window.0 - 2.0, window.1 + 2.0);
            let faults = evidence.faults.iter();
            faults
                .filter(|it| {
                    seconds(evidence, it.from) < until && seconds(evidence, it.until) > from
                })
                .count()
        };
        let frozen = evidence.faults.iter().find(|it| it.kind == FaultKind::ClientFrozen);
        let frozen = frozen.map(|it| (seconds(evidence, it.from), seconds(evidence, it.until)));
        let (from, until) =
            sleepers.into_iter().min_by_key(crowd).or(frozen).unwrap_or((2.0, LONGEST - 2.0));
        let middle = f64::midpoint(from, until);
        let half = ((until - from) / 2.0 + 2.0).min(LONGEST / 2.0);
        ((middle - half).max(0.0), middle + half)
    }
}
