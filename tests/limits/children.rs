//! Directories full of children that are no claims.

use std::time::Instant;

use zklock::Client;
use zklock::zookeeper::CreateMode;
use zklock_testing::wire::Ops;
use zklock_testing::{Proxy, Rule, Server};

use crate::bench::{client, number, options, report};

const PATH: &str = "/locks/litter";

fn fill(client: &Client, children: usize, prefix: &str) {
    client.make_path(PATH).wait().unwrap();
    let create =
        |_| client.create(&format!("{PATH}/{prefix}"), b"", CreateMode::PersistentSequential);
    let mut left = children;
    while left > 0 {
        let some = left.min(10_000);
        let made: Vec<_> = (0..some).map(create).collect();
        made.into_iter().for_each(|made| drop(made.wait().unwrap()));
        left -= some;
    }
}

/// Znodes with names like claims, which no session will ever end.
#[test]
fn data_with_the_names_of_claims_is_read_once_and_never_watched() {
    let server = Server::start().unwrap();
    let children = number(1_000, 6_000);
    fill(&client(&server), children, "job-");
    let proxy = Proxy::start(server.addr()).unwrap();
    let client = options().connect(&proxy.hosts()).wait().unwrap();
    let began = Instant::now();
    client.lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
    let (took, asked) =
        (began.elapsed(), proxy.count(&Rule::request(Ops::any()).path_prefix(PATH)));
    assert!((children..children + 20).contains(&asked), "{asked} requests");
    assert_eq!(
        server.stats().unwrap().watches,
        1,
        "but the nearest, which might have been a claim"
    );
    proxy.clear_seen();
    for _ in 0..3 {
        client.lock(PATH).acquire().wait().unwrap().release().wait().unwrap();
        assert!(client.lock(PATH).try_acquire().wait().unwrap().is_some());
    }
    let again = proxy.count(&Rule::request(Ops::any()).path_prefix(PATH));
    assert!(again < 30, "{again} requests for six acquires more");
    report(&format!(
        "{children} children that are data | {:.1} s | {asked} | {:.1}",
        took.as_secs_f64(),
        again as f64 / 6.0
    ));
}

/// A listing of more than a mebibyte, of names of 200 characters.
#[test]
fn a_listing_larger_than_any_packet_that_a_server_takes_is_read() {
    let server = Server::start().unwrap();
    let children = number(6_000, 60_000);
    let client = client(&server);
    // Names like these are no claims, so that nothing but the listing is large.
    fill(&client, children, &format!("{}.", "n".repeat(190)));
    let began = Instant::now();
    let guard = client.lock(PATH).acquire().wait().unwrap();
    report(&format!(
        "{children} other children with names of 200 characters | {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    guard.release().wait().unwrap();
}
