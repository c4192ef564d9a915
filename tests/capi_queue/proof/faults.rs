//! What goes on beside the processes: servers fail, and somebody tidies up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use test_support::TIMEOUT;
use zklock::Client;
use zklock_testing::Ensemble;

/// A thread that does something again and again until it is stopped, and counts how often it did.
pub struct Again {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Again {
    fn start(mut once: impl FnMut() -> bool + Send + 'static) -> Again {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                counted.fetch_add(usize::from(once()), Ordering::Relaxed);
            }
        });
        Again { stop, count, thread }
    }

    /// Ends it after what it does now, and says how often it did.
    pub fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.count.load(Ordering::Relaxed)
    }
}

/// Deletes the queue's znode as soon as the queue is empty.
pub fn delete_when_empty(client: Client, path: &'static str) -> Again {
    Again::start(move || {
        std::thread::sleep(Duration::from_millis(5));
        client.delete(path, None).wait().is_ok()
    })
}

/// Kills a server, the leader every other time, and starts it again.
pub fn restart_servers(ensemble: Arc<Ensemble>) -> Again {
    let mut times = 0;
    Again::start(move || {
        std::thread::sleep(Duration::from_millis(fastrand::u64(2_000..5_000)));
        let any = fastrand::usize(..ensemble.members().len());
        let which = ensemble.leader().filter(|_| times % 2 == 0).unwrap_or(any);
        times += 1;
        let server = ensemble.member(which);
        server.kill();
        std::thread::sleep(Duration::from_millis(fastrand::u64(..500)));
        server.start_again().unwrap();
        ensemble.wait_for_quorum(TIMEOUT).unwrap();
        true
    })
}
