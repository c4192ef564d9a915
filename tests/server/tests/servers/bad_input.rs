//! A mistake in a test is an error that names it, and a wait without end is no mistake.

use std::time::Duration;

use crate::common::Bench;
use zklock_testing::{
    Action, Ensemble, Error, Op, Ops, Proxy, Rule, Server, expire_session, four_letter,
};

/// As long as it takes.
const FOREVER: Duration = Duration::MAX;

fn assert_bad<T: std::fmt::Debug>(outcome: zklock_testing::Result<T>, tells: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::BadArgument { .. }), "{error}");
    assert!(error.to_string().contains(tells), "{error}");
}

#[test]
fn an_ensemble_says_what_it_cannot_do() {
    assert_bad(Ensemble::start(0), "one at least");
    assert_bad(Server::builder().tick_time(Duration::ZERO).start(), "tick");
    assert_bad(Server::builder().property("clientPort", "2181").start(), "clientPort");
    assert_bad(Server::builder().first_id(0).start(), "1 to 255");
    assert_bad(Server::builder().first_id(254).start_ensemble(3), "1 to 255");
    let alone = Ensemble::start(1).unwrap();
    assert_bad(alone.isolate(0), "partitionable(true)");
    assert_bad(alone.rejoin(1), "no member 1");
    assert_bad(alone.keep_busy_through(&[0, 1]), "no member 1");
    assert_bad(alone.keep_busy_through(&[]), "no member");
}

#[test]
fn a_proxy_wants_a_server_and_a_word_has_four_letters() {
    assert_bad(Proxy::start("localhost"), "host:port");
    assert_bad(expire_session("", 1, &[0; 16]), "host:port");
    let server = Server::start().unwrap();
    assert_bad(server.four_letter("word!"), "not a four-letter word");
    let hasty = four_letter(server.addr(), "ruok", Duration::ZERO);
    assert!(hasty.unwrap_err().is_timeout());
    assert_eq!(four_letter(server.addr(), "ruok", FOREVER).unwrap().trim(), "imok");
}

#[test]
fn a_wait_without_end_ends_with_what_it_waits_for() {
    let bench = Bench::start();
    bench.server.wait_ready(FOREVER).unwrap();
    let mut client = bench.through_proxy();
    client.set_reply_timeout(FOREVER);
    let gate = bench.proxy.hold(Rule::request(Op::Create));
    let late = bench.proxy.on(Rule::request(Op::Exists).path("/late"), Action::Delay(FOREVER));
    let creator = std::thread::spawn(move || client.create("/a", b"").map(|_| client));
    gate.wait_reached(FOREVER).unwrap();
    gate.release();
    let mut client = creator.join().unwrap().unwrap();
    bench.proxy.wait_for(&Rule::request(Ops::creates()), 1, FOREVER).unwrap();
    client.get_data_and_watch("/a").unwrap();
    bench.direct().delete("/a").unwrap();
    assert_eq!(client.next_event(FOREVER).unwrap().kind, 2);

    bench.proxy.set_latency(Duration::from_millis(1));
    client.set_reply_timeout(Duration::from_millis(100));
    assert!(client.exists("/late").unwrap_err().is_timeout());
    assert_eq!(late.hits(), 0);
}
