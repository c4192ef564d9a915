//! Carries the C client's log lines to `tracing`.
//!
//! The C client logs on its IO thread, and a subscriber may block (a full pipe is enough): then no
//! ping would leave and the session would expire. So the callback only queues; one thread for the
//! process, started with the first line, hands the lines on. A full queue drops lines and says how
//! many.

use std::ffi::c_char;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::{callback, convert};
use crate::process::PerProcess;

const QUEUE: usize = 1_024;

static LINES: PerProcess<Option<SyncSender<String>>> = PerProcess::new(start);
static DROPPED: AtomicUsize = AtomicUsize::new(0);

pub(super) unsafe extern "C" fn forward(line: *const c_char) {
    callback::run(|| {
        // SAFETY: the C client keeps the line until the callback returns.
        let Some(line) = (unsafe { convert::string(line) }) else {
            return;
        };
        let queued = LINES.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !queued {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    });
}

fn start() -> Option<SyncSender<String>> {
    let (send, receive) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("zklock-log".into());
    thread.spawn(move || emit(&receive)).ok().map(|_| send)
}

fn emit(lines: &Receiver<String>) {
    for line in lines {
        // A line reads `time:pid(thread):ZOO_WARN@function@line: message`.
        let (head, message) = line.split_once(": ").unwrap_or(("", &line));
        if head.contains(":ZOO_ERROR@") {
            tracing::error!(target: "zookeeper_c", "{message}");
        } else if head.contains(":ZOO_WARN@") {
            tracing::warn!(target: "zookeeper_c", "{message}");
        } else {
            tracing::debug!(target: "zookeeper_c", "{message}");
        }
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(target: "zookeeper_c", dropped, "log lines were dropped");
        }
    }
}
