//! The end of a proxy. Alone in its program: it counts the threads of the whole process.

mod common;

use std::time::Duration;

use common::{Bench, TIMEOUT};
use zklock_testing::eventually;
use zklock_testing::wire::{Op, RawClient};
use zklock_testing::{Action, Proxy, Rule};

#[test]
fn a_dropped_proxy_leaves_no_thread_whatever_its_links_were_doing() {
    let bench = Bench::start();
    let _frozen = bench.through_proxy();
    let gate = bench.proxy.hold(Rule::request(Op::Create));
    bench.proxy.on(Rule::request(Op::Delete), Action::Stall);
    bench.proxy.on(Rule::request(Op::Exists), Action::Delay(Duration::from_secs(60)));
    let mut clients: Vec<RawClient> = (0..4).map(|_| bench.through_proxy()).collect();
    let path = b"\0\0\0\x02/a";
    for (client, op) in clients.iter_mut().zip([Op::Create, Op::Delete, Op::Exists, Op::Sync]) {
        client.submit(op, path).unwrap();
    }
    bench.proxy.wait_for(&Rule::request([Op::Create, Op::Delete, Op::Exists]), 3, TIMEOUT).unwrap();
    gate.wait_reached(TIMEOUT).unwrap();
    bench.proxy.cut();
    let addr = bench.proxy.addr();
    let other = Proxy::start(bench.server.addr()).unwrap();
    // A thread takes its name a moment after its start.
    eventually("all threads run", || threads_named("zk-proxy") == 2 + 2 * 5);
    drop(bench);
    // A thread that was joined can be listed for a moment yet.
    eventually("the one's threads are gone", || threads_named("zk-proxy") == 1);
    assert!(std::net::TcpStream::connect(addr).is_err());
    drop(other);
    eventually("the other's thread is gone", || threads_named("zk-proxy") == 0);
}

fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.starts_with(prefix))
        .count()
}
