//! The same faults for a lock of each library, and what becomes of it.

use std::time::{Duration, Instant};

use test_support::{Bench, LONGEST_SESSION, Process, TIMEOUT, options};
use zklock::{Client, Guard};
use zklock_testing::wire::{Op, Ops};
use zklock_testing::{Action, Rule, eventually};

use crate::library::Library;

/// As the servers of the tests grant it.
const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
/// How long something may take that needs no session to end.
const SOON: Duration = Duration::from_secs(20);

pub struct Fault {
    pub name: &'static str,
    /// What becomes of a lock of zklock.
    pub ours: &'static str,
    pub play: fn(Library) -> &'static str,
}

pub const FAULTS: [Fault; 13] = [
    Fault { name: "the request to create a claim is lost", ours: "holds", play: lost_create },
    Fault { name: "its reply is lost", ours: "holds", play: lost_create_reply },
    Fault { name: "the request to release is lost", ours: "free", play: lost_release },
    Fault { name: "its reply is lost", ours: "free", play: lost_release_reply },
    Fault { name: "released while no server is there", ours: "free", play: late_release },
    Fault { name: "the link of a holder is cut", ours: "told in time", play: cut },
    Fault { name: "a holder is paused", ours: "told at once", play: paused },
    Fault { name: "a holder's claim is deleted", ours: "told", play: deleted },
    Fault { name: "a waiter's claim is deleted", ours: "acquires", play: deleted_waiter },
    Fault { name: "the server restarts; a holder", ours: "holds", play: restarted },
    Fault { name: "the server restarts; a waiter", ours: "acquires", play: restarted_waiter },
    Fault { name: "the session of a waiter ends", ours: "acquires", play: expired_waiter },
    Fault { name: "the waiter in front is killed", ours: "waits", play: killed_waiter },
];

struct Scene {
    bench: Bench,
    /// A program with a lock of the library.
    it: Process,
    /// The client of a lock of ours, with a link of its own.
    other: Client,
}

impl Scene {
    fn at(bench: Bench, library: Library, session_timeout: Duration) -> Scene {
        let it = library.start(&bench.proxy.hosts(), &bench.path, session_timeout).0;
        let patient = options().session_timeout(LONGEST_SESSION);
        let other = patient.connect(&bench.server.hosts()).wait().unwrap();
        Scene { bench, it, other }
    }

    fn begin(library: Library) -> Scene {
        Scene::at(Bench::with_directory(), library, SESSION_TIMEOUT)
    }

    /// On a server of its own, with a session that outlives a restart.
    fn alone(library: Library) -> Scene {
        let bench = Bench::own();
        bench.ask(|raw| raw.create(&bench.path, b"")).unwrap();
        Scene::at(bench, library, LONGEST_SESSION)
    }

    fn holding(mut self) -> Scene {
        assert_eq!(self.it.ask("acquire"), "acquired");
        self
    }

    /// A lock of ours holds, and the library's waits.
    fn waiting(mut self) -> (Scene, Guard) {
        let guard = self.bench.lock(&self.other).acquire().wait().unwrap();
        self.it.tell("acquire");
        let session = self.bench.owner(&guard.claim_path());
        eventually("it waits", || {
            let watches = self.bench.server.watches().unwrap();
            let by = watches.get(&*guard.claim_path());
            by.is_some_and(|by| by.iter().any(|watcher| Some(*watcher) != session))
        });
        (self, guard)
    }

    fn claims(&self) -> usize {
        self.bench.children().len()
    }

    /// What it says soon.
    fn hear(&mut self) -> Option<String> {
        hear(&mut self.it)
    }

    /// A lock of ours holds, once the library's holds no more.
    fn other_holds(&self) -> Guard {
        self.bench.lock(&self.other).acquire().within(TIMEOUT).wait().unwrap()
    }

    fn believes_to_hold(&mut self) -> bool {
        self.it.ask("state") == "held"
    }

    /// Whether it is told within a few seconds.
    fn is_told(&mut self) -> bool {
        within(SESSION_TIMEOUT, || !self.believes_to_hold())
    }

    /// The waiter's turn has come.
    fn turn(mut self, guard: Guard) -> &'static str {
        guard.release().wait().unwrap();
        match self.hear().as_deref() {
            Some("acquired") => "acquires",
            Some(_) => "fails",
            None => "**waits for ever**",
        }
    }
}

fn hear(process: &mut Process) -> Option<String> {
    let mut said = None;
    within(SOON, || {
        said = process.said();
        said.is_some()
    });
    said.map(|said| said.unwrap_or_else(|| "ended".to_owned()))
}

fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

fn lost_create(library: Library) -> &'static str {
    create_with(library, Rule::request([Op::Create, Op::Create2, Op::Multi]))
}

fn lost_create_reply(library: Library) -> &'static str {
    create_with(library, Rule::reply([Op::Create, Op::Create2, Op::Multi]))
}

fn create_with(library: Library, loss: Rule) -> &'static str {
    let mut scene = Scene::begin(library);
    let claims = format!("{}/", scene.bench.path);
    let loss = scene.bench.proxy.on(loss.path_prefix(claims).once(), Action::Drop);
    scene.it.tell("acquire");
    let said = scene.hear();
    assert_eq!(loss.hits(), 1);
    match (said.as_deref(), scene.claims()) {
        (Some("acquired"), 1) => "holds",
        (Some("acquired"), _) => "holds, **leaves a claim**",
        (Some(_), 0) => "fails",
        (Some(_), _) => "fails, **leaves a claim**",
        (None, _) => "**waits for itself**",
    }
}

fn lost_release(library: Library) -> &'static str {
    release_with(library, Rule::request)
}

fn lost_release_reply(library: Library) -> &'static str {
    release_with(library, Rule::reply)
}

fn release_with(library: Library, loss: impl Fn(Ops) -> Rule) -> &'static str {
    let mut scene = Scene::begin(library).holding();
    let claims = format!("{}/", scene.bench.path);
    let loss = loss([Op::Delete, Op::Multi].into()).path_prefix(claims).once();
    let loss = scene.bench.proxy.on(loss, Action::Drop);
    scene.it.tell("release");
    let outcome = released(&mut scene);
    assert_eq!(loss.hits(), 1);
    outcome
}

fn late_release(library: Library) -> &'static str {
    let mut scene = Scene::begin(library).holding();
    scene.bench.proxy.refuse();
    scene.it.tell("release");
    std::thread::sleep(Duration::from_millis(500));
    scene.bench.proxy.heal();
    released(&mut scene)
}

fn released(scene: &mut Scene) -> &'static str {
    let said = scene.hear();
    let is_free = within(SOON, || scene.claims() == 0);
    match (said.as_deref(), is_free) {
        (Some("released"), true) => "free",
        (Some("released"), false) => "**still locked**",
        (Some(_), true) => "fails, free",
        (Some(_), false) => "fails, **still locked**",
        (None, true) => "hangs, free",
        (None, false) => "hangs, **still locked**",
    }
}

fn cut(library: Library) -> &'static str {
    let mut scene = Scene::begin(library).holding();
    scene.bench.proxy.cut();
    let _guard = scene.other_holds();
    if !scene.believes_to_hold() {
        return "told in time";
    }
    scene.bench.proxy.heal();
    if scene.is_told() { "**two hold**" } else { "**two hold**, never told" }
}

fn paused(library: Library) -> &'static str {
    let mut scene = Scene::begin(library).holding();
    scene.it.running.freeze();
    let _guard = scene.other_holds();
    scene.it.running.thaw();
    match scene.believes_to_hold() {
        false => "told at once",
        true if scene.is_told() => "**two hold** for a moment",
        true => "**two hold**, never told",
    }
}

fn deleted(library: Library) -> &'static str {
    let mut scene = Scene::begin(library).holding();
    let claim = format!("{}/{}", scene.bench.path, scene.bench.children()[0]);
    scene.bench.delete(&claim);
    if scene.is_told() { "told" } else { "**two hold**, never told" }
}

fn deleted_waiter(library: Library) -> &'static str {
    let (scene, guard) = Scene::begin(library).waiting();
    let claim = format!("{}/{}", scene.bench.path, scene.bench.children()[1]);
    scene.bench.delete(&claim);
    scene.turn(guard)
}

fn restarted(library: Library) -> &'static str {
    let mut scene = Scene::alone(library).holding();
    scene.bench.server.restart().unwrap();
    eventually("it is back", || scene.bench.server.watches().is_ok());
    std::thread::sleep(SESSION_TIMEOUT);
    match (scene.believes_to_hold(), scene.claims()) {
        (true, 1) => "holds",
        (true, _) => "**two hold**",
        (false, _) => "told that it is lost",
    }
}

fn restarted_waiter(library: Library) -> &'static str {
    let (scene, guard) = Scene::alone(library).waiting();
    scene.bench.server.restart().unwrap();
    eventually("ours is back", || scene.other.exists("/").wait().is_ok());
    scene.turn(guard)
}

fn expired_waiter(library: Library) -> &'static str {
    let (scene, guard) = Scene::begin(library).waiting();
    scene.bench.proxy.cut();
    eventually("its session ends", || scene.claims() == 1);
    scene.bench.proxy.heal();
    scene.turn(guard)
}

fn killed_waiter(library: Library) -> &'static str {
    let (mut scene, guard) = Scene::begin(library).waiting();
    let (mut behind, _) =
        library.start(&scene.bench.server.hosts(), &scene.bench.path, SESSION_TIMEOUT);
    behind.tell("acquire");
    eventually("both wait", || scene.claims() == 3);
    scene.it.running.0.kill().unwrap();
    eventually("the first is gone", || scene.claims() == 2);
    std::thread::sleep(Duration::from_secs(1));
    if behind.said().is_some() {
        return "**two hold**";
    }
    guard.release().wait().unwrap();
    match hear(&mut behind).as_deref() {
        Some("acquired") => "waits",
        Some(_) => "fails",
        None => "**waits for ever**",
    }
}
