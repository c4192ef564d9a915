//! The thread that asked for a lock, whichever thread goes on with the acquire.
//!
//! A claim names the thread of its owner. But any thread may poll a future, the C client's thread may take a step of an
//! acquire, and lost claims are made again. So each acquire remembers the thread that called it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::thread::Thread;

#[derive(Clone)]
pub(crate) struct Caller {
    thread: Thread,
    /// The system's, of a thread without a name.
    id: Option<ThreadId>,
}

thread_local! {
    /// Whom this thread acts for at the moment, if not for itself.
    static ACTS_FOR: RefCell<Option<Caller>> = const { RefCell::new(None) };
}

impl Caller {
    /// This thread, or the one that it acts for.
    pub(crate) fn present() -> Caller {
        let other = ACTS_FOR.try_with(|other| other.borrow().clone()).ok().flatten();
        other.unwrap_or_else(|| {
            let thread = std::thread::current();
            let id = thread.name().is_none().then(thread_id);
            Caller { thread, id }
        })
    }

    /// Takes a step for this caller: claims that are made in it name its thread.
    pub(crate) fn acts<T>(&self, step: impl FnOnce() -> T) -> T {
        let before = ACTS_FOR.try_with(|other| other.replace(Some(self.clone()))).ok();
        let _restore = Restore(before);
        step()
    }

    pub(super) fn name(&self) -> Cow<'_, str> {
        match (&self.id, self.thread.name()) {
            (Some(id), _) => id.to_string().into(),
            (None, name) => name.unwrap_or_default().into(),
        }
    }
}

struct Restore(Option<Option<Caller>>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            let _ = ACTS_FOR.try_with(|other| other.replace(before));
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
type ThreadId = rustix::thread::Pid;

/// Of this thread, as `ps -L` and `top -H` print it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn thread_id() -> ThreadId {
    rustix::thread::gettid()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
type ThreadId = String;

/// Of this thread, counted in this process.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn thread_id() -> ThreadId {
    format!("{:?}", std::thread::current().id())
}
