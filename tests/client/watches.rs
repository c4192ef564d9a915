//! Watches: what ends them, and what they live through.

use std::time::Duration;

use futures_lite::future::block_on;
use test_support::{
    Bench, LONGEST_SESSION, TIMEOUT, alone, connect, eventually, expire, options, shared,
    states_until,
};
use zklock::zookeeper::{CreateMode, SessionState, Watch, WatchEvent, WatchEventKind, Watched};
use zklock::{Client, Code};

fn end(mut watch: Watch) -> Result<(WatchEventKind, String), Code> {
    let event: Option<Result<WatchEvent, zklock::Error>> = watch.wait_timeout(TIMEOUT);
    event
        .expect("it ends in time")
        .map(|event| (event.kind, event.path))
        .map_err(|error| error.code())
}

fn is_silent(watch: &mut Watch) -> bool {
    watch.wait_timeout(Duration::ZERO).is_none()
}

#[test]
fn a_data_watch_ends_with_a_change_or_the_deletion() {
    let (client, path) = alone();
    let other = connect(shared());
    let Watched { value: znode, watch } = client.get_and_watch(&path).wait().unwrap();
    assert_eq!(znode.data, b"");
    other.set(&path, b"x", None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::DataChanged, path.clone())));
    let Watched { value: znode, watch } = client.get_and_watch(&path).wait().unwrap();
    assert_eq!(znode.data, b"x");
    other.delete(&path, None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::Deleted, path.clone())));
    assert!(client.get_and_watch(&path).wait().unwrap_err().is_no_node());
}

#[test]
fn an_existence_watch_ends_with_creation_change_or_deletion() {
    let (client, path) = alone();
    let node = format!("{path}/node");
    let Watched { value: stat, watch } = client.exists_and_watch(&node).wait().unwrap();
    assert_eq!(stat, None);
    client.create(&node, b"", CreateMode::Persistent).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::Created, node.clone())));
    let Watched { value: stat, watch } = client.exists_and_watch(&node).wait().unwrap();
    assert!(stat.is_some());
    client.set(&node, b"x", None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::DataChanged, node.clone())));
    let watch = client.exists_and_watch(&node).wait().unwrap().watch;
    client.delete(&node, None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::Deleted, node)));
}

#[test]
fn a_children_watch_ends_with_a_child_that_comes_or_goes_or_with_the_parent() {
    let (client, path) = alone();
    let child = format!("{path}/child");
    let Watched { value: listed, watch } = client.children_and_watch(&path).wait().unwrap();
    assert_eq!(listed.names, Vec::<String>::new());
    client.create(&child, b"", CreateMode::Persistent).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::ChildrenChanged, path.clone())));
    let Watched { value: listed, mut watch } = client.children_and_watch(&path).wait().unwrap();
    assert_eq!(listed.names, ["child"]);
    client.set(&path, b"x", None).wait().unwrap();
    client.set(&child, b"x", None).wait().unwrap();
    assert!(is_silent(&mut watch));
    client.delete(&child, None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::ChildrenChanged, path.clone())));
    let watch = client.children_and_watch(&path).wait().unwrap().watch;
    client.delete(&path, None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::Deleted, path)));
}

#[test]
fn many_watches_on_one_path_each_end_once() {
    let (client, path) = alone();
    let data: Vec<_> = (0..50).map(|_| client.get_and_watch(&path).wait().unwrap().watch).collect();
    let exists: Vec<_> =
        (0..50).map(|_| client.exists_and_watch(&path).wait().unwrap().watch).collect();
    let mut children = client.children_and_watch(&path).wait().unwrap().watch;
    client.set(&path, b"x", None).wait().unwrap();
    for watch in data.into_iter().chain(exists) {
        assert_eq!(end(watch), Ok((WatchEventKind::DataChanged, path.clone())));
    }
    assert!(is_silent(&mut children));
    client.delete(&path, None).wait().unwrap();
    assert_eq!(end(children), Ok((WatchEventKind::Deleted, path)));
}

#[test]
fn a_watch_is_a_future_too() {
    let (client, path) = alone();
    let event = block_on(async {
        let watch = client.get_and_watch(&path).await?.watch;
        let other = connect(shared());
        let (event, set) = futures_lite::future::zip(watch, other.set(&path, b"x", None)).await;
        set?;
        event
    });
    assert_eq!(event.unwrap().kind, WatchEventKind::DataChanged);
}

#[test]
fn an_event_is_there_before_the_answer_to_a_later_read() {
    let (client, path) = alone();
    for n in 0..100 {
        let mut watch = client.get_and_watch(&path).wait().unwrap().watch;
        // Submitted in this order, answered in this order: event before the read that follows.
        let set = client.set(&path, b"x", Some(n));
        let read = client.get(&path);
        assert_eq!(read.wait().unwrap().stat.version, n + 1);
        assert!(watch.wait_timeout(Duration::ZERO).is_some_and(|event| event.is_ok()));
        set.wait().unwrap();
    }
}

#[test]
fn a_dropped_watch_is_forgotten_and_the_next_one_on_its_path_works() {
    let (client, path) = alone();
    for _ in 0..100 {
        drop(client.get_and_watch(&path).wait().unwrap());
        drop(client.children_and_watch(&path));
    }
    let watch = client.get_and_watch(&path).wait().unwrap().watch;
    client.set(&path, b"x", None).wait().unwrap();
    assert_eq!(end(watch), Ok((WatchEventKind::DataChanged, path.clone())));
    let mut watch = client.get_and_watch(&path).wait().unwrap().watch;
    // Children watches that were dropped still stand on the server; their event is not for this one.
    client.create(&format!("{path}/child"), b"", CreateMode::Persistent).wait().unwrap();
    client.get(&path).wait().unwrap();
    assert!(is_silent(&mut watch));
}

fn set_one_of_each(client: &Client, path: &str) -> [Watch; 3] {
    let data = client.get_and_watch(path).wait().unwrap().watch;
    let exists = client.exists_and_watch(&format!("{path}/later")).wait().unwrap().watch;
    let children = client.children_and_watch(path).wait().unwrap().watch;
    [data, exists, children]
}

fn expect_all_to_fire(other: &Client, path: &str, [data, exists, children]: [Watch; 3]) {
    let later = format!("{path}/later");
    other.set(path, b"x", None).wait().unwrap();
    other.create(&later, b"", CreateMode::Persistent).wait().unwrap();
    assert_eq!(end(data), Ok((WatchEventKind::DataChanged, path.to_owned())));
    assert_eq!(end(exists), Ok((WatchEventKind::Created, later)));
    assert_eq!(end(children), Ok((WatchEventKind::ChildrenChanged, path.to_owned())));
}

#[test]
fn watches_survive_a_reset_connection_and_a_restarted_server() {
    let bench = Bench::untouched();
    // Much longer than the server is away.
    let patient = options().session_timeout(LONGEST_SESSION);
    let client = patient.connect(&bench.proxy.hosts()).wait().unwrap();
    let other = bench.direct();
    for (path, reset) in [("/reset", true), ("/restart", false)] {
        other.create(path, b"", CreateMode::Persistent).wait().unwrap();
        let mut states = client.states();
        let watches = set_one_of_each(&client, path);
        if reset {
            bench.proxy.refuse();
            states_until(&mut states, SessionState::Suspended);
            bench.proxy.heal();
        } else {
            bench.server.stop().unwrap();
            states_until(&mut states, SessionState::Suspended);
            bench.server.start_again().unwrap();
        }
        states_until(&mut states, SessionState::Connected);
        eventually("the other client is back", || other.get(path).wait().is_ok());
        expect_all_to_fire(&other, path, watches);
    }
}

#[test]
fn what_happened_while_the_link_was_down_is_told_afterwards() {
    let bench = Bench::untouched();
    let (client, other) = (bench.client(), bench.direct());
    other.create("/node", b"", CreateMode::Persistent).wait().unwrap();
    let mut states = client.states();
    let watches = set_one_of_each(&client, "/node");
    bench.proxy.refuse();
    states_until(&mut states, SessionState::Suspended);
    let firing = std::thread::spawn(move || expect_all_to_fire(&other, "/node", watches));
    let reader = bench.direct();
    eventually("the changes", || reader.exists("/node/later").wait().unwrap().is_some());
    bench.proxy.heal();
    firing.join().unwrap();
}

#[test]
fn watches_end_with_the_session_or_with_the_client() {
    let (client, path) = alone();
    let watches = set_one_of_each(&client, &path);
    expire(shared(), &client);
    for watch in watches {
        assert_eq!(end(watch), Err(Code::SESSION_EXPIRED));
    }
    let client = connect(shared());
    let watches = set_one_of_each(&client, &path);
    client.close().wait().unwrap();
    for watch in watches {
        assert_eq!(end(watch), Err(Code::CLOSING));
    }
}
