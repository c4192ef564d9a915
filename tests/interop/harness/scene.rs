//! What two locks on one path do to each other.

use test_support::{Bench, Process, SESSION_TIMEOUT};
use zklock::Contender;
use zklock_testing::eventually;

use crate::kinds::recognise;
use crate::library::Library;

/// What becomes of an acquire while another library's lock is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Acquire {
    Waits,
    /// It holds, too.
    Holds,
    /// With an error.
    Fails,
}

/// What two do, of which each acquires while the other holds.
pub struct Found {
    /// Of the second's library.
    pub version: String,
    pub first: Acquire,
    pub second: Acquire,
}

/// One holds and the other acquires, then the other way round; the second is killed while it holds.
pub fn alternate(first: Library, second: Library) -> Found {
    let bench = Bench::shared();
    let start = |it: Library| it.start(&bench.server.hosts(), &bench.path, SESSION_TIMEOUT);
    let ((mut one, _), (mut other, version)) = (start(first), start(second));

    one.ask("acquire");
    let by_second = acquire(&bench, &first, &second, &mut other);
    expect_listed(&bench, [&first, &second]);
    one.tell("release");
    one.expect("released");
    if by_second == Acquire::Waits {
        other.expect("acquired");
    }
    eventually("the first has let go", || sessions(&bench).len() == 1);
    let by_first = acquire(&bench, &second, &first, &mut one);
    expect_listed(&bench, [&second, &first]);
    // By its id: it has no time for anything.
    other.running.0.kill().unwrap();
    if by_first == Acquire::Waits {
        one.expect("acquired");
    }
    one.tell("release");
    one.expect("released");
    bench.expect_empty();
    Found { version, first: by_first, second: by_second }
}

/// What the second does while the first holds.
pub fn acquire_behind(first: Library, second: Library) -> Acquire {
    let bench = Bench::shared();
    let start = |it: Library| it.start(&bench.server.hosts(), &bench.path, SESSION_TIMEOUT).0;
    let (mut one, mut other) = (start(first), start(second));
    one.ask("acquire");
    acquire(&bench, &first, &second, &mut other)
}

/// Has the one acquire whose turn it isn't. Whoever waits watches the claim of the holder, and says nothing.
fn acquire(bench: &Bench, holder: &Library, waiter: &Library, waiting: &mut Process) -> Acquire {
    let holding = bench.children();
    let [session_of_holder] = sessions(bench)[..] else {
        panic!("one holds, and nobody waits: {holding:?}")
    };
    holding.iter().for_each(|claim| expect_recognised(holder, claim));
    waiting.tell("acquire");
    let mut found = None;
    eventually("it waits, or not", || {
        let watches = bench.server.watches().unwrap();
        // Where a claim is two znodes, one of them is watched.
        let held = holding.iter().filter_map(|name| watches.get(&format!("{}/{name}", bench.path)));
        let watching: Vec<i64> = held.flatten().copied().collect();
        let session = sessions(bench).into_iter().find(|it| *it != session_of_holder);
        found = match waiting.said() {
            Some(Some(line)) if line == "acquired" => Some(Acquire::Holds),
            Some(answer) => {
                let answer = answer.expect("it does not end");
                assert!(answer.starts_with("error "), "{}: {answer}", waiter.name);
                Some(Acquire::Fails)
            }
            None => session.filter(|it| watching.contains(it)).map(|_| Acquire::Waits),
        };
        found.is_some()
    });
    found.unwrap()
}

/// Whose claims there are.
fn sessions(bench: &Bench) -> Vec<i64> {
    let owner = |name| bench.owner(&format!("{}/{name}", bench.path));
    let mut sessions: Vec<i64> = bench.children().into_iter().filter_map(owner).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
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
