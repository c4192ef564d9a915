//! The steps that the store's thread has yet to do.
//!
//! If its lock is busy, a step lets the steps on other locks go first, and is retried after them. No later step on its
//! own lock is tried before it. So claims on a lock are made in the order of the calls. A busy lock delays no other.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Something to do, on a lock: its path is empty where it concerns none, and is never busy.
pub(super) struct Step<W> {
    pub(super) lock: Arc<str>,
    pub(super) work: W,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    Again,
}

pub(super) struct Backlog<W> {
    steps: VecDeque<Step<W>>,
    /// The step that is next in this pass over all of them.
    next: usize,
    /// The locks that this pass has found busy.
    busy: HashSet<Arc<str>>,
}

impl<W> Backlog<W> {
    pub(super) fn new() -> Backlog<W> {
        Backlog { steps: VecDeque::new(), next: 0, busy: HashSet::new() }
    }

    pub(super) fn push(&mut self, step: Step<W>) {
        self.steps.push_back(step);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Does one step, if there is one. `true`: all that are left have to wait, because others are at their locks.
    pub(super) fn run_next(&mut self, run: impl FnOnce(&mut W) -> Progress) -> bool {
        self.pass_over_busy();
        if let Some(step) = self.steps.get_mut(self.next) {
            match run(&mut step.work) {
                Progress::Done => drop(self.steps.remove(self.next)),
                Progress::Again => {
                    self.busy.insert(Arc::clone(&step.lock));
                }
            }
            self.pass_over_busy();
        }
        if self.next < self.steps.len() {
            return false;
        }
        let is_busy = !self.busy.is_empty();
        self.next = 0;
        self.busy.clear();
        is_busy
    }

    fn pass_over_busy(&mut self) {
        while self.steps.get(self.next).is_some_and(|step| self.busy.contains(&step.lock)) {
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_on_a_busy_lock_keep_their_order_and_delay_no_others() {
        let mut backlog = Backlog::new();
        for (lock, step) in [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)] {
            backlog.push(Step { lock: lock.into(), work: step });
        }
        let mut tried = Vec::new();
        // Until its third attempt others are at lock a.
        let mut attempts = 0;
        let mut pauses = 0;
        while !backlog.is_empty() {
            let must_wait = backlog.run_next(|step| {
                tried.push(*step);
                attempts += usize::from(*step == 1);
                if *step == 1 && attempts < 3 { Progress::Again } else { Progress::Done }
            });
            if must_wait {
                pauses += 1;
                backlog.push(Step { lock: "d".into(), work: 5 + pauses });
            }
        }
        assert_eq!(tried, [1, 3, 5, 1, 6, 1, 2, 4, 7]);
        assert_eq!(pauses, 2);
    }
}
