//! The proxy passes everything on, and loses exactly what it was told to lose.

use std::io::ErrorKind::ConnectionReset;
use std::time::{Duration, Instant};

use crate::common::{Bench, TIMEOUT};
use zklock_testing::eventually;
use zklock_testing::wire::{CreateMode, MultiOp, Op, Ops, RawClient};
use zklock_testing::{Action, Direction, Proxy, Rule, four_letter};

#[test]
fn without_rules_everything_passes() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    client.create("/a", b"data").unwrap();
    client.ping().unwrap();
    assert_eq!(client.get_data_and_watch("/a").unwrap().0, b"data");
    let large = vec![7; 900_000];
    bench.direct().set_data("/a", &large).unwrap();
    let event = client.next_event(TIMEOUT).unwrap();
    assert_eq!((event.kind, event.path.as_str()), (3, "/a"));
    assert_eq!(client.get_data("/a").unwrap().0, large);
    client.set_data("/a", &large[1..]).unwrap();
    client.close_session().unwrap();
    let answer = four_letter(bench.proxy.addr(), "srvr", TIMEOUT).unwrap();
    assert!(answer.contains("Mode: standalone"), "{answer}");
    eventually("the links go", || bench.proxy.connections() == 0);
}

#[test]
fn a_dropped_reply_leaves_the_server_having_done_it() {
    let bench = Bench::start();
    let lost = bench.proxy.on(Rule::reply(Op::Create).nth(2), Action::Drop);
    let mut client = bench.through_proxy();
    client.create("/first", b"").unwrap();
    let error: std::io::Error = client.create("/second", b"").unwrap_err().into();
    assert_eq!(error.kind(), ConnectionReset);
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert!(bench.direct().exists("/second").unwrap().is_some());
    // The rule is done: the next connection works.
    bench.through_proxy().create("/third", b"").unwrap();
}

#[test]
fn a_dropped_request_never_reaches_the_server_and_those_before_it_are_answered() {
    let bench = Bench::start();
    bench.proxy.on(Rule::request(Op::Create).path("/lost"), Action::Drop);
    let mut client = bench.through_proxy();
    let xids: Vec<i32> =
        (0..20).map(|_| client.submit(Op::Exists, b"\0\0\0\x01/\0").unwrap()).collect();
    assert!(client.create("/lost", b"").unwrap_err().is_connection_loss());
    for xid in xids {
        assert_eq!(client.wait_reply(xid).unwrap().0, 0);
    }
    assert!(bench.direct().exists("/lost").unwrap().is_none());
}

#[test]
fn a_reset_ends_both_sides_at_once() {
    let bench = Bench::start();
    bench.proxy.on(Rule::request(Op::Delete), Action::Reset);
    let mut client = bench.through_proxy();
    let session = client.session_id();
    client.create("/a", b"").unwrap();
    assert!(client.delete("/a").unwrap_err().is_connection_loss());
    assert!(bench.direct().exists("/a").unwrap().is_some());
    eventually("the server notices", || {
        let connections = bench.server.connections().unwrap();
        connections.iter().all(|one| one.session_id != session)
    });
}

#[test]
fn a_stalled_connection_is_silent_both_ways_until_it_is_healed() {
    let bench = Bench::start();
    let stalled = bench.proxy.on(Rule::request(Op::Create).once(), Action::Stall);
    let mut client = bench.through_proxy();
    client.exists_and_watch("/watched").unwrap();
    client.set_reply_timeout(Duration::from_millis(100));
    assert!(client.create("/lost", b"").unwrap_err().is_timeout());
    stalled.wait_hits(1, TIMEOUT).unwrap();
    bench.direct().create("/watched", b"").unwrap();
    assert!(client.ping().unwrap_err().is_timeout());
    assert!(client.next_event(Duration::ZERO).unwrap_err().is_timeout());
    bench.proxy.heal();
    assert_eq!(client.wait_closed(TIMEOUT).unwrap(), ConnectionReset);
    assert!(bench.direct().exists("/lost").unwrap().is_none());
}

#[test]
fn a_delayed_frame_comes_later_and_delays_in_a_row_do_not_add_up() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    let delay = Duration::from_millis(200);
    bench.proxy.on(Rule::reply(Op::Create).once(), Action::Delay(delay));
    let began = Instant::now();
    client.create("/a", b"").unwrap();
    assert!(began.elapsed() >= delay, "{:?}", began.elapsed());

    bench.proxy.set_latency(delay / 2);
    let mut many = || {
        let began = Instant::now();
        let xids: Vec<i32> =
            (0..50).map(|_| client.submit(Op::Exists, b"\0\0\0\x02/a\0").unwrap()).collect();
        for xid in xids {
            assert_eq!(client.wait_reply(xid).unwrap().0, 0);
        }
        assert!(began.elapsed() >= delay, "{:?}", began.elapsed());
        began.elapsed()
    };
    // A busy machine may stand still in one of them.
    assert!((0..10).any(|_| many() < delay * 10));
    bench.proxy.set_latency(Duration::ZERO);
    client.close_session().unwrap();
}

#[test]
fn a_gate_lets_a_test_act_between_a_request_and_its_reply() {
    let bench = Bench::start();
    let mut other = bench.direct();
    other.create("/a", b"").unwrap();
    let gate = bench.proxy.hold(Rule::reply(Ops::lists()).path("/"));
    assert!(gate.wait_reached(Duration::ZERO).unwrap_err().is_timeout());
    let mut client = bench.through_proxy();
    let lister = std::thread::spawn(move || (client.children("/").unwrap(), client));
    gate.wait_reached(TIMEOUT).unwrap();
    other.delete("/a").unwrap();
    assert!(!lister.is_finished());
    gate.release();
    let (children, mut client) = lister.join().unwrap();
    assert!(children.contains(&"a".to_owned()), "the list is from before: {children:?}");
    assert!(!client.children("/").unwrap().contains(&"a".to_owned()));
}

#[test]
fn an_action_runs_before_its_frame_is_forwarded() {
    let bench = Bench::start();
    let mut other = bench.direct();
    let made = Action::run(move || drop(other.create("/a", b"").unwrap()));
    bench.proxy.on(Rule::request(Op::Create).once(), made);
    assert_eq!(bench.through_proxy().create("/a", b"").unwrap_err().code(), Some(-110));
}

#[test]
fn a_rule_sees_inside_a_multi_and_knows_errors_and_events() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    let (a, b) = ("/a".to_owned(), "/b".to_owned());
    let creates = [
        MultiOp::Create { path: a.clone(), data: b"x".to_vec() },
        MultiOp::Create { path: b.clone(), data: Vec::new() },
    ];
    client.multi(&creates).unwrap();
    assert_eq!(client.multi(&creates).unwrap_err().code(), Some(-110));
    client.get_data_and_watch("/a").unwrap();
    let proxy = &bench.proxy;
    assert_eq!(proxy.count(&Rule::reply(Op::Multi).error(-110).path("/b")), 1);
    let announced = [MultiOp::SetData { path: a, data: Vec::new() }, MultiOp::Delete { path: b }];
    let lost = proxy.on(Rule::request(Op::Multi).containing(Op::Delete).path("/b"), Action::Drop);
    assert!(client.multi(&announced).unwrap_err().is_connection_loss());
    lost.wait_hits(1, TIMEOUT).unwrap();
    lost.remove();
    proxy.on(Rule::event().path("/a"), Action::Stall);
    let mut client = bench.through_proxy();
    client.get_data_and_watch("/a").unwrap();
    bench.direct().multi(&announced).unwrap();
    proxy.wait_for(&Rule::event().path("/a").connection(2), 1, TIMEOUT).unwrap();
    assert!(client.next_event(Duration::from_millis(50)).unwrap_err().is_timeout());
}

#[test]
fn the_opening_of_a_session_can_be_lost_as_well() {
    let bench = Bench::start();
    bench.proxy.on(Rule::reply(Op::Connect).once(), Action::Drop);
    let refused = RawClient::connect(bench.proxy.addr(), crate::common::SESSION);
    assert!(refused.unwrap_err().is_connection_loss());
    assert_eq!(bench.server.sessions().unwrap().len(), 1);
    bench.through_proxy();
}

#[test]
fn what_has_passed_is_counted_by_direction_and_operation() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    client.create("/before", b"").unwrap();
    bench.proxy.clear_seen();
    client.create_with("/n-", b"", CreateMode::EphemeralSequential).unwrap();
    client.create_with("/c", b"", CreateMode::Container).unwrap();
    client.children("/").unwrap();
    client.ping().unwrap();
    assert_eq!(bench.proxy.requests(), [Op::Create, Op::CreateContainer, Op::GetChildren]);
    assert_eq!(bench.proxy.count(&Rule::request(Ops::creates())), 2);
    assert_eq!(bench.proxy.counts()[&(Direction::Request, Op::Ping)], 1);
    assert_eq!(bench.proxy.counts()[&(Direction::Reply, Op::GetChildren)], 1);
    let seen = bench.proxy.seen();
    assert_eq!((seen[0].xid, seen[0].paths[0].as_str()), (2, "/n-"));
    let missing = bench.proxy.wait_for(&Rule::request(Op::Delete), 1, Duration::ZERO);
    assert!(missing.unwrap_err().to_string().contains("0 seen"));
}

#[test]
fn a_rule_may_pick_all_frames_from_one_on_and_paths_by_any_test() {
    let bench = Bench::start();
    let numbered = Rule::request(Op::Create).path_matching(|path| path.ends_with(".tmp"));
    let late = bench.proxy.on(numbered.from_nth(2), Action::Drop);
    let mut client = bench.through_proxy();
    client.create("/kept", b"").unwrap();
    client.create("/1.tmp", b"").unwrap();
    for path in ["/2.tmp", "/3.tmp"] {
        assert!(bench.through_proxy().create(path, b"").unwrap_err().is_connection_loss());
    }
    late.wait_hits(2, TIMEOUT).unwrap();
    assert_eq!(bench.direct().children("/").unwrap().len(), 3);
}

#[test]
fn who_waits_for_a_rule_in_vain_is_told_what_came_instead() {
    let bench = Bench::start();
    // Other clients create by Create2 or by a multi: a rule that names the wrong one never fires.
    let lost = bench.proxy.on(Rule::reply(Op::Create2), Action::Drop);
    let why = |waited: zklock_testing::Result<()>| waited.unwrap_err().to_string();
    let nothing_yet = why(lost.wait_hits(1, Duration::ZERO));
    assert!(nothing_yet.contains("no client has asked anything"), "{nothing_yet}");
    let mut client = bench.through_proxy();
    client.create("/a", b"").unwrap();
    client.ping().unwrap();
    client.create("/a", b"").unwrap_err();
    let last = "the last frames: request Create /a, reply Create /a, request Create /a, reply Create /a: node exists (-110)";
    let in_vain = why(lost.wait_hits(1, Duration::ZERO));
    assert!(in_vain.contains(last), "{in_vain}");
    assert_eq!(
        why(bench.proxy.hold(Rule::event()).wait_reached(Duration::ZERO)).matches(last).count(),
        1
    );
}

#[test]
fn an_action_is_told_its_frames_number_as_nth_counts_it() {
    let bench = Bench::start();
    let (tell, told) = std::sync::mpsc::channel();
    let creates = Rule::request(Op::Create);
    bench.proxy.on(creates.clone().once(), Action::Drop);
    let numbered = Action::run_numbered(move |number| tell.send(number).unwrap());
    bench.proxy.on(creates, numbered);
    assert!(bench.through_proxy().create("/a", b"").unwrap_err().is_connection_loss());
    let mut client = bench.through_proxy();
    client.create("/a", b"").unwrap();
    client.create("/b", b"").unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [2, 3], "the first was dropped before it");
}

#[test]
fn an_action_may_use_the_proxy_and_its_panic_ends_its_connection_only() {
    let bench = Bench::start();
    let mut client = bench.through_proxy();
    let bystander = std::sync::Arc::new(Proxy::start(bench.server.addr()).unwrap());
    let inner = std::sync::Arc::clone(&bystander);
    let cut = bench.proxy.on(Rule::request(Op::Create), Action::run(move || inner.cut()));
    client.create("/a", b"").unwrap();
    cut.wait_hits(1, TIMEOUT).unwrap();
    bench.proxy.on(Rule::request(Op::Delete), Action::run(|| panic!("as it should")));
    let mut other = bench.through_proxy();
    assert!(client.delete("/a").unwrap_err().is_connection_loss());
    assert!(other.exists("/a").unwrap().is_some());
    bench.proxy.clear_rules();
    other.delete("/a").unwrap();
}
