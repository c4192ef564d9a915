//! The locks, counters, statics and threads of what several threads meet in: the machine's own, or
//! those of a model checker that takes a test through every interleaving of its threads.
//!
//! The tables of `raw` and `client` use nothing else, so the code that is checked is the code that
//! runs. The checker's are chosen by `--cfg zklock_loom`, which `scripts/checks/interleavings` sets.

#[cfg(not(zklock_loom))]
pub(crate) use machine::*;
#[cfg(zklock_loom)]
pub(crate) use model::*;

#[cfg(not(zklock_loom))]
mod machine {
    pub(crate) use std::sync::atomic::AtomicUsize;
    pub(crate) use std::thread;

    pub(crate) use parking_lot::{Mutex, RwLock};

    pub(crate) use crate::threads::spawn;

    /// A static that is initialised on first use, and again in a child process.
    macro_rules! per_process {
        ($(#[$doc:meta])* static $name:ident: $type:ty = $value:expr;) => {
            $(#[$doc])*
            static $name: $crate::process::PerProcess<$type> =
                $crate::process::PerProcess::new(|| $value);
        };
    }

    macro_rules! per_thread {
        ($visible:vis static $name:ident: $type:ty = $value:expr;) => {
            std::thread_local! { $visible static $name: $type = const { $value }; }
        };
    }

    pub(crate) use {per_process, per_thread};
}

#[cfg(zklock_loom)]
mod model {
    pub(crate) use loom::sync::atomic::AtomicUsize;
    pub(crate) use loom::thread;

    /// As the machine's, but nobody waits for its end.
    pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }

    /// As parking_lot's: no poisoning.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no panic in a model")
        }
    }

    /// As parking_lot's, but a thread that reads may not read once more inside.
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> RwLock<T> {
            RwLock(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read_recursive(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic in a model")
        }

        pub(crate) fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic in a model")
        }
    }

    /// Runs `model` once for every way in which its threads can take turns with at most so many
    /// preemptions: at every point where it makes a difference. Environment variables of the checker
    /// (`LOOM_MAX_PREEMPTIONS`, ...) take precedence.
    pub(crate) fn every_interleaving(model: impl Fn() + Send + Sync + 'static) {
        let mut checker = loom::model::Builder::new();
        checker.preemption_bound = checker.preemption_bound.or(Some(PREEMPTIONS));
        let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&runs);
        checker.check(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            model();
        });
        println!("{} interleavings", runs.load(std::sync::atomic::Ordering::Relaxed));
    }

    const PREEMPTIONS: usize = 3;

    /// New in each run of a model.
    macro_rules! per_process {
        ($(#[$doc:meta])* static $name:ident: $type:ty = $value:expr;) => {
            loom::lazy_static! { static ref $name: $type = $value; }
        };
    }

    macro_rules! per_thread {
        ($visible:vis static $name:ident: $type:ty = $value:expr;) => {
            loom::thread_local! { $visible static $name: $type = $value }
        };
    }

    pub(crate) use {per_process, per_thread};
}
