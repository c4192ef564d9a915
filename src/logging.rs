//! Log lines that block nobody.
//!
//! A subscriber is somebody else's code: it may block (a full pipe is enough), and it may panic. On
//! the C client's threads, or on the driver, no proof that the session lives would come then, and
//! its locks would be lost. So a line is only queued; one thread for the process, started with the
//! first line, hands the lines on. A full queue drops lines and says how many.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::Mutex;

use crate::process::PerProcess;
use crate::threads;

const QUEUE: usize = 1_024;

type Line = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Lines {
    queue: Mutex<Option<SyncSender<Line>>>,
    dropped: AtomicUsize,
    /// Spans that are over, which no full queue may leave to other threads.
    over: Mutex<Vec<Box<dyn Any + Send>>>,
}

static LINES: PerProcess<Lines> = PerProcess::new(Lines::default);

/// As `tracing`'s macros, with the level in capitals. The line takes its values by move.
macro_rules! log {
    ($level:ident, $($line:tt)+) => {
        if $crate::logging::is_wanted(tracing::Level::$level) {
            $crate::logging::queue(Box::new(move || {
                tracing::event!(tracing::Level::$level, $($line)+);
            }));
        }
    };
}

pub(crate) use log;

/// Whether anybody may want lines of this level; asks nobody.
pub(crate) fn is_wanted(level: tracing::Level) -> bool {
    let by_log = match level {
        tracing::Level::ERROR => log::Level::Error,
        tracing::Level::WARN => log::Level::Warn,
        tracing::Level::INFO => log::Level::Info,
        tracing::Level::DEBUG => log::Level::Debug,
        tracing::Level::TRACE => log::Level::Trace,
    };
    level <= tracing::level_filters::LevelFilter::current() || by_log <= log::max_level()
}

/// Whether there was room for it.
pub(crate) fn queue(line: Line) -> bool {
    let lines = &*LINES;
    let queue = started(&mut lines.queue.lock());
    let is_queued = queue.is_some_and(|queue| queue.try_send(line).is_ok());
    if !is_queued {
        lines.dropped.fetch_add(1, Ordering::Relaxed);
    }
    is_queued
}

/// Drops it where lines are handed on, after those that are queued by now.
pub(crate) fn close_later(span: Box<dyn Any + Send>) {
    LINES.over.lock().push(span);
    queue(Box::new(|| ()));
}

/// The queue; its thread is started if there is none yet and one can be had.
fn started(queue: &mut Option<SyncSender<Line>>) -> Option<SyncSender<Line>> {
    if queue.is_none() {
        let (send, receive) = sync_channel(QUEUE);
        threads::spawn("zklock-log", move || serve(&receive)).ok()?;
        *queue = Some(send);
    }
    queue.clone()
}

/// Has the thread end once it has handed on what is queued. The next line starts another.
#[cfg(feature = "capi")]
pub(crate) fn end_when_idle() {
    *LINES.queue.lock() = None;
}

fn serve(lines: &Receiver<Line>) {
    for line in lines {
        // A subscriber that panics has nobody to tell.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            line();
            let over = std::mem::take(&mut *LINES.over.lock());
            drop(over);
            let dropped = LINES.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(dropped, "log lines were dropped");
            }
        }));
    }
}
