//! A line on the terminal that shows how far a run is.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line; it goes when this value does. There is none unless stderr is a terminal.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    pub fn start(time: Duration) -> Progress {
        let shown = std::io::stderr().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(millis(time)), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Progress { bar, started: Instant::now() }
    }

    pub fn show(&self, acquired: u64, faults: usize) {
        self.bar.set_position(millis(self.started.elapsed()));
        self.bar.set_message(format!("{acquired} acquisitions by those alive, {faults} faults"));
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
