//! What is logged; and that a subscriber which blocks, or panics, costs no client its session.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use test_support::{
    Bench, Process, TIMEOUT, child_about, eventually, options, say, shared, states_until,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zklock::zookeeper::SessionState;

static EVENTS: AtomicUsize = AtomicUsize::new(0);

/// Wants everything, and takes nothing well.
struct Bad {
    panics: bool,
}

impl Subscriber for Bad {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        EVENTS.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "as intended");
        loop {
            std::thread::park();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn in_a_child_process_a_subscriber_is_bad() {
    let Some((how, hosts)) = child_about().and_then(|about| {
        about.split_once(' ').map(|(how, hosts)| (how.to_owned(), hosts.to_owned()))
    }) else {
        return;
    };
    let panics = how == "panics";
    if panics {
        // Thousands of them are no news.
        std::panic::set_hook(Box::new(|panic| {
            if !panic.to_string().contains("as intended") {
                eprintln!("{panic}");
            }
        }));
    }
    tracing::subscriber::set_global_default(Bad { panics }).unwrap();
    let client = options().connect(&hosts).wait().unwrap();
    let mut states = client.states();
    assert_eq!(states.wait(), Some(SessionState::Connected));
    // Many lines more than are kept.
    for _ in 0..2_000 {
        client.lock("/other").acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
    }
    say("connected");
    states_until(&mut states, SessionState::Suspended);
    say("suspended");
    states_until(&mut states, SessionState::Connected);
    client.get("/").wait().unwrap();
    assert!(EVENTS.load(Ordering::SeqCst) > 0);
    client.close().wait().unwrap();
}

#[test]
fn a_subscriber_that_blocks_or_panics_costs_no_session() {
    for how in ["blocks", "panics"] {
        let bench = Bench::untouched();
        let about = format!("{how} {}", bench.proxy.hosts());
        let mut child =
            Process::start_test("logging::in_a_child_process_a_subscriber_is_bad", &about);
        assert_eq!(child.hear().as_deref(), Some("\"connected\""), "{how}");
        bench.proxy.refuse();
        assert_eq!(child.hear().as_deref(), Some("\"suspended\""), "{how}");
        bench.proxy.heal();
        assert!(child.end().success(), "{how}");
    }
}

/// Writes down what becomes of locks.
struct Lives(Mutex<Vec<String>>);

/// The fields of one event, by their names.
#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for &'static Lives {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "zklock"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let [message, token] = ["message", "token"].map(|name| fields.0.remove(name).unwrap());
        let reason = fields.0.remove("reason").unwrap_or_default();
        let others: Vec<_> = fields.0.keys().copied().collect();
        let level = event.metadata().level();
        self.0.lock().push(format!("{level} {message} {token} {reason} {others:?}"));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn in_a_child_process_the_lives_of_locks_are_written_down() {
    let Some(hosts) = child_about() else { return };
    let lives: &'static Lives = Box::leak(Box::new(Lives(Mutex::default())));
    tracing::subscriber::set_global_default(lives).unwrap();
    let client = options().connect(&hosts).wait().unwrap();
    let lock = client.lock("/lives");
    let first = lock.acquire().wait().unwrap();
    let mut wanted = vec![
        format!("DEBUG acquired {}  [\"path\", \"waited\"]", first.fencing_token()),
        format!("DEBUG released {}  [\"held\", \"path\"]", first.fencing_token()),
    ];
    first.release().wait().unwrap();
    let second = lock.acquire().wait().unwrap();
    let token = second.fencing_token();
    wanted.push(format!("DEBUG acquired {token}  [\"path\", \"waited\"]"));
    wanted.push(format!("WARN lost {token} Session [\"held\", \"path\"]"));
    client.close().wait().unwrap();
    assert!(second.lost().wait_timeout(TIMEOUT).is_some());
    drop(second);
    eventually("all is written down", || lives.0.lock().len() == wanted.len());
    assert_eq!(*lives.0.lock(), wanted);
}

#[test]
fn a_lock_is_acquired_released_and_lost_in_the_log() {
    let test = "logging::in_a_child_process_the_lives_of_locks_are_written_down";
    assert!(Process::start_test(test, &shared().hosts()).end().success());
}
