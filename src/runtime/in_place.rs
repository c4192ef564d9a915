//! Futures that go on where what they wait for comes in.

use std::future::Future;

use async_task::Runnable;

/// Runs a future here as far as it goes, and from there on wherever it is woken: that wakes no thread. It must not
/// block, and no code of others may be what wakes it.
pub(crate) fn run_in_place(future: impl Future<Output = ()> + Send + 'static) {
    let go_on = |runnable: Runnable| {
        runnable.run();
    };
    let (runnable, task) = async_task::spawn(future, go_on);
    task.detach();
    runnable.run();
}
