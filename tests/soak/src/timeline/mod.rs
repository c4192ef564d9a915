//! A picture of a run: above, all of it, with the faults and how often each lock was acquired; below,
//! a few seconds around a client that was frozen, with every tenure and what the holders believed.

mod closeup;
mod overview;
mod scale;

use crate::clock::Moment;
use crate::evidence::Evidence;
use crate::fault::{Fault, FaultKind};
use crate::judge::Verdict;
use scale::Scale;
use test_support::svg::{Anchor, Page};

const WIDTH: f64 = 1400.0;
/// Where the rows begin, right of their names, and where they end.
const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH - 30.0;

/// The picture as SVG.
pub fn draw(evidence: &Evidence, verdict: &Verdict) -> String {
    let mut page = Page::new(WIDTH);
    let (run, counts) = (&evidence.run, &verdict.counts);
    let title = format!(
        "soak, seed {}: {} acquisitions, {} faults, {} violations",
        run.seed,
        thousands(counts.acquisitions),
        evidence.faults.len(),
        verdict.violations.len()
    );
    page.text((20.0, 32.0), Anchor::Start, "title", &title);
    let details = format!(
        "{} client processes with {} sessions contend for {} locks; \
         session timeout {:.1} s, {}; {} orphans, {} hung waiters",
        run.processes,
        run.sessions,
        evidence.locks.len(),
        run.session_timeout.as_secs_f64(),
        run.shape,
        counts.orphans,
        counts.hung
    );
    page.text((20.0, 52.0), Anchor::Start, "small", &details);
    page.bottom = 66.0;
    overview::draw(&mut page, evidence);
    closeup::draw(&mut page, evidence, verdict);
    page.bottom += 16.0;
    page.finish()
}

/// Seconds since the start of the run.
fn seconds(evidence: &Evidence, at: Moment) -> f64 {
    (at.0 - evidence.run.start.0) as f64 / 1e9
}

fn colour(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::LeaderKilled => "#c0392b",
        FaultKind::FollowerKilled => "#e67e22",
        FaultKind::LeaderFrozen => "#8e44ad",
        FaultKind::FollowerFrozen => "#b98fce",
        FaultKind::LeaderStalled => "#5e35b1",
        FaultKind::LeaderStutters => "#3949ab",
        FaultKind::FollowerSevered => "#c9a227",
        FaultKind::QuorumDown => "#222222",
        FaultKind::ClientKilled => "#d81b60",
        FaultKind::ClientFrozen => "#1e88e5",
        FaultKind::LinkCut => "#00897b",
        FaultKind::LockDeleted => "#795548",
        FaultKind::HoldBroken => "#a1887f",
    }
}

/// What all servers being down looks like behind the locks.
fn shade(page: &mut Page, evidence: &Evidence, scale: &Scale, top: f64, bottom: f64) {
    let down = |fault: &&Fault| fault.kind == FaultKind::QuorumDown;
    for fault in evidence.faults.iter().filter(down) {
        let (from, until) = (seconds(evidence, fault.from), seconds(evidence, fault.until));
        if scale.shows(from, until) {
            let (x, end) = (scale.x(from), scale.x(until));
            page.rect(x, top, end - x, bottom - top, "fill=\"#f0f0f0\"");
        }
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_parted_in_threes() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(50_000), "50,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }

    #[test]
    fn ticks_are_round_and_in_view() {
        let scale = Scale { left: 0.0, right: 100.0, from: 3.2, until: 15.0 };
        let ticks = scale.ticks();
        assert_eq!((ticks[0], ticks.len()), (4.0, 12));
        assert!(scale.x(15.0) > scale.x(4.0) && scale.x(99.0) <= 100.0);
    }
}
