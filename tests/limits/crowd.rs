//! Many who wait for one lock, many locks that are held, many clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use zklock::{Client, Guard, GuardState};
use zklock_testing::Server;

use crate::bench::{
    Meter, TIMEOUT, background, client, eventually, number, report, resident, with_crowd,
};

const PATH: &str = "/locks/crowd";

#[derive(Debug)]
struct Figures {
    requests_to_queue: f64,
    requests_to_serve: f64,
    bytes: usize,
    /// Heartbeats and pings among the requests of each half, for each waiter, at the most.
    background: f64,
}

/// `waiters` come while somebody else holds the lock, and are served one after the other.
fn waiters_of(clients: &[Client], server: &Server, waiters: usize, kind: &str) -> Figures {
    let outsider = client(server);
    let first = outsider.lock(PATH).acquire().wait().unwrap();
    let bystanders: Vec<Guard> = clients
        .iter()
        .take(1)
        .map(|it| it.lock("/locks/other").acquire().wait().unwrap())
        .collect();
    let meter = Meter::new(server);
    let (memory, asked) = (resident(), meter.requests());
    let served = Arc::new(AtomicUsize::new(0));
    let figures = with_crowd(|crowd| {
        let began = Instant::now();
        let waiting: Vec<_> = (0..waiters)
            .map(|n| {
                let lock = clients[n % clients.len()].lock(PATH);
                let served = Arc::clone(&served);
                crowd.spawn(async move {
                    let guard = lock.acquire().await.unwrap();
                    served.fetch_add(1, Ordering::Relaxed);
                    guard.release().await
                })
            })
            .collect();
        eventually("all are in the queue", || meter.stats().watches >= waiters as u64);
        let (queued, bytes) = (began.elapsed(), resident().saturating_sub(memory));
        // Who has waited for 100 ms asks for its own claim.
        eventually("nobody asks any more", || {
            let before = meter.requests();
            thread::sleep(Duration::from_millis(200));
            meter.requests() - before < 20 + 4 * clients.len() as u64
        });
        let asked_to_queue = meter.requests() - asked;
        // Who holds it can be asked without reading all who wait.
        let holder = outsider.lock(PATH).holder().wait().unwrap().unwrap();
        assert_eq!(holder.token, first.fencing_token());
        let asked_for_holder = meter.requests() - asked - asked_to_queue;
        assert!(asked_for_holder < 20 + 4 * clients.len() as u64, "{asked_for_holder} requests");
        let began = Instant::now();
        first.release().wait().unwrap();
        for (n, waiter) in waiting.into_iter().enumerate() {
            futures_lite::future::block_on(waiter).unwrap_or_else(|error| panic!("{n}: {error}"));
        }
        let asked_to_serve = meter.requests() - asked - asked_to_queue - asked_for_holder;
        let figures = Figures {
            requests_to_queue: asked_to_queue as f64 / waiters as f64,
            requests_to_serve: asked_to_serve as f64 / waiters as f64,
            bytes: bytes / waiters,
            background: background(clients.len() + 1, queued.max(began.elapsed())) / waiters as f64,
        };
        report(&format!(
            "{waiters} {kind} | {:.1} s | {:.1} | {} | {:.1} s | {:.1}",
            queued.as_secs_f64(),
            figures.requests_to_queue,
            figures.bytes,
            began.elapsed().as_secs_f64(),
            figures.requests_to_serve,
        ));
        figures
    });
    assert_eq!(served.load(Ordering::Relaxed), waiters);
    for bystander in bystanders {
        assert_eq!(bystander.state(), GuardState::Held);
        bystander.release().wait().unwrap();
    }
    assert_eq!(outsider.lock(PATH).contenders().wait().unwrap(), []);
    figures
}

fn costs_no_more(many: &Figures, few: &Figures) {
    let allowed = 1.0 + many.background;
    assert!(many.requests_to_queue < few.requests_to_queue + allowed, "{many:?} {few:?}");
    assert!(many.requests_to_serve < few.requests_to_serve + allowed, "{many:?} {few:?}");
}

#[test]
fn a_waiter_costs_as_much_among_thousands_as_among_a_hundred() {
    let server = Server::start().unwrap();
    let one = [client(&server)];
    let few = waiters_of(&one, &server, 100, "on one client");
    let mut many = waiters_of(&one, &server, 1_000, "on one client");
    if crate::bench::is_long() {
        many = waiters_of(&one, &server, 10_000, "on one client");
        assert!(many.bytes < 10 << 10, "a waiter takes {} bytes", many.bytes);
    }
    costs_no_more(&many, &few);
}

#[test]
fn a_waiter_of_a_client_of_its_own_costs_as_much_among_many() {
    let server = Server::start().unwrap();
    let clients: Vec<Client> = (0..number(60, 1_000)).map(|_| client(&server)).collect();
    let few = waiters_of(&clients[..10], &server, 10, "of a client each");
    let many = waiters_of(&clients, &server, clients.len(), "of a client each");
    costs_no_more(&many, &few);
}

#[test]
fn thousands_of_locks_are_held_at_once() {
    let server = Server::start().unwrap();
    let client = client(&server);
    let locks = number(2_000, 10_000);
    let memory = resident();
    let began = Instant::now();
    let guards: Vec<Guard> = with_crowd(|crowd| {
        let acquires: Vec<_> = (0..locks)
            .map(|n| crowd.spawn(client.lock(&format!("/locks/{n}")).acquire().within(TIMEOUT)))
            .collect();
        acquires.into_iter().map(|it| futures_lite::future::block_on(it).unwrap()).collect()
    });
    let (acquired, bytes) = (began.elapsed(), resident().saturating_sub(memory) / locks);
    // As many as there is room for are watched for a deletion by others.
    eventually("they are watched", || server.stats().unwrap().watches >= locks as u64 / 4);
    assert!(guards.iter().all(|guard| guard.state() == GuardState::Held));
    let began = Instant::now();
    let releases: Vec<_> = guards.into_iter().map(Guard::release).collect();
    releases.into_iter().for_each(|release| release.wait().unwrap());
    report(&format!(
        "{locks} locks held on one client | {:.1} s | {bytes} | {:.1} s",
        acquired.as_secs_f64(),
        began.elapsed().as_secs_f64(),
    ));
}
