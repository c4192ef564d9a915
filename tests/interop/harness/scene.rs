//! What two locks on one path do to each other.

use test_support::{Bench, Process, SESSION_TIMEOUT};
use zklock::Contender;
use zklock_testing::eventually;

use crate::kinds::recognise;
use crate::library::Library;

/// Who waits for whom.
pub struct Waits {
    /// Of the second's library.
    pub version: String,
    pub second_for_first: bool,
    pub first_for_second: bool,
}

/// One holds and the other waits, then the other way round; the second is killed while it holds.
pub fn alternate(first: Library, second: Library) -> Waits {
    let bench = Bench::shared();
    let start = |it: Library| it.start(&bench.server.hosts(), &bench.path, SESSION_TIMEOUT);
    let ((mut one, _), (mut other, version)) = (start(first), start(second));

    one.ask("acquire");
    let second_for_first = waits(&bench, &first, &second, &mut other);
    one.tell("release");
    one.expect("released");
    if second_for_first {
        other.expect("acquired");
    }
    eventually("the first has let go", || bench.children().len() == 1);
    let first_for_second = waits(&bench, &second, &first, &mut one);
    // By its id: it has no time for anything.
    other.running.0.kill().unwrap();
    if first_for_second {
        one.expect("acquired");
    }
    one.tell("release");
    one.expect("released");
    bench.expect_empty();
    Waits { version, second_for_first, first_for_second }
}

/// Has the one acquire whose turn it isn't. Whoever waits watches the claim of the holder, and says nothing.
fn waits(bench: &Bench, holder: &Library, waiter: &Library, waiting: &mut Process) -> bool {
    let children = bench.children();
    let [holding] = &children[..] else { panic!("one holds, and nobody waits: {children:?}") };
    expect_recognised(holder, holding);
    let held = format!("{}/{holding}", bench.path);
    waiting.tell("acquire");
    let mut waits = None;
    eventually("it waits, or acquires", || {
        let watching = bench.server.watches().unwrap().remove(&held).unwrap_or_default();
        let children = bench.children();
        let claim = children.iter().find(|name| *name != holding);
        let session = claim.and_then(|name| bench.owner(&format!("{}/{name}", bench.path)));
        if let Some(line) = waiting.said() {
            assert_eq!(line, "acquired", "{}", waiter.name);
            waits = Some(false);
        } else if session.is_some_and(|session| watching.contains(&session)) {
            waits = Some(true);
        }
        waits.is_some()
    });
    expect_listed(bench, [holder, waiter]);
    waits.unwrap()
}

/// Ours list both, in the order of their claims.
fn expect_listed(bench: &Bench, libraries: [&Library; 2]) {
    let client = bench.direct();
    let contenders = bench.lock(&client).contenders().wait().unwrap();
    assert_eq!(contenders.len(), 2, "{contenders:?}");
    for (Contender { path, session, host, .. }, library) in contenders.iter().zip(libraries) {
        expect_recognised(library, path.rsplit('/').next().unwrap());
        assert_eq!(bench.owner(path), Some(*session), "{path}");
        assert_eq!(host.is_empty(), library.recognised != "zklock", "{path}: on host {host:?}");
    }
}

fn expect_recognised(library: &Library, name: &str) {
    let claim = recognise(name);
    assert_eq!(claim.map(|it| it.library.name()), Some(library.recognised), "{name}");
}
