//! Four producers, four consumers, each a process of its own, and a server that goes down twice.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use test_support::c_programs::command;
use test_support::{Running, eventually, scaled};
use zklock_testing::Server;

use crate::bench::Bench;
use crate::program::{build, source};

const PRODUCERS: u8 = 4;
const CONSUMERS: usize = 4;

/// The n-th element of a producer, as `producer.c` makes it.
fn offered(producer: u8, n: usize) -> Vec<u8> {
    if [7, 8].contains(&(n % 50)) {
        return Vec::new();
    }
    let mut data = vec![(n % 251) as u8; 1_000];
    data[0] = producer;
    data[1] = (n / 256) as u8;
    data[2] = (n % 256) as u8;
    data.truncate((n * 7919 + usize::from(producer) * 131) % 1_001);
    data
}

/// Reads what a consumer writes, and counts it.
fn read_elements(
    mut from: impl Read + Send + 'static,
    count: Arc<AtomicUsize>,
) -> JoinHandle<Vec<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut elements = Vec::new();
        let mut length = [0; 4];
        while from.read_exact(&mut length).is_ok() {
            let mut data = vec![0; u32::from_le_bytes(length) as usize];
            from.read_exact(&mut data).unwrap();
            elements.push(data);
            count.fetch_add(1, Ordering::Relaxed);
        }
        elements
    })
}

fn expect_success(what: &str, running: Running) {
    let status = running.end();
    assert!(status.success(), "a {what}: {status}");
}

#[test]
fn threads_that_share_a_struct_take_each_element_once_and_in_order() {
    let bench = Bench::shared();
    let program = build(&source("threads.c"));
    let child = command(&program).args([&bench.server.hosts(), &bench.path]).spawn().unwrap();
    expect_success("program of many threads", Running(child));
    assert_eq!(bench.children().len(), 0);
}

#[test]
fn nothing_is_lost_nothing_comes_twice_and_each_producers_order_is_kept() {
    // Its compiler would take more time than it saves: the server runs for some seconds at a time.
    let server = Server::builder().jvm_arg("-XX:TieredStopAtLevel=1").start().unwrap();
    let bench = Bench::with(server);
    let hosts = bench.server.hosts();
    let each = scaled(250, 5_000);
    let all = each * usize::from(PRODUCERS);
    let (producer, consumer) = (build(&source("producer.c")), build(&source("consumer.c")));
    let taken = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for _ in 0..CONSUMERS {
        let mut child =
            command(&consumer).args([&hosts, &bench.path]).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        consumers.push((Running(child), read_elements(stdout, Arc::clone(&taken))));
    }
    let mut producers = Vec::new();
    for number in 0..PRODUCERS {
        let mut child = command(&producer)
            .args([&hosts, &bench.path, &number.to_string(), &each.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        // Nobody looks, but it must not wait for room to say more.
        std::thread::spawn(move || lines.for_each(drop));
        producers.push(Running(child));
    }
    for part in [all / 5, all * 3 / 5] {
        eventually("elements are taken", || taken.load(Ordering::Relaxed) >= part);
        bench.server.restart().unwrap();
    }
    for running in producers {
        expect_success("producer", running);
    }
    let mut last = bench.direct();
    for _ in 0..CONSUMERS {
        assert_eq!(last.offer(b"stop"), 0);
    }
    let mut all = Vec::new();
    for (running, elements) in consumers {
        expect_success("consumer", running);
        let elements = elements.join().unwrap();
        for producer in 0..PRODUCERS {
            let named = elements.iter().filter(|data| data.len() > 2 && data[0] == producer);
            let numbers: Vec<_> = named.map(|data| [data[1], data[2]]).collect();
            assert!(numbers.is_sorted(), "producer {producer}");
        }
        all.extend(elements);
    }
    let mut expected: Vec<_> =
        (0..PRODUCERS).flat_map(|p| (0..each).map(move |n| offered(p, n))).collect();
    assert!(expected.iter().any(|data| data.len() == 1_000));
    expected.sort();
    all.sort();
    assert_eq!(all.len(), expected.len());
    assert!(all == expected, "as many elements, but not the same");
    assert_eq!(bench.children().len(), 0);
}
