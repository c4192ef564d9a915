//! Carries the C client's log lines to `tracing`.

use std::ffi::c_char;

use tracing::Level;

use super::{callback_thread, convert};
use crate::logging;

pub(super) unsafe extern "C" fn forward(line: *const c_char) {
    callback_thread::run(|| {
        // SAFETY: the C client keeps the line until the callback returns.
        let line = unsafe { convert::string(line) };
        if let Some((level, line)) = line.map(|line| (level(&line), line)) {
            if logging::is_wanted(level) {
                logging::queue(Box::new(move || emit(level, &line)));
            }
        }
    });
}

/// A line reads `time:pid(thread):ZOO_WARN@function@line: message`.
fn split(line: &str) -> (&str, &str) {
    line.split_once(": ").unwrap_or(("", line))
}

fn level(line: &str) -> Level {
    let (head, _) = split(line);
    if head.contains(":ZOO_ERROR@") {
        Level::ERROR
    } else if head.contains(":ZOO_WARN@") {
        Level::WARN
    } else {
        Level::DEBUG
    }
}

fn emit(level: Level, line: &str) {
    let (_, message) = split(line);
    match level {
        Level::ERROR => tracing::error!(target: "zookeeper_c", "{message}"),
        Level::WARN => tracing::warn!(target: "zookeeper_c", "{message}"),
        _ => tracing::debug!(target: "zookeeper_c", "{message}"),
    }
}
