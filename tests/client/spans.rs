//! Spans of locks, as a subscriber sees them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::thread::{self, ThreadId};
use std::time::Duration;

use parking_lot::Mutex;
use test_support::{Process, TIMEOUT, child_about, eventually, options, shared};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_core::span::Current;

/// Keeps what it hears.
#[derive(Default)]
pub struct Kept(Mutex<All>);

#[derive(Default)]
struct All {
    /// By id, less one.
    spans: Vec<Seen>,
    entered: HashMap<ThreadId, Vec<usize>>,
    /// Each with the span that it was said in.
    events: Vec<(String, Option<usize>)>,
}

struct Seen {
    metadata: &'static Metadata<'static>,
    parent: Option<usize>,
    fields: Fields,
    references: usize,
    /// Who began and ended it.
    threads: Vec<String>,
}

#[derive(Clone, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Kept {
    /// Hears everything from now on, in all threads.
    pub fn begin() -> &'static Kept {
        let kept: &'static Kept = Box::leak(Box::default());
        tracing::subscriber::set_global_default(kept).unwrap();
        kept
    }

    /// What was said.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().events.iter().map(|(line, _)| line.clone()).collect()
    }
}

fn place(id: &Id) -> usize {
    id.into_u64() as usize - 1
}

fn this_thread() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

impl All {
    fn current(&self) -> Option<usize> {
        self.entered.get(&thread::current().id()).and_then(|stack| stack.last().copied())
    }
}

impl Subscriber for &'static Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // What becomes of locks, and what an operator is to know.
        let is_ours = metadata.target().starts_with("zklock::") && *metadata.level() <= Level::INFO;
        metadata.is_span() || metadata.target() == "zklock" || is_ours
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut all = self.0.lock();
        let contextual = attributes.is_contextual().then(|| all.current()).flatten();
        let parent = attributes.parent().map(place).or(contextual);
        let threads = vec![this_thread()];
        let metadata = attributes.metadata();
        all.spans.push(Seen { metadata, parent, fields, references: 1, threads });
        Id::from_u64(all.spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        values.record(&mut self.0.lock().spans[place(id)].fields);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut all = self.0.lock();
        let current = all.current();
        all.events.push((fields.0["message"].clone(), current));
    }

    fn enter(&self, id: &Id) {
        self.0.lock().entered.entry(thread::current().id()).or_default().push(place(id));
    }

    fn exit(&self, _: &Id) {
        self.0.lock().entered.entry(thread::current().id()).or_default().pop();
    }

    fn current_span(&self) -> Current {
        let all = self.0.lock();
        let current = all.current();
        current.map_or_else(Current::none, |at| {
            Current::new(Id::from_u64(at as u64 + 1), all.spans[at].metadata)
        })
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.0.lock().spans[place(id)].references += 1;
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut all = self.0.lock();
        let span = &mut all.spans[place(&id)];
        span.references -= 1;
        let is_over = span.references == 0;
        if is_over {
            span.threads.push(this_thread());
        }
        is_over
    }
}

/// The span, its parent, and its fields.
fn shown(span: &Seen, all: &All) -> String {
    let parent = span.parent.map_or("nothing", |parent| all.spans[parent].metadata.name());
    let mut fields = span.fields.0.clone();
    let token = fields.remove("token").is_some();
    format!("{} in {parent}{} {fields:?}", span.metadata.name(), if token { ", token" } else { "" })
}

#[test]
fn in_a_child_process_the_spans_of_locks_are_kept() {
    let Some(hosts) = child_about() else { return };
    let kept = Kept::begin();
    let client = options().connect(&hosts).wait().unwrap();
    let lock = client.lock("/spans").label("night run");
    let request = tracing::info_span!("request");
    let entered = request.enter();
    let first = lock.acquire().wait().unwrap();
    let first_path = first.claim_path().to_string();
    assert!(lock.try_acquire().wait().unwrap().is_none());
    drop(entered);
    let given_up = lock.acquire();
    drop(given_up);
    first.release().wait().unwrap();
    let second = lock.acquire().wait().unwrap();
    let second_path = second.claim_path().to_string();
    drop(request);
    client.close().wait().unwrap();
    assert!(second.lost().wait_timeout(TIMEOUT).is_some());
    lock.acquire().wait().unwrap_err();
    eventually("all spans are over", || {
        let all = kept.0.lock();
        all.spans.len() == 8 && all.spans.iter().all(|span| span.references == 0)
    });
    let all = kept.0.lock();
    let asked = |parent: &str, outcome: &str| {
        let outcome = match outcome {
            "" => String::new(),
            outcome => format!("\"outcome\": {outcome:?}, "),
        };
        let rest = "\"path\": \"/spans\", \"strategy\": \"Queue\"";
        format!("acquire in {parent} {{\"label\": \"night run\", {outcome}{rest}}}")
    };
    let held = |parent: &str, end: &str, path: &str| {
        format!("hold in {parent}, token {{\"end\": {end:?}, \"path\": {path:?}}}")
    };
    let mut seen: Vec<String> = all.spans.iter().map(|span| shown(span, &all)).collect();
    let mut wanted = vec![
        "request in nothing {}".to_owned(),
        asked("request", "acquired"),
        held("request", "Released", &first_path),
        asked("request", "taken"),
        asked("nothing", ""),
        asked("nothing", "acquired"),
        held("nothing", "Session", &second_path),
        asked("nothing", "failed"),
    ];
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);
    let of_locks = all.spans.iter().filter(|span| span.metadata.name() != "request");
    for span in of_locks {
        assert_eq!(span.metadata.target(), "zklock");
        assert_eq!(span.threads, ["zklock-log", "zklock-log"], "a subscriber may block");
    }
    let within = |event: &(String, Option<usize>)| {
        let span = event.1.map_or("nothing", |at| all.spans[at].metadata.name());
        format!("{} within {span}", event.0)
    };
    let events: Vec<String> = all.events.iter().map(within).collect();
    let life = ["acquired within acquire", "released within hold"];
    assert_eq!(events, [life[0], life[1], life[0], "lost within hold"]);
}

#[test]
fn in_a_child_process_the_spans_of_other_stores_are_kept() {
    let Some(_) = child_about() else { return };
    let kept = Kept::begin();
    let file = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", file.path().join("locks.db").display());
    for address in ["local:", &sqlite] {
        *kept.0.lock() = All::default();
        let store = zklock::connect(address).wait().unwrap();
        let lock = store.lock("/spans").label("night run");
        let first = lock.acquire().wait().unwrap();
        assert!(lock.try_acquire().wait().unwrap().is_none());
        first.release().wait().unwrap();
        let second = lock.acquire().wait().unwrap();
        let holder = lock.holder().wait().unwrap().unwrap();
        assert!(lock.break_hold(&holder, "", Duration::ZERO).wait().unwrap());
        assert!(second.lost().wait_timeout(TIMEOUT).is_some());
        drop(second);
        eventually("all spans are over", || {
            let all = kept.0.lock();
            all.spans.len() == 5 && all.spans.iter().all(|span| span.references == 0)
        });
        let lines = kept.lines();
        let all = kept.0.lock();
        let ends = |name: &str, field: &str| -> Vec<String> {
            let named = all.spans.iter().filter(|span| span.metadata.name() == name);
            named.map(|span| span.fields.0[field].clone()).collect()
        };
        assert_eq!(ends("acquire", "outcome"), ["acquired", "taken", "acquired"], "{address}");
        assert_eq!(ends("acquire", "label"), ["night run"; 3], "{address}");
        assert_eq!(ends("hold", "end"), ["Released", "Broken"], "{address}");
        assert_eq!(lines, ["acquired", "released", "acquired", "lost"], "{address}");
    }
}

#[test]
fn acquires_and_holds_are_spans_in_every_store() {
    let test = "spans::in_a_child_process_the_spans_of_other_stores_are_kept";
    assert!(Process::start_test(test, "").end().success());
}

#[test]
fn acquires_and_holds_are_spans_within_that_of_their_caller() {
    let test = "spans::in_a_child_process_the_spans_of_locks_are_kept";
    assert!(Process::start_test(test, &shared().hosts()).end().success());
}
