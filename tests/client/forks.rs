//! What a child process made by `fork` can do with what its parent has, and with what it makes itself.

#![allow(unsafe_code, reason = "fork has no safe form")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{Process, TIMEOUT, child_about, options, say, shared};
use zklock::zookeeper::{Acl, CreateMode, Op, Reconfiguration, SessionState};
use zklock::{
    Access, Client, Code, Contender, Election, Guard, GuardState, LocalHandoff, LocalStore, Lock,
    LockError, LostReason, MultiLock, Owner, Result, Semaphore,
};

use crate::lifecycle::voluntary_waits;

type OfAClient = fn(&Client, &str) -> Result<()>;
type OfALock = fn(&Lock) -> Result<(), LockError>;
type OfASemaphore = fn(&Semaphore) -> Result<(), LockError>;

/// What a client can be asked for, each by its name.
const OF_A_CLIENT: [(&str, OfAClient); 19] = [
    ("delete_all", |zk, node| zk.delete_all(node).wait()),
    ("connected", |zk, _| zk.connected().wait()),
    ("create", |zk, node| zk.create(node, b"", CreateMode::Persistent).wait().map(drop)),
    ("create_with_acl", |zk, node| {
        zk.create_with_acl(node, b"", CreateMode::Persistent, &Acl::open()).wait().map(drop)
    }),
    ("delete", |zk, node| zk.delete(node, None).wait()),
    ("exists", |zk, node| zk.exists(node).wait().map(drop)),
    ("exists_and_watch", |zk, node| zk.exists_and_watch(node).wait().map(drop)),
    ("get", |zk, node| zk.get(node).wait().map(drop)),
    ("get_and_watch", |zk, node| zk.get_and_watch(node).wait().map(drop)),
    ("set", |zk, node| zk.set(node, b"", None).wait().map(drop)),
    ("children", |zk, node| zk.children(node).wait().map(drop)),
    ("children_and_watch", |zk, node| zk.children_and_watch(node).wait().map(drop)),
    ("get_acl", |zk, node| zk.get_acl(node).wait().map(drop)),
    ("set_acl", |zk, node| zk.set_acl(node, &Acl::open(), None).wait()),
    ("sync", |zk, node| zk.sync(node).wait()),
    ("add_auth", |zk, _| zk.add_auth("digest", b"user:secret").wait()),
    ("make_path", |zk, node| zk.make_path(node).wait()),
    ("reconfigure", |zk, _| zk.reconfigure(&Reconfiguration::leave([7]), None).wait().map(drop)),
    ("multi", |zk, node| zk.multi(&[Op::check(node)]).wait().map(drop)),
];

/// What a lock can be asked for.
const OF_A_LOCK: [(&str, OfALock); 16] = [
    ("acquire", |lock| lock.acquire().wait().map(drop)),
    ("acquire within a limit", |lock| lock.acquire().within(TIMEOUT).wait().map(drop)),
    ("try_acquire", |lock| lock.try_acquire().wait().map(drop)),
    ("is_locked", |lock| lock.is_locked().wait().map(drop)),
    ("holder", |lock| lock.holder().wait().map(drop)),
    ("contenders", |lock| lock.contenders().wait().map(drop)),
    ("request_release", |lock| lock.request_release(&somebody(), "").wait().map(drop)),
    ("break_hold", |lock| lock.break_hold(&somebody(), "", TIMEOUT).wait().map(drop)),
    ("in turns", |lock| {
        let lock = lock.clone().local_handoff(LocalHandoff::new());
        lock.acquire().wait().map(drop)
    }),
    ("acquire for an owner", |lock| {
        lock.clone().reentrant().acquire(&Owner::new()).wait().map(drop)
    }),
    ("try_acquire for an owner", |lock| {
        lock.clone().reentrant().try_acquire(&Owner::new()).wait().map(drop)
    }),
    ("acquire of several", |lock| MultiLock::new([lock.clone()]).acquire().wait().map(drop)),
    ("try_acquire of several", |lock| {
        MultiLock::new([lock.clone()]).try_acquire().wait().map(drop)
    }),
    ("campaign", |lock| Election::new(lock.clone()).campaign().wait().map(drop)),
    ("leader", |lock| Election::new(lock.clone()).leader().wait().map(drop)),
    ("participants", |lock| Election::new(lock.clone()).participants().wait().map(drop)),
];

/// Who holds some lock.
fn somebody() -> Contender {
    let lock = LocalStore::new().lock("/somebody");
    let guard = lock.acquire().wait().expect("nobody has it");
    let holder = lock.holder().wait().ok().flatten().expect("it is held");
    drop(guard);
    holder
}

/// What a semaphore can be asked for.
const OF_A_SEMAPHORE: [(&str, OfASemaphore); 2] = [
    ("limit", |semaphore| semaphore.limit().wait().map(drop)),
    ("set_limit", |semaphore| semaphore.set_limit(3).wait()),
];

/// Runs `work` in a child; it says what was wrong there. Nothing may be printed: another thread of the
/// parent may have been printing.
fn in_a_child(work: impl Fn() -> std::result::Result<(), &'static str> + Send + Sync + 'static) {
    let report = tempfile::NamedTempFile::new().unwrap();
    let place = report.path().to_owned();
    let mut command = Command::new("true");
    let work = move || {
        let _ = std::fs::write(&place, work().err().unwrap_or("fine"));
        Ok(())
    };
    // SAFETY: the work runs on the only thread of the child. That it may do more than call the kernel is
    // what is tested; the allocator of the C library allows it.
    unsafe { command.pre_exec(work) };
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read_to_string(report.path()).unwrap(), "fine");
}

fn ensure(holds: bool, what: &'static str) -> std::result::Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

fn is_refused<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| {
        error.code() == Code::INVALID_STATE && error.to_string().contains("fork")
    })
}

fn is_refused_of_a_lock<T>(result: zklock::Result<T, LockError>) -> bool {
    result.is_err_and(|error| match error {
        LockError::Closed { ref source, .. } => {
            is_refused::<()>(Err(source.clone())) && error.to_string().contains("fork")
        }
        _ => false,
    })
}

/// Runs a test of this module in a process of its own: there no other test resolves host names at the
/// moment of a fork, under a lock of the C library that the child would find held.
fn alone(test: &str) {
    let mut process = Process::start_test(&format!("forks::{test}"), &shared().hosts());
    assert_eq!(process.hear().as_deref(), Some("true"), "{test}");
    assert!(process.end().success());
}

#[test]
fn what_the_parent_has_is_refused_in_a_child_and_stays_the_parents() {
    alone("a_process_forks_and_goes_on");
}

#[test]
fn a_child_has_clients_of_its_own() {
    alone("a_process_forks_and_the_child_begins_anew");
}

#[test]
fn locks_within_the_parent_are_refused_in_a_child_and_stay_the_parents() {
    alone("a_process_without_a_client_forks_and_goes_on");
}

/// What its process does; nothing in any other.
#[test]
fn a_process_without_a_client_forks_and_goes_on() {
    let Some(_) = child_about() else { return };
    let store = LocalStore::new();
    let guard = store.lock("/forked").acquire().wait().unwrap();
    let waiting = store.lock("/forked").acquire();
    let in_turns = store.lock("/forked").local_handoff(LocalHandoff::new());
    let (reentrant, owner) = (store.lock("/forked-again").reentrant(), Owner::new());
    let outer = reentrant.acquire(&owner).wait().unwrap();
    let (again, by) = (reentrant.clone(), owner.clone());
    let inherited = Arc::new(Mutex::new(Some((guard, waiting))));
    let (theirs, childs) = (Arc::clone(&inherited), store.clone());
    in_a_child(move || {
        for (name, ask) in OF_A_LOCK {
            ensure(is_refused_of_a_lock(ask(&childs.lock("/forked"))), name)?;
        }
        for (name, ask) in OF_A_SEMAPHORE {
            ensure(is_refused_of_a_lock(ask(&childs.semaphore("/forked", 2))), name)?;
        }
        ensure(is_refused_of_a_lock(in_turns.acquire().wait()), "in turns of the parent's")?;
        ensure(is_refused_of_a_lock(again.acquire(&by).wait()), "what the parent holds")?;
        ensure(is_refused_of_a_lock(again.try_acquire(&by).wait()), "a try of that")?;
        ensure(!childs.lose("/forked"), "the store takes it away")?;
        childs.close();
        let (guard, waiting) = theirs.lock().unwrap().take().ok_or("nothing inherited")?;
        ensure(guard.is_lost(), "the guard's state")?;
        ensure(guard.lost().wait() == LostReason::Session, "the signal")?;
        ensure(waiting.wait().is_err(), "what waits")?;
        drop(guard);
        let own = LocalStore::new().lock("/forked").try_acquire().wait();
        ensure(own.is_ok_and(|guard| guard.is_some()), "a store of its own")
    });
    let (guard, waiting) = inherited.lock().unwrap().take().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    waiting.wait().unwrap().release().wait().unwrap();
    let inner = reentrant.acquire(&owner).wait().unwrap();
    assert_eq!((inner.holds(), inner.fencing_token()), (2, outer.fencing_token()));
    drop((inner, outer));
    say(true);
}

#[test]
fn a_child_that_is_forked_while_a_thread_looks_at_a_guard_may_look_at_it_too() {
    alone("a_process_forks_while_threads_look_at_guards");
}

/// What its process does; nothing in any other.
#[test]
fn a_process_forks_while_threads_look_at_guards() {
    const FORKS: u32 = 50;
    let Some(_) = child_about() else { return };
    let store = LocalStore::new();
    let in_turns = store.lock("/in-turns").local_handoff(LocalHandoff::new());
    let guards = [
        in_turns.acquire().wait().unwrap(),
        store.lock("/again").reentrant().acquire(&Owner::new()).wait().unwrap(),
        store.read_write("/written").write().acquire().wait().unwrap(),
    ];
    let guards = Arc::new(guards);
    let look = |guard: &Guard| {
        let count = guard.turn() as usize + guard.holds();
        (count, guard.remaining(), guard.state(), guard.access(), guard.lost().get())
    };
    let is_over = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        for guard in &*guards {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(look(guard).2, GuardState::Held);
                }
            });
        }
        for _ in 0..FORKS {
            let inherited = Arc::clone(&guards);
            in_a_child(move || {
                let lost = (0, Duration::ZERO, GuardState::Lost, None, Some(LostReason::Session));
                ensure(inherited.iter().all(|guard| look(guard) == lost), "a guard")
            });
        }
        is_over.store(true, Ordering::Relaxed);
    });
    say(true);
}

/// What the first of these processes does; nothing in any other.
#[test]
fn a_process_forks_and_goes_on() {
    let Some(hosts) = child_about() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let path = String::from("/forked");
    client.create(&path, b"", CreateMode::Persistent).wait().unwrap();
    let lock = client.lock(&path);
    let guard = lock.acquire().wait().unwrap();
    let second = client.lock("/forked-second").acquire().wait().unwrap();
    let signal = guard.lost();
    let watch = client.exists_and_watch(&format!("{path}/node")).wait().unwrap().watch;
    let waiting = lock.acquire();
    // One that waits for an event of its parent's, and one that nobody has looked at.
    let mut changes = vec![client.watch_data(&path), client.watch_data(&path)];
    changes[0].wait().unwrap().unwrap();
    assert!(changes[0].wait_timeout(Duration::ZERO).is_err());
    let changes = Mutex::new(changes);
    let inherited = Arc::new(Mutex::new(Some((guard, second, signal, watch, waiting))));
    let (theirs, childs, node) = (Arc::clone(&inherited), client.clone(), format!("{path}/node"));
    in_a_child(move || {
        ensure(childs.state() == SessionState::Closed, "the client's state")?;
        ensure(childs.session().is_none(), "a session")?;
        ensure(childs.session_timeout().is_none(), "a session timeout")?;
        #[cfg(feature = "raw")]
        ensure(childs.with_zhandle(|_| ()).is_none(), "a handle")?;
        let mut states = childs.states();
        ensure(states.wait() == Some(SessionState::Closed), "a state")?;
        ensure(states.wait().is_none(), "another state")?;
        for mut inherited in changes.lock().unwrap().drain(..) {
            ensure(inherited.wait().is_some_and(is_refused), "changes of a znode")?;
            ensure(inherited.wait().is_none(), "another change of a znode")?;
        }
        ensure(childs.watch_data(&node).wait().is_some_and(is_refused), "watch_data")?;
        ensure(childs.watch_children(&node).wait().is_some_and(is_refused), "watch_children")?;
        let lock = childs.lock(&node);
        let before = voluntary_waits();
        for (name, ask) in OF_A_CLIENT {
            ensure(is_refused(ask(&childs, &node)), name)?;
        }
        for (name, ask) in OF_A_LOCK {
            ensure(is_refused_of_a_lock(ask(&lock)), name)?;
        }
        for (name, ask) in OF_A_SEMAPHORE {
            ensure(is_refused_of_a_lock(ask(&childs.semaphore("/semaphore", 2))), name)?;
        }
        let Some((guard, second, signal, watch, waiting)) = theirs.lock().unwrap().take() else {
            return Err("no guard");
        };
        ensure(guard.state() == GuardState::Lost, "the guard's state")?;
        ensure(signal.get() == Some(LostReason::Session), "a loss")?;
        ensure(signal.wait() == LostReason::Session, "a loss that is waited for")?;
        ensure(watch.wait().is_err(), "a watch")?;
        let given_up = matches!(waiting.wait(), Err(LockError::Closed { .. }));
        ensure(given_up, "an acquire that was under way")?;
        let is_not_held = |changed| matches!(changed, Err(LockError::NotHeld { .. }));
        ensure(is_not_held(guard.upgrade().wait()), "upgrade")?;
        ensure(is_not_held(guard.downgrade(Access::Read).wait()), "downgrade")?;
        let written = guard.multi(&[]).wait();
        ensure(matches!(written, Err(LockError::NotHeld { .. })), "a guarded write")?;
        ensure(guard.is_lost(), "is_lost")?;
        ensure(is_refused_of_a_lock(guard.release().wait()), "release")?;
        ensure(
            is_refused_of_a_lock(second.release().within(TIMEOUT).wait()),
            "release within a limit",
        )?;
        ensure(voluntary_waits() == before, "something was waited for")?;
        childs.close().wait().map_err(|_| "close")?;
        drop(lock);
        drop(childs.clone());
        Ok(())
    });
    let (guard, second, signal, watch, waiting) = inherited.lock().unwrap().take().unwrap();
    assert_eq!((guard.state(), second.state()), (GuardState::Held, GuardState::Held));
    assert_eq!(signal.get(), None);
    client.create(&format!("{path}/node"), b"", CreateMode::Persistent).wait().unwrap();
    watch.wait().unwrap();
    guard.release().wait().unwrap();
    second.release().wait().unwrap();
    waiting.wait().unwrap().release().wait().unwrap();
    say(true);
}

/// What the second does.
#[test]
fn a_process_forks_and_the_child_begins_anew() {
    let Some(hosts) = child_about() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let (taken, free) = (String::from("/forked-taken"), String::from("/forked-free"));
    let guard = client.lock(&taken).acquire().wait().unwrap();
    let (mut asked, asks) = UnixStream::pair().unwrap();
    let giving = thread::spawn(move || {
        asked.read_exact(&mut [0]).unwrap();
        assert_eq!(guard.state(), GuardState::Held);
        guard.release().wait().unwrap();
    });
    in_a_child(move || {
        let own: Client = options().connect(&hosts).wait().map_err(|_| "connect")?;
        let (limit, began) = (Duration::from_millis(1_500), Instant::now());
        let timed_out = own.lock(&taken).acquire().within(limit).wait();
        ensure(timed_out.is_err_and(|error| error.is_timeout()), "the parent's lock")?;
        ensure((limit..TIMEOUT).contains(&began.elapsed()), "the limit")?;
        let guard = own.lock(&free).acquire().wait().map_err(|_| "acquire")?;
        ensure(guard.state() == GuardState::Held, "the guard's state")?;
        guard.release().wait().map_err(|_| "release")?;
        // Now the parent releases.
        (&asks).write_all(b"x").map_err(|_| "ask")?;
        let given = own.lock(&taken).acquire().within(TIMEOUT).wait();
        given.map_err(|_| "what the parent released")?.release().wait().map_err(|_| "release")?;
        own.close().wait().map_err(|_| "close")
    });
    giving.join().unwrap();
    say(true);
}

#[cfg(feature = "sqlite")]
#[test]
fn children_that_begin_with_a_file_take_turns_and_one_whose_parent_has_begun_is_refused() {
    alone("a_process_forks_before_and_after_it_uses_a_file");
}

/// What its process does; nothing in any other.
#[cfg(feature = "sqlite")]
#[test]
fn a_process_forks_before_and_after_it_uses_a_file() {
    const ROUNDS: u32 = 30;
    let Some(_) = child_about() else { return };
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("locks.db").display());
    let counter = directory.path().join("count");
    std::fs::write(&counter, "0").unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            let (address, counter) = (address.clone(), counter.clone());
            scope.spawn(move || {
                in_a_child(move || {
                    let store = zklock::connect(&address).wait().map_err(|_| "connect")?;
                    for _ in 0..ROUNDS {
                        let guard = store.lock("/forked").acquire().within(TIMEOUT).wait();
                        let guard = guard.map_err(|_| "acquire")?;
                        let count = std::fs::read_to_string(&counter).map_err(|_| "read")?;
                        let count: u32 = count.parse().map_err(|_| "a number")?;
                        std::fs::write(&counter, (count + 1).to_string()).map_err(|_| "write")?;
                        guard.release().wait().map_err(|_| "release")?;
                    }
                    store.close().wait().map_err(|_| "close")
                });
            });
        }
    });
    assert_eq!(std::fs::read_to_string(&counter).unwrap(), (2 * ROUNDS).to_string());
    let store = zklock::connect(&address).wait().unwrap();
    let guard = store.lock("/forked").acquire().wait().unwrap();
    let waiting = store.lock("/forked").acquire();
    let inherited = Arc::new(Mutex::new(Some((guard, waiting))));
    let (theirs, childs, again) = (Arc::clone(&inherited), store.clone(), address.clone());
    in_a_child(move || {
        for (name, ask) in OF_A_LOCK {
            ensure(is_refused_of_a_lock(ask(&childs.lock("/forked"))), name)?;
        }
        for (name, ask) in OF_A_SEMAPHORE {
            ensure(is_refused_of_a_lock(ask(&childs.semaphore("/forked", 2))), name)?;
        }
        let (guard, waiting) = theirs.lock().unwrap().take().ok_or("nothing inherited")?;
        ensure(guard.is_lost(), "the guard's state")?;
        ensure(guard.lost().wait() == LostReason::Session, "the signal")?;
        ensure(waiting.wait().is_err(), "what waits")?;
        drop(guard);
        let own = zklock::connect(&again).wait();
        ensure(own.is_err_and(|error| error.to_string().contains("fork")), "a store of its own")?;
        childs.close().wait().map_err(|_| "close")
    });
    let (guard, waiting) = inherited.lock().unwrap().take().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    waiting.wait().unwrap().release().wait().unwrap();
    say(true);
}

/// The names of the functions whose outcome is waited for, in the files of a directory.
fn requests_in(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        names.extend(text.split("    pub fn ").skip(1).filter_map(|function| {
            let (name, rest) = function.split_once('(')?;
            let (signature, _) = rest.split_once(" {\n")?;
            let is_request = signature.contains("self") && signature.contains("-> Pending<");
            is_request.then(|| name.to_owned())
        }));
    }
    names
}

#[test]
fn a_child_asks_for_everything_that_can_be_asked_for() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let functions = ["client", "lock", "zookeeper", "local"].map(|dir| requests_in(&src.join(dir)));
    let functions = functions.concat();
    assert!(functions.len() > 20, "only {functions:?}");
    let asked = OF_A_CLIENT
        .map(|(name, _)| name)
        .into_iter()
        .chain(OF_A_LOCK.map(|(name, _)| name))
        .chain(OF_A_SEMAPHORE.map(|(name, _)| name));
    // `connect` asks for nothing of what there is; who resigns or hands over leads, and does not in a child.
    let others = ["release", "release within a limit", "upgrade", "downgrade", "close", "connect"];
    let others = others.into_iter().chain(["resign", "hand_over"]);
    let asked: Vec<&str> = asked.chain(others).collect();
    for function in functions {
        assert!(asked.contains(&function.as_str()), "no child asks for {function}");
    }
}
