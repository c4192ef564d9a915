//! Statics that a child made by `fork` does not share with its parent: the threads behind them do
//! not exist in the child, and their locks may have been held when it was made.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of this process alone, made when it is first asked for.
pub(crate) struct PerProcess<T> {
    /// Whose the value is; 0 for nobody's yet.
    process: AtomicU32,
    value: OnceLock<T>,
    /// For a child of that process.
    next: OnceLock<Box<PerProcess<T>>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { process: AtomicU32::new(0), value: OnceLock::new(), next: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> &T {
        self.of(std::process::id())
    }

    fn of(&self, process: u32) -> &T {
        let mut entry = self;
        loop {
            let order = Ordering::Relaxed;
            match entry.process.compare_exchange(0, process, order, order) {
                Err(other) if other != process => {
                    entry = entry.next.get_or_init(|| Box::new(PerProcess::new()));
                }
                _ => return entry.value.get_or_init(T::default),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn each_process_has_its_own() {
        let value: PerProcess<AtomicUsize> = PerProcess::new();
        for process in [7, 8, 9] {
            assert_eq!(value.of(process).fetch_add(1, Ordering::Relaxed), 0);
            assert_eq!(value.of(7).fetch_add(0, Ordering::Relaxed), 1);
            assert_eq!(value.of(process).fetch_add(0, Ordering::Relaxed), 1);
        }
    }
}
