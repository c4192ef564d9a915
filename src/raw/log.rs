//! Carries the C client's log lines to `tracing`.

use std::ffi::c_char;

use super::{callback, convert};
use crate::logging;

pub(super) unsafe extern "C" fn forward(line: *const c_char) {
    callback::run(|| {
        // SAFETY: the C client keeps the line until the callback returns.
        if let Some(line) = unsafe { convert::string(line) } {
            logging::queue(Box::new(move || emit(&line)));
        }
    });
}

fn emit(line: &str) {
    // A line reads `time:pid(thread):ZOO_WARN@function@line: message`.
    let (head, message) = line.split_once(": ").unwrap_or(("", line));
    if head.contains(":ZOO_ERROR@") {
        tracing::error!(target: "zookeeper_c", "{message}");
    } else if head.contains(":ZOO_WARN@") {
        tracing::warn!(target: "zookeeper_c", "{message}");
    } else {
        tracing::debug!(target: "zookeeper_c", "{message}");
    }
}
