//! Many clients that do nothing but keep their sessions, beside one whose waker blocks.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use zklock::{Client, Guard, GuardState};
use zklock_testing::Server;

use crate::bench::{client, eventually, is_long, number, options, report, resident};

/// Blocks whom it is woken by, until its other end is dropped.
struct Blocks {
    woken: Sender<()>,
    end: Mutex<Receiver<()>>,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        let _ = self.woken.send(());
        let _ = self.end.lock().unwrap().recv();
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn clients_keep_their_sessions_beside_a_waker_that_blocks_for_longer() {
    let server = Server::start().unwrap();
    // Longer than a busy machine keeps a heartbeat waiting.
    let timeout = Duration::from_secs(15);
    let blocked = if is_long() { 3 * timeout } else { timeout * 3 / 2 };
    let (count, memory) = (number(40, 500), resident());
    let clients: Vec<Client> = (0..count)
        .map(|_| options().session_timeout(timeout).connect(&server.hosts()).wait().unwrap())
        .collect();
    let bytes = resident().saturating_sub(memory) / count;
    let outsider = client(&server);
    let taken = outsider.lock("/locks/taken").acquire().wait().unwrap();
    let guards: Vec<Guard> = clients
        .iter()
        .step_by(10)
        .enumerate()
        .map(|(n, client)| client.lock(&format!("/locks/{n}")).acquire().wait().unwrap())
        .collect();
    // Of an acquire that ends by its deadline.
    let (woken, begun) = channel();
    let (end, ended) = channel();
    let waker = Waker::from(Arc::new(Blocks { woken, end: Mutex::new(ended) }));
    let mut late = clients[0].lock("/locks/taken").acquire().within(Duration::from_secs(5));
    let mut poll =
        |waker: &Waker| Pin::new(&mut late).poll(&mut Context::from_waker(waker)).is_pending();
    // Until only the watches on claims are waited for, its own too, and the time.
    let watches = guards.len() as u64 + 3;
    eventually("all watches", || {
        assert!(poll(Waker::noop()));
        server.stats().unwrap().watches == watches
    });
    // The answer to the last of those requests may be in flight. It would wake the waker on the client's own thread,
    // and block that thread. Answers come in order, so after this one it has come.
    clients[0].exists("/").wait().unwrap();
    assert!(poll(Waker::noop()));
    assert!(poll(&waker));
    begun.recv().unwrap();
    let (since, used) = (Instant::now(), processor_time());
    while since.elapsed() < blocked {
        for (n, guard) in guards.iter().enumerate() {
            let (state, after) = (guard.state(), since.elapsed());
            assert_eq!(
                state,
                GuardState::Held,
                "lock {n} {after:?} later: {:?}",
                guard.lost().get()
            );
        }
        std::thread::sleep(timeout / 10);
    }
    let used = (processor_time() - used).as_secs_f64() / since.elapsed().as_secs_f64();
    drop(end);
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    report(&format!(
        "{count} idle, a lock held by every tenth | {threads} | {bytes} | {:.2} %",
        100.0 * used
    ));
    assert!(late.wait().unwrap_err().is_timeout());
    guards.into_iter().for_each(|guard| guard.release().wait().unwrap());
    taken.release().wait().unwrap();
}
