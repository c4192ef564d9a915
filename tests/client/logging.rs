//! A subscriber that blocks, or panics, costs no client its session.

use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::{Bench, Process, TIMEOUT, child_about, options, say, states_until};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zklock::SessionState;

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
    tracing::subscriber::set_global_default(Bad { panics: how == "panics" }).unwrap();
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
