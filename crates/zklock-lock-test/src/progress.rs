//! A line on the terminal that shows how far a run is.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use zklock::Strategy;

use crate::args::Args;

/// The line; it goes when this value does. There is none unless stderr is a terminal, and none
/// among the lines of `-v`.
pub struct Progress {
    bar: ProgressBar,
    time: Option<Duration>,
    started: Instant,
}

impl Progress {
    pub fn start(args: &Args, strategy: Strategy) -> Progress {
        let shown = !args.verbose && std::io::stderr().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let time = args.time();
        let rounds = args.rounds.unwrap_or(0).saturating_mul(u64::from(args.threads));
        let bar = ProgressBar::with_draw_target(Some(time.map_or(rounds, millis)), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix:>5} {bar:30} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(strategy.to_string());
        Progress { bar, time, started: Instant::now() }
    }

    pub fn show(&self, acquisitions: u64) {
        let elapsed = self.started.elapsed();
        self.bar.set_position(self.time.map_or(acquisitions, |_| millis(elapsed)));
        let rate = acquisitions as f64 / elapsed.as_secs_f64().max(0.001);
        self.bar.set_message(format!("{acquisitions} acquisitions, {rate:.0}/s"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
