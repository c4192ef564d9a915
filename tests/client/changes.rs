//! Znodes and children as they change: nothing is missed, whatever happens in between.

use std::time::Duration;

use test_support::{
    Bench, SESSION_TIMEOUT, TIMEOUT, alone, connect, eventually, options, session_id, shared,
    wait_for_another_session,
};
use zklock::zookeeper::{Acl, Children, CreateMode, Znode};
use zklock::{Client, Code, Error, Updates};
use zklock_testing::wire::Op;
use zklock_testing::{Action, Ops, Rule};

type Changes<T> = Updates<Result<Option<T>, Error>>;

fn next<T>(changes: &mut Changes<T>) -> Option<T> {
    changes.wait_timeout(TIMEOUT).expect("it is reported in time").expect("it goes on").unwrap()
}

fn next_data(changes: &mut Changes<Znode>) -> Option<Vec<u8>> {
    next(changes).map(|znode| znode.data)
}

/// Waits until these data are reported; those that came before may be left out.
fn reach(changes: &mut Changes<Znode>, data: Option<&[u8]>) {
    while next_data(changes).as_deref() != data {}
}

fn names(children: Option<Children>) -> Option<Vec<String>> {
    children.map(|mut children| {
        children.names.sort();
        children.names
    })
}

fn is_silent<T>(changes: &mut Changes<T>) -> bool {
    changes.wait_timeout(Duration::from_millis(100)).is_err()
}

fn end<T: std::fmt::Debug>(mut changes: Changes<T>) -> Code {
    let error = loop {
        match changes.wait_timeout(TIMEOUT).expect("it ends").expect("with an error") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(changes.wait().is_none(), "nothing follows an error");
    error.code()
}

/// A client behind a proxy, one that has nothing to do with it, and a znode.
fn scene() -> (Bench, Client, Client, String) {
    let bench = Bench::shared();
    let (client, other) = (bench.client(), bench.direct());
    let path = bench.path.clone();
    other.create(&path, b"0", CreateMode::Persistent).wait().unwrap();
    (bench, client, other, path)
}

#[test]
fn each_state_of_a_znode_is_reported_once() {
    let (client, path) = alone();
    let other = connect(shared());
    let node = format!("{path}/node");
    let mut changes = client.watch_data(&node);
    assert!(next(&mut changes).is_none(), "there is none yet");
    assert!(is_silent(&mut changes));
    let created = other.create(&node, b"1", CreateMode::Persistent).wait().unwrap();
    let znode = next(&mut changes).unwrap();
    assert_eq!((znode.data, znode.stat), (b"1".to_vec(), created.stat));
    let stat = other.set(&node, b"1", None).wait().unwrap();
    assert_eq!(next(&mut changes).unwrap().stat, stat, "a new version of the same data");
    // What is no change of the data.
    other.create(&format!("{node}/child"), b"", CreateMode::Persistent).wait().unwrap();
    other.set_acl(&node, &Acl::open(), None).wait().unwrap();
    assert!(is_silent(&mut changes));
    other.delete_all(&node).wait().unwrap();
    assert!(next(&mut changes).is_none());
    other.create(&node, b"3", CreateMode::Persistent).wait().unwrap();
    assert_eq!(next_data(&mut changes).unwrap(), b"3");
    // Another's begins with the present.
    assert_eq!(next_data(&mut other.watch_data(&node)).unwrap(), b"3");
}

#[test]
fn each_set_of_children_is_reported_once() {
    let (client, path) = alone();
    let other = connect(shared());
    let (parent, child) = (format!("{path}/parent"), format!("{path}/parent/child"));
    let mut changes = client.watch_children(&parent);
    assert_eq!(names(next(&mut changes)), None);
    other.create(&parent, b"", CreateMode::Persistent).wait().unwrap();
    assert_eq!(names(next(&mut changes)), Some(vec![]));
    other.create(&child, b"", CreateMode::Persistent).wait().unwrap();
    let children = next(&mut changes).unwrap();
    assert_eq!(children.stat, other.exists(&parent).wait().unwrap().unwrap());
    assert_eq!(children.names, ["child"]);
    // What is no change of the children.
    other.set(&parent, b"x", None).wait().unwrap();
    other.set(&child, b"x", None).wait().unwrap();
    other.create(&format!("{child}/deeper"), b"", CreateMode::Persistent).wait().unwrap();
    assert!(is_silent(&mut changes));
    other.delete_all(&child).wait().unwrap();
    assert_eq!(names(next(&mut changes)), Some(vec![]));
    other.delete(&parent, None).wait().unwrap();
    assert_eq!(names(next(&mut changes)), None);
}

#[test]
fn who_looks_late_gets_the_latest_and_nothing_is_piled_up() {
    let (client, path) = alone();
    let mut changes = client.watch_data(&path);
    assert_eq!(next_data(&mut changes).unwrap(), b"");
    for n in 0..1_000_u32 {
        drop(client.set(&path, &n.to_be_bytes(), None));
    }
    client.sync(&path).wait().unwrap();
    assert_eq!(next_data(&mut changes).unwrap(), 999_u32.to_be_bytes());
    assert!(is_silent(&mut changes));
}

#[test]
fn no_change_is_missed_by_a_session_that_ends_or_a_link_that_is_cut() {
    let (bench, client, other, path) = scene();
    let mut data = client.watch_data(&path);
    let mut children = client.watch_children(&path);
    reach(&mut data, Some(b"0"));
    assert_eq!(names(next(&mut children)), Some(vec![]));
    for round in 1..=6 {
        // Behind its back; with the watches set, or in the middle of setting them.
        if round % 3 == 0 {
            assert!(is_silent(&mut data) && is_silent(&mut children));
        }
        bench.proxy.refuse();
        let (text, session) = (format!("{round}"), session_id(&client));
        other.set(&path, text.as_bytes(), None).wait().unwrap();
        other.create(&format!("{path}/{round}"), b"", CreateMode::Persistent).wait().unwrap();
        if round % 2 == 0 {
            bench.expire(&client);
        }
        bench.proxy.heal();
        reach(&mut data, Some(text.as_bytes()));
        while names(next(&mut children)).map(|names| names.len()) != Some(round) {}
        if round % 2 == 0 {
            wait_for_another_session(&client, session);
        }
    }
    bench.proxy.reset_all();
    other.delete_all(&path).wait().unwrap();
    reach(&mut data, None);
    while names(next(&mut children)).is_some() {}
    assert!(is_silent(&mut data) && is_silent(&mut children));
}

#[test]
fn a_session_that_ends_is_no_change() {
    let (bench, client, other, path) = scene();
    let (mut data, mut children) = (client.watch_data(&path), client.watch_children(&path));
    reach(&mut data, Some(b"0"));
    assert_eq!(names(next(&mut children)), Some(vec![]));
    assert!(is_silent(&mut data) && is_silent(&mut children));
    let looks = || {
        let asked = |ops: Ops| bench.proxy.count(&Rule::reply(ops).path(&path));
        [asked(Op::GetData.into()), asked(Ops::lists())]
    };
    let (before, session) = (looks(), session_id(&client));
    bench.expire(&client);
    eventually("the next session has looked at both", || {
        assert!(is_silent(&mut data) && is_silent(&mut children));
        looks().iter().zip(before).all(|(now, before)| *now > before)
    });
    assert_ne!(session_id(&client), session);
    assert!(is_silent(&mut data) && is_silent(&mut children));
    other.set(&path, b"1", None).wait().unwrap();
    assert_eq!(next_data(&mut data).as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_look_whose_reply_is_lost_is_repeated() {
    let (bench, client, other, path) = scene();
    for op in [Op::GetData, Op::Sync, Op::Exists] {
        let reply = bench.proxy.on(Rule::reply(op).path(&path).once(), Action::Drop);
        if op == Op::Exists {
            other.delete(&path, None).wait().unwrap();
        }
        let there = op != Op::Exists;
        assert_eq!(next(&mut client.watch_data(&path)).is_some(), there, "{op:?}");
        reply.wait_hits(1, TIMEOUT).unwrap();
    }
}

#[test]
fn a_znode_that_is_created_between_the_two_looks_is_reported() {
    let (bench, client, other, path) = scene();
    other.delete(&path, None).wait().unwrap();
    let gate = bench.proxy.hold(Rule::request(Op::Exists).path(&path).once());
    let mut changes = client.watch_data(&path);
    assert!(changes.wait_timeout(Duration::ZERO).is_err());
    let first = std::thread::spawn(move || next_data(&mut changes));
    gate.wait_reached(TIMEOUT).unwrap();
    other.create(&path, b"there", CreateMode::Persistent).wait().unwrap();
    gate.release();
    assert_eq!(first.join().unwrap().unwrap(), b"there");
}

/// The next session may begin at a server that lags behind the last one's.
#[test]
fn what_a_new_session_reads_counts_once_it_has_caught_up_with_the_leader() {
    let (bench, client, other, path) = scene();
    let mut changes = client.watch_data(&path);
    reach(&mut changes, Some(b"0"));
    let session = session_id(&client);
    let gate = bench.proxy.hold(Rule::request(Op::Sync).path(&path).once());
    let answers = Rule::reply(Ops::any()).path(&path).watching(true);
    let before = bench.proxy.count(&answers);
    bench.expire(&client);
    other.set(&path, b"1", None).wait().unwrap();
    let second = std::thread::spawn(move || next_data(&mut changes));
    gate.wait_reached(TIMEOUT).unwrap();
    assert_eq!(bench.proxy.count(&answers), before, "it reads behind the sync");
    gate.release();
    assert_eq!(second.join().unwrap().unwrap(), b"1");
    wait_for_another_session(&client, session);
}

#[test]
fn changes_of_what_cannot_be_read_end_with_the_reason() {
    let (client, path) = alone();
    let acl = [Acl::new(zklock::zookeeper::Permissions::ALL, "digest", "nobody:x")];
    let secret = format!("{path}/secret");
    client.create_with_acl(&secret, b"", CreateMode::Persistent, &acl).wait().unwrap();
    assert_eq!(end(client.watch_data(&secret)), Code::NO_AUTH);
    assert_eq!(end(client.watch_children(&secret)), Code::NO_AUTH);
    assert_eq!(end(client.watch_data("no/path")), Code::BAD_ARGUMENTS);
    assert_eq!(end(client.watch_children("/ends/")), Code::BAD_ARGUMENTS);
}

#[test]
fn changes_end_with_their_client_which_they_do_not_keep_open() {
    let (client, path) = alone();
    let (session, mut looked, fresh) =
        (session_id(&client), client.watch_data(&path), client.watch_children(&path));
    next(&mut looked);
    assert!(is_silent(&mut looked));
    drop(client);
    let sessions = || shared().sessions().unwrap();
    eventually("the session has ended", || !sessions().contains(&session));
    let codes = [end(looked), end(fresh)];
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
    assert_eq!(codes[0], connect_and_close().get("/").wait().unwrap_err().code());
}

fn connect_and_close() -> Client {
    let client = connect(shared());
    client.close().wait().unwrap();
    client
}

#[test]
fn where_there_is_no_room_for_a_watch_changes_are_looked_for() {
    let (other, path) = alone();
    let hosts = shared().hosts();
    let client = options().max_request(1_100).session_timeout(SESSION_TIMEOUT);
    let client = client.connect(&hosts).wait().unwrap();
    let fill = (0..).map(|n| client.exists_and_watch(&format!("{path}/{}{n}", "x".repeat(100))));
    let kept: Vec<_> = fill.map(|watch| watch.wait()).take_while(Result::is_ok).collect();
    let mut changes = client.watch_data(&path);
    assert_eq!(next_data(&mut changes).unwrap(), b"");
    other.set(&path, b"seen", None).wait().unwrap();
    assert_eq!(next_data(&mut changes).unwrap(), b"seen");
    other.delete(&path, None).wait().unwrap();
    assert_eq!(next_data(&mut changes), None);
    drop(kept);
}

#[test]
fn changes_are_a_stream_too() {
    use futures_lite::StreamExt as _;
    let (client, path) = alone();
    let mut changes = client.watch_children(&path);
    let first = futures_lite::future::block_on(changes.try_next()).unwrap().unwrap();
    assert!(first.unwrap().names.is_empty());
    client.create(&format!("{path}/a"), b"", CreateMode::Persistent).wait().unwrap();
    let second = futures_lite::future::block_on(futures_lite::StreamExt::next(&mut changes));
    assert_eq!(second.unwrap().unwrap().unwrap().names, ["a"]);
}
