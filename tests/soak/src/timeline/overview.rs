//! All of a run: a row for each kind of fault, and one for each lock.

use super::scale::Scale;
use super::{LEFT, RIGHT, colour, seconds, shade};
use crate::evidence::Evidence;
use crate::fault::FaultKind;
use crate::locks::Sort;
use test_support::svg::{Anchor, Page};

const FAULT_ROW: f64 = 16.0;
const LOCK_ROW: f64 = 26.0;
/// A fault shorter than that is drawn so wide.
const NARROWEST: f64 = 2.0;
/// A tenure of so many seconds is drawn by itself.
const LONG: f64 = 0.5;
/// How wide a bin of the curves is.
const BIN: f64 = 2.5;

pub fn draw(page: &mut Page, evidence: &Evidence) {
    let until = seconds(evidence, evidence.run.end);
    let scale = Scale { left: LEFT, right: RIGHT, from: 0.0, until };
    let top = page.bottom + 24.0;
    page.text((20.0, page.bottom + 14.0), Anchor::Start, "head", "The whole run");
    let faults_end = top + FAULT_ROW * FaultKind::ALL.len() as f64;
    let locks_top = faults_end + 14.0;
    let bottom = locks_top + LOCK_ROW * evidence.locks.len() as f64;
    shade(page, evidence, &scale, locks_top, bottom);
    scale.draw_axis(page, top, bottom);
    draw_faults(page, evidence, &scale, top);
    let most = draw_locks(page, evidence, &scale, locks_top);
    let legend = format!(
        "Height: acquisitions per second, full rows are {most:.0}. Dark bars below: tenures of \
         {LONG} s and more. Grey: all servers down, until they serve again."
    );
    page.text((LEFT, bottom + 32.0), Anchor::Start, "small", &legend);
    page.bottom = bottom + 44.0;
}

fn draw_faults(page: &mut Page, evidence: &Evidence, scale: &Scale, top: f64) {
    for (row, kind) in FaultKind::ALL.into_iter().enumerate() {
        let y = top + FAULT_ROW * row as f64;
        page.text((LEFT - 10.0, y + 12.0), Anchor::End, "", kind.name());
        page.line((LEFT, y + FAULT_ROW), (RIGHT, y + FAULT_ROW), "stroke=\"#f0f0f0\"");
        for fault in evidence.faults.iter().filter(|fault| fault.kind == kind) {
            let x = scale.x(seconds(evidence, fault.from));
            let width = scale.x(seconds(evidence, fault.until)) - x;
            let style = format!("fill=\"{}\"", colour(kind));
            page.rect(x, y + 3.0, width.max(NARROWEST), FAULT_ROW - 5.0, &style);
        }
    }
}

/// Gives the rate at which a row is full.
fn draw_locks(page: &mut Page, evidence: &Evidence, scale: &Scale, top: f64) -> f64 {
    let bins = ((RIGHT - LEFT) / BIN) as usize;
    let bin_time = (scale.until - scale.from) / bins as f64;
    let rates: Vec<Vec<f64>> = evidence
        .history
        .locks
        .iter()
        .map(|lock| {
            let mut rates = vec![0.0; bins];
            for tenure in &lock.tenures {
                let at = seconds(evidence, tenure.begin.at) / bin_time;
                rates[(at.max(0.0) as usize).min(bins - 1)] += 1.0 / bin_time;
            }
            rates
        })
        .collect();
    // A peak of one bin would make all others small.
    let mut all: Vec<f64> = rates.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let most = all.get(all.len().saturating_sub(1 + all.len() / 200)).copied().unwrap_or(0.0);
    let most = most.max(1.0);
    for (row, (lock, rates)) in evidence.locks.iter().zip(&rates).enumerate() {
        let y = top + LOCK_ROW * row as f64;
        let floor = y + LOCK_ROW - 6.0;
        page.text((LEFT - 10.0, floor), Anchor::End, "", &lock.name);
        let height = LOCK_ROW - 9.0;
        let points: Vec<(f64, f64)> = rates
            .iter()
            .enumerate()
            .map(|(bin, rate)| {
                let x = LEFT + BIN * (bin as f64 + 0.5);
                (x, floor - height * (rate / most).min(1.0))
            })
            .collect();
        page.area(&points, floor, &format!("fill=\"{}\"", curve(lock.sort)));
        for tenure in &evidence.history.locks[row].tenures {
            let end = tenure.end.map_or(scale.until, |end| seconds(evidence, end.at));
            let from = seconds(evidence, tenure.begin.at);
            if end - from >= LONG {
                let x = scale.x(from);
                page.rect(x, floor + 0.5, (scale.x(end) - x).max(1.0), 3.0, "fill=\"#444\"");
            }
        }
    }
    most
}

fn curve(sort: Sort) -> &'static str {
    match sort {
        Sort::Queue => "#5b9bd5",
        Sort::Watch => "#70ad47",
        Sort::Poll => "#e0a030",
        Sort::ReadWrite => "#8e7cc3",
        Sort::Semaphore => "#45818e",
        Sort::Election => "#a64d79",
    }
}
