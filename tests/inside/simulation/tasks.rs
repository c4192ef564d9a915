//! Tasks that are polled by hand: one at a time, in an order that the schedule chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_lite::future::Boxed;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    client: usize,
    future: Boxed<()>,
    woken: Arc<Flag>,
}

#[derive(Default)]
pub(super) struct Tasks(Vec<Option<Task>>);

impl Tasks {
    pub(super) fn add(&mut self, client: usize, future: Boxed<()>) {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        self.0.push(Some(Task { client, future, woken }));
    }

    /// The tasks that were woken, and whose they are.
    pub(super) fn woken(&self) -> impl Iterator<Item = (usize, usize)> {
        let tasks = self.0.iter().enumerate();
        let tasks = tasks.filter_map(|(number, task)| task.as_ref().map(|task| (number, task)));
        tasks
            .filter(|(_, task)| task.woken.0.load(Ordering::Relaxed))
            .map(|(number, task)| (number, task.client))
    }

    /// Runs a task until it waits.
    pub(super) fn run(&mut self, number: usize) {
        let Some(task) = self.0.get_mut(number).and_then(Option::as_mut) else { return };
        task.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.woken));
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(self.0[number].take());
        }
    }

    /// Whose task it is.
    pub(super) fn client(&self, number: usize) -> Option<usize> {
        self.0.get(number)?.as_ref().map(|task| task.client)
    }

    /// By what a task waits.
    pub(super) fn waker(&self, number: usize) -> Waker {
        let task = self.0.get(number).and_then(Option::as_ref);
        task.map_or_else(|| Waker::noop().clone(), |task| Waker::from(Arc::clone(&task.woken)))
    }

    /// The tasks of a client that has died go without a trace.
    pub(super) fn remove_all_of(&mut self, client: usize) {
        for task in &mut self.0 {
            drop(task.take_if(|task| task.client == client));
        }
    }

    /// How many of a client have not ended.
    pub(super) fn of(&self, client: usize) -> usize {
        self.0.iter().flatten().filter(|task| task.client == client).count()
    }
}
