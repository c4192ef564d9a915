//! What proves that a session lives, from when on, and what does not: by every request that there is.

use std::thread;
use std::time::{Duration, Instant};

use test_support::{
    Bench, LONGEST_SESSION, TIMEOUT, eventually, options, session_id, states_until,
    unless_it_stalls,
};
use zklock::zookeeper::{Acl, CreateMode, Op, Reconfiguration, SessionState};
use zklock::{Client, Code, Guard, GuardState, Timeout};
use zklock_testing::wire::{self, Ops};
use zklock_testing::{Gate, Proxy, Rule};

const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// How late the answers come: while what was proven before is believed in yet, and before the C client gives the
/// server up.
const LATE: Duration = Duration::from_millis(2_200);
/// From one to the next: more than the lease asks for, where ticks are that short.
const APART: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(100);
/// What a holder believes in longer: an answer that is counted from, one that shows that it was reported, and one that
/// a quorum has committed.
const PROOFS: u64 = 3;

/// What is held, where something is.
const LOCK: &str = "lock";

/// A client behind a proxy of its own, with a znode of its own.
struct Scene {
    proxy: Proxy,
    client: Client,
    path: String,
    /// Locks to release.
    spare: Vec<Guard>,
}

impl Scene {
    fn new(bench: &Bench, path: String) -> Scene {
        let proxy = Proxy::start(bench.server.addr()).unwrap();
        let options = options().session_timeout(SESSION_TIMEOUT).tick_time(TICK);
        let client = options.connect(&proxy.hosts()).wait().unwrap();
        client.create(&path, b"", CreateMode::Persistent).wait().unwrap();
        Scene { proxy, client, path, spare: Vec::new() }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// From now on the server hears nothing of the client, which is not told so: neither by the deletion of what it
    /// holds, which it may watch.
    fn mute(&self) -> [Gate; 3] {
        let rest = [wire::Op::Ping, wire::Op::Connect];
        let deletion = Rule::event().path_prefix(self.at(LOCK));
        let rules = [Rule::request(Ops::any()), Rule::request(rest), deletion];
        rules.map(|rule| self.proxy.hold(rule))
    }
}

/// A request whose answer proves something.
struct Call {
    name: &'static str,
    /// How its frames are known.
    ops: fn() -> Ops,
    path: fn(&Scene) -> String,
    submit: fn(&mut Scene, u64),
}

/// The client's own sync, which it sends by itself.
const HEARTBEAT: Call = Call {
    name: "heartbeat",
    ops: || wire::Op::Sync.into(),
    path: |_| "/".to_owned(),
    submit: |_, _| {},
};

/// The client's own write, while something is held.
const HOLDERS_HEARTBEAT: Call = Call {
    name: "holders-heartbeat",
    ops: || wire::Op::Delete.into(),
    path: |_| "/zklock/heartbeat".to_owned(),
    submit: |_, _| {},
};

const SYNC: Call = Call {
    name: "sync",
    ops: || wire::Op::Sync.into(),
    path: |scene| scene.path.clone(),
    submit: |scene, _| drop(scene.client.sync(&scene.path)),
};

const WRITES: [Call; 7] = [
    Call {
        name: "create",
        ops: Ops::creates,
        path: |scene| scene.at("new"),
        submit: |scene, n| {
            drop(scene.client.create(&scene.at(&format!("new-{n}")), b"", CreateMode::Persistent));
        },
    },
    Call {
        name: "make-path",
        ops: Ops::creates,
        path: |scene| scene.at("new"),
        submit: |scene, n| {
            // Made by several requests, one after the other.
            let made = scene.client.make_path(&scene.at(&format!("new-{n}")));
            thread::spawn(move || drop(made.wait()));
        },
    },
    Call {
        name: "delete",
        ops: || wire::Op::Delete.into(),
        path: |scene| scene.at("none"),
        // One that is refused proves as much.
        submit: |scene, _| drop(scene.client.delete(&scene.at("none"), None)),
    },
    Call {
        name: "set",
        ops: || wire::Op::SetData.into(),
        path: |scene| scene.path.clone(),
        submit: |scene, _| drop(scene.client.set(&scene.path, b"", None)),
    },
    Call {
        name: "set-acl",
        ops: || wire::Op::SetAcl.into(),
        path: |scene| scene.path.clone(),
        submit: |scene, _| drop(scene.client.set_acl(&scene.path, &Acl::open(), None)),
    },
    Call {
        name: "multi",
        ops: || wire::Op::Multi.into(),
        path: |scene| scene.path.clone(),
        submit: |scene, _| drop(scene.client.multi(&[Op::set(scene.path.as_str(), "")])),
    },
    Call {
        name: "release",
        ops: || wire::Op::Delete.into(),
        path: |scene| scene.at("spare"),
        submit: |scene, _| drop(scene.spare.pop()),
    },
];

/// The answers to so many of these requests are late, while the server hears nothing more of the client. Returns the
/// gates that keep them apart.
fn answer_late(scene: &mut Scene, call: &Call, answers: u64) -> [Gate; 3] {
    if call.name == "release" {
        let acquire = |n| scene.client.lock(&scene.at(&format!("spare-{n}"))).acquire().wait();
        scene.spare = (0..answers).map(|n| acquire(n).unwrap()).collect();
    }
    let path = (call.path)(scene);
    let requests = Rule::request((call.ops)()).path_prefix(&path);
    let replies = Rule::reply((call.ops)()).path_prefix(path);
    scene.proxy.clear_seen();
    let held = (1..=answers).map(|nth| scene.proxy.hold(replies.clone().nth(nth)));
    let held: Vec<Gate> = held.collect();
    (0..answers).for_each(|n| (call.submit)(scene, n));
    held[0].wait_reached(TIMEOUT).unwrap();
    let mut next = Instant::now() + LATE;
    scene.proxy.wait_for(&requests, answers as usize, TIMEOUT).unwrap();
    let mute = scene.mute();
    for answer in held {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        answer.release();
        next = Instant::now() + APART;
    }
    mute
}

/// Each with a link of its own, all at once.
fn for_each(calls: impl IntoIterator<Item = Call>, play: impl Fn(Call) + Sync) {
    thread::scope(|scope| {
        for call in calls {
            let play = &play;
            scope.spawn(move || play(call));
        }
    });
}

#[test]
fn a_late_answer_counts_from_the_submission_of_its_request() {
    let bench = Bench::untouched();
    for_each([HEARTBEAT, SYNC].into_iter().chain(WRITES), |call| {
        let mut scene = Scene::new(&bench, format!("/{}", call.name));
        let session = session_id(&scene.client);
        let _mute = answer_late(&mut scene, &call, 1);
        eventually("the server ends the session", || {
            !bench.server.sessions().unwrap().contains(&session)
        });
        assert_eq!(scene.client.state(), SessionState::Lost, "{}", call.name);
    });
}

#[test]
fn late_answers_let_no_guard_outlive_its_session() {
    let bench = Bench::untouched();
    let other = bench.direct();
    for_each([HOLDERS_HEARTBEAT].into_iter().chain(WRITES), |call| {
        let mut scene = Scene::new(&bench, format!("/{}", call.name));
        let lock = scene.at(LOCK);
        let guard = scene.client.lock(&lock).acquire().wait().unwrap();
        let successor = {
            let lock = other.lock(&lock);
            thread::spawn(move || lock.acquire().within(TIMEOUT).wait().unwrap())
        };
        let _mute = answer_late(&mut scene, &call, PROOFS);
        let others = successor.join().unwrap();
        assert_eq!(guard.state(), GuardState::Lost, "{}: there are two holders", call.name);
        assert!(others.fencing_token() > guard.fencing_token());
    });
}

/// Asks once, and waits for the answer.
type Ask = fn(&Client, &str) -> zklock::Result<()>;

/// What is answered without a leader, or without a quorum.
const PROVE_LESS: [(&str, Ask); 11] = [
    ("nothing", |_, _| Ok(())),
    ("sync", |client, path| client.sync(path).wait()),
    ("exists", |client, path| client.exists(path).wait().map(drop)),
    ("exists-not", |client, path| client.exists(&format!("{path}/none")).wait().map(drop)),
    ("exists-and-watch", |client, path| client.exists_and_watch(path).wait().map(drop)),
    ("get", |client, path| client.get(path).wait().map(drop)),
    ("get-and-watch", |client, path| client.get_and_watch(path).wait().map(drop)),
    ("children", |client, path| client.children(path).wait().map(drop)),
    ("children-and-watch", |client, path| client.children_and_watch(path).wait().map(drop)),
    ("get-acl", |client, path| client.get_acl(path).wait().map(drop)),
    ("reconfigure", |client, _| {
        let refused = client.reconfigure(&Reconfiguration::leave([77]), None).wait();
        assert_eq!(refused.unwrap_err().code(), Code::RECONFIG_DISABLED);
        Ok(())
    }),
];

/// A server that is cut off from its leader goes on answering reads, and a leader that was deposed syncs. Who took
/// them for more would also leave out the requests that find that out.
#[test]
fn what_proves_less_takes_the_place_of_no_heartbeat() {
    unless_it_stalls(SESSION_TIMEOUT / 4, || {
        const BETWEEN: Duration = Duration::from_millis(20);
        let bench = Bench::untouched();
        thread::scope(|scope| {
            for (name, ask) in PROVE_LESS {
                let bench = &bench;
                scope.spawn(move || {
                    let scene = Scene::new(bench, format!("/{name}"));
                    let guard = scene.client.lock(&scene.at(LOCK)).acquire().wait().unwrap();
                    scene.proxy.clear_seen();
                    let heartbeats = |call: &Call| {
                        let path = (call.path)(&scene);
                        scene.proxy.count(&Rule::request((call.ops)()).path(path))
                    };
                    eventually(&format!("heartbeats beside {name}"), || {
                        ask(&scene.client, &scene.path).unwrap();
                        thread::sleep(BETWEEN);
                        // A sync is as good as another.
                        (name == "sync" || heartbeats(&HEARTBEAT) >= 3)
                            && heartbeats(&HOLDERS_HEARTBEAT) >= 2
                    });
                    assert_eq!(guard.state(), GuardState::Held, "{name}");
                });
            }
        });
    });
}

#[test]
fn who_has_released_is_as_one_that_never_held() {
    unless_it_stalls(SESSION_TIMEOUT / 4, || {
        let bench = Bench::untouched();
        let scene = Scene::new(&bench, "/released".to_owned());
        let mut states = scene.client.states();
        assert_eq!(states.wait(), Some(SessionState::Connected));
        scene.client.lock(&scene.at(LOCK)).acquire().wait().unwrap().release().wait().unwrap();
        scene.proxy.clear_seen();
        assert_eq!(states.wait_timeout(SESSION_TIMEOUT), Err(Timeout), "no state is reported");
        let write = Rule::request((HOLDERS_HEARTBEAT.ops)());
        assert_eq!(scene.proxy.count(&write), 0);
    });
}

#[test]
fn a_connection_on_which_no_server_has_answered_is_not_believed_in() {
    /// Much longer than a client takes to look around.
    const WHILE: Duration = Duration::from_secs(1);
    let bench = Bench::untouched();
    let client =
        options().session_timeout(LONGEST_SESSION).connect(&bench.proxy.hosts()).wait().unwrap();
    let guard = client.lock("/lock").acquire().wait().unwrap();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    bench.proxy.clear_seen();
    let answers = bench.proxy.hold(Rule::reply(wire::Op::Sync));
    bench.proxy.reset_all();
    assert_eq!(states_until(&mut states, SessionState::Suspended), [SessionState::Suspended]);
    bench.proxy.wait_for(&Rule::reply(wire::Op::Connect), 1, TIMEOUT).unwrap();
    answers.wait_reached(TIMEOUT).unwrap();
    let connected = Instant::now();
    while connected.elapsed() < WHILE {
        assert_eq!(client.state(), SessionState::Suspended);
        assert_eq!(guard.state(), GuardState::Suspended);
        thread::sleep(WHILE / 100);
    }
    answers.release();
    assert_eq!(states_until(&mut states, SessionState::Connected), [SessionState::Connected]);
    assert_eq!(guard.state(), GuardState::Held);
}
