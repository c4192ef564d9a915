//! Many whose replies are lost at once.

use std::time::Instant;

use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Proxy, Rule, Server};

use crate::bench::{Meter, background, client, eventually, number, options, report, with_crowd};

const PATH: &str = "/locks/storm";

/// Acquires that are under way on one client when a reply is lost, and the connection with it.
#[test]
fn one_lost_reply_among_many_acquires_costs_each_a_bounded_number_of_requests() {
    let mut each = Vec::new();
    for acquires in [number(100, 200), number(400, 1_500)] {
        let server = Server::start().unwrap();
        let outsider = client(&server);
        let first = outsider.lock(PATH).acquire().wait().unwrap();
        let proxy = Proxy::start(server.addr()).unwrap();
        let client = options().connect(&proxy.hosts()).wait().unwrap();
        // Known to the client, so that all creates are sent at once.
        let probe = client.lock(PATH).try_acquire().wait().unwrap();
        assert!(probe.is_none());
        let meter = Meter::new(&server);
        let asked = meter.requests();
        let reached = proxy.on(Rule::reply(Ops::creates()).nth(3), Action::Drop);
        let began = Instant::now();
        with_crowd(|crowd| {
            let waiting: Vec<_> = (0..acquires)
                .map(|_| {
                    let lock = client.lock(PATH);
                    crowd.spawn(async move { lock.acquire().await?.release().await })
                })
                .collect();
            reached.wait_hits(1, crate::bench::TIMEOUT).unwrap();
            eventually("all are in the queue", || meter.stats().ephemerals > acquires as u64);
            first.release().wait().unwrap();
            for waiter in waiting {
                futures_lite::future::block_on(waiter).unwrap();
            }
        });
        let per_acquire = (meter.requests() - asked) as f64 / acquires as f64;
        // Heartbeats are no acquire's.
        each.push(per_acquire - background(2, began.elapsed()) / acquires as f64);
        let lists = proxy.count(&Rule::request([Op::GetChildren, Op::GetChildren2]));
        report(&format!(
            "{acquires} acquires and a lost reply | {:.1} s | {per_acquire:.1} | {lists}",
            began.elapsed().as_secs_f64()
        ));
        assert_eq!(outsider.lock(PATH).contenders().wait().unwrap(), []);
    }
    assert!(each[1] < each[0] + 3.0, "requests for each acquire: {each:?}");
}
