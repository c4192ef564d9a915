//! What a child process made by `fork` can do with what its parent has, and with what it makes itself.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zklock::{Client, Code, CreateMode, GuardState, LockError, LostReason, SessionState};

use crate::bench::{options, shared};
use crate::child;

/// Runs `work` in a child; it says what was wrong there. Nothing may be printed: another thread of the
/// parent may have been printing.
fn in_a_child(work: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static) {
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

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

fn is_refused<T>(result: zklock::Result<T>) -> bool {
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
    let mut process = child::Process::start(&format!("forks::{test}"), &shared().hosts());
    assert_eq!(process.hear().as_deref(), Some("true"), "{test}");
    assert!(process.end());
}

#[test]
fn what_the_parent_has_is_refused_in_a_child_and_stays_the_parents() {
    alone("a_process_forks_and_goes_on");
}

#[test]
fn a_child_has_clients_of_its_own() {
    alone("a_process_forks_and_the_child_begins_anew");
}

/// What the first of these processes does; nothing in any other.
#[test]
fn a_process_forks_and_goes_on() {
    let Some(hosts) = child::hosts() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let path = String::from("/forked");
    client.create(&path, b"", CreateMode::Persistent).wait().unwrap();
    let lock = client.lock(&path);
    let guard = lock.acquire().wait().unwrap();
    let signal = guard.lost();
    let watch = client.exists_and_watch(&format!("{path}/node")).wait().unwrap().1;
    let waiting = lock.acquire();
    let inherited = Arc::new(Mutex::new(Some((guard, signal, watch, waiting))));
    let (theirs, childs, node) = (Arc::clone(&inherited), client.clone(), format!("{path}/node"));
    in_a_child(move || {
        ensure(childs.state() == SessionState::Closed, "the client's state")?;
        ensure(childs.session().is_none(), "a session")?;
        let mut states = childs.states();
        ensure(states.wait() == Some(SessionState::Closed), "a state")?;
        ensure(states.wait().is_none(), "another state")?;
        let mode = CreateMode::Persistent;
        ensure(is_refused(childs.create(&node, b"", mode).wait()), "create")?;
        ensure(is_refused(childs.get_and_watch(&node).wait()), "get_and_watch")?;
        ensure(is_refused(childs.multi(&[zklock::Op::check(&node)]).wait()), "multi")?;
        let lock = childs.lock(&node);
        ensure(is_refused_of_a_lock(lock.acquire().wait()), "acquire")?;
        let second = Duration::from_secs(1);
        ensure(is_refused_of_a_lock(lock.acquire_within(second).wait()), "acquire_within")?;
        ensure(is_refused_of_a_lock(lock.try_acquire().wait()), "try_acquire")?;
        ensure(is_refused_of_a_lock(lock.contenders().wait()), "contenders")?;
        let Some((guard, signal, watch, waiting)) = theirs.lock().unwrap().take() else {
            return Err("no guard");
        };
        ensure(guard.state() == GuardState::Lost, "the guard's state")?;
        ensure(signal.get() == Some(LostReason::Session), "a loss")?;
        ensure(signal.wait() == LostReason::Session, "a loss that is waited for")?;
        ensure(watch.wait().is_err(), "a watch")?;
        let given_up = matches!(waiting.wait(), Err(LockError::Closed { .. }));
        ensure(given_up, "an acquire that was under way")?;
        let written = guard.multi(&[]).wait();
        ensure(matches!(written, Err(LockError::NotHeld { .. })), "a guarded write")?;
        let again = childs.lock(&node);
        ensure(is_refused_of_a_lock(guard.release().wait()), "release")?;
        childs.close().wait().map_err(|_| "close")?;
        drop(again);
        drop(childs.clone());
        Ok(())
    });
    let (guard, signal, watch, waiting) = inherited.lock().unwrap().take().unwrap();
    assert_eq!(guard.state(), GuardState::Held);
    assert_eq!(signal.get(), None);
    client.create(&format!("{path}/node"), b"", CreateMode::Persistent).wait().unwrap();
    watch.wait().unwrap();
    guard.release().wait().unwrap();
    waiting.wait().unwrap().release().wait().unwrap();
    child::say(true);
}

/// What the second does.
#[test]
fn a_process_forks_and_the_child_begins_anew() {
    let Some(hosts) = child::hosts() else { return };
    let client = options().connect(&hosts).wait().unwrap();
    let (taken, free) = (String::from("/forked-taken"), String::from("/forked-free"));
    let guard = client.lock(&taken).acquire().wait().unwrap();
    in_a_child(move || {
        let own: Client = options().connect(&hosts).wait().map_err(|_| "connect")?;
        let soon = Duration::from_millis(200);
        let timed_out = own.lock(&taken).acquire_within(soon).wait();
        ensure(timed_out.is_err_and(|error| error.is_timeout()), "the parent's lock")?;
        let guard = own.lock(&free).acquire().wait().map_err(|_| "acquire")?;
        ensure(guard.state() == GuardState::Held, "the guard's state")?;
        guard.release().wait().map_err(|_| "release")?;
        own.close().wait().map_err(|_| "close")
    });
    assert_eq!(guard.state(), GuardState::Held);
    guard.release().wait().unwrap();
    child::say(true);
}
