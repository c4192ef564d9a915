//! Says whom a run waits for (`--verbose`).

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use zklock::Lock;

use crate::look::who::in_short;
use crate::output::say;

/// Until it is dropped.
pub struct Waiting(#[expect(dead_code, reason = "dropped, it ends the thread")] Sender<()>);

/// Before the first look at who has the lock: most locks are free.
const FIRST: Duration = Duration::from_millis(100);
/// From one look to the next.
const NEXT: Duration = Duration::from_secs(1);

impl Waiting {
    pub fn begin(lock: Lock) -> Waiting {
        let (end, ended) = channel();
        let look = move || {
            let (mut pause, mut before) = (FIRST, None);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = NEXT;
                let holder = lock.holder().within(NEXT).wait().ok().flatten();
                if let Some(holder) = holder.filter(|holder| before != Some(holder.token)) {
                    before = Some(holder.token);
                    say(format_args!("{}: waiting for {}", lock.path(), in_short(&holder)));
                }
            }
        };
        // Without a thread, nothing is said.
        let _ = thread::Builder::new().name("waiting".to_owned()).spawn(look);
        Waiting(end)
    }
}
