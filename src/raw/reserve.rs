//! Checks that the resources are available that the C client needs to open a handle.
//!
//! If the C client gets no thread, one of its assertions ends the whole process. If it gets no socket, it
//! retries and reports nothing. So we take these resources first, and give them back right before the
//! C client takes them. (If another thread of the program is faster, this check does not help.)

use std::fs::File;
use std::io;
use std::thread;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use crate::scarcity;

/// Two for a pipe, one for the connection, one for the resolution of names.
const DESCRIPTORS: usize = 4;
/// Those of a handle, and two more: one that has ended may be counted for a moment yet.
const THREADS: usize = 4;

pub(super) fn reserve() -> io::Result<()> {
    let mut taken = Vec::with_capacity(DESCRIPTORS);
    while taken.len() < DESCRIPTORS {
        match File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(error) if scarcity::is_scarcity(&error) => return Err(error),
            // There need not be such a file.
            Err(_) => break,
        }
    }
    drop(taken);
    // As large as the C client's.
    let stack = getrlimit(Resource::Stack).current.and_then(|bytes| usize::try_from(bytes).ok());
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        for _ in 0..THREADS {
            let mut thread = thread::Builder::new().name("zklock-reserve".into());
            if let Some(stack) = stack {
                thread = thread.stack_size(stack);
            }
            thread.spawn_scoped(scope, || drop(gate.lock()))?;
        }
        drop(closed);
        Ok(())
    })
}
