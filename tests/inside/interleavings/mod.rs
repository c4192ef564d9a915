//! This floor in every interleaving of a few threads, with a stand-in for the C client
//! (`c_client.rs`): who answers a request (`requests.rs`), and who may touch a handle that its program
//! closes (`adoptions.rs`).
//!
//! All models check what the stand-in checks (no call beside the close of a handle or after it, no
//! write to memory that is gone), that nobody waits for ever, that each request is answered once, and
//! that nothing is left of it. Each also names all the answers that there may be, so that none holds
//! only because what it is about never happens.
//!
//! The checker sees what comes from `crate::sync`. A channel or an event inside is one step to it, and
//! waiting for a gate to open is not modelled: it sleeps on the machine's clock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Config, RawOp, Requests as _, Sink, Terms, Turn, Zhandle, slots};
use crate::error::Code;

mod adoptions;
pub(super) mod c_client;
mod requests;

const LOSES_WHAT_IS_LEFT: &str = "loses-what-is-left";

/// The answers of one request. Locked as the checker does not see: see `c_client.rs`.
#[derive(Clone, Default)]
struct Answers(Arc<std::sync::Mutex<Vec<Code>>>);

impl Answers {
    fn sink<T: 'static>(&self) -> Sink<T> {
        let answers = self.clone();
        Box::new(move |reply| answers.push(reply.err().unwrap_or(Code::OK)))
    }

    fn push(&self, code: Code) {
        self.0.lock().unwrap().push(code);
    }

    fn are_none(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }

    fn the_one(&self) -> Code {
        let answers = self.0.lock().unwrap();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0]
    }
}

/// The answers that were seen in all the runs of a model.
#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<BTreeSet<Code>>>);

impl Seen {
    fn add(&self, code: Code) {
        self.0.lock().unwrap().insert(code);
    }

    fn are(&self, codes: &[Code]) {
        assert_eq!(*self.0.lock().unwrap(), codes.iter().copied().collect());
    }
}

fn config(hosts: &str) -> Config {
    Config {
        hosts: hosts.to_owned(),
        in_order: false,
        session_timeout: Duration::from_secs(10),
        session: None,
        tls: None,
        sasl: None,
    }
}

fn terms(deadline: Option<Instant>) -> Terms {
    Terms { deadline, turn: Turn::InOrder }
}

fn open(hosts: &str) -> Arc<Zhandle> {
    Arc::new(Zhandle::open(&config(hosts), |_| {}).unwrap())
}

fn nothing_is_left(handle: &Zhandle) {
    assert_eq!(handle.in_flight(), 0);
    assert_eq!(slots::len(), 0);
}

/// A sink that sends two more requests: one of them meets the lock under which the first was found,
/// and would wait for itself if that were still held.
fn sending_again(handle: &Arc<Zhandle>, first: &Answers, others: &[Answers; 2]) -> Sink<()> {
    let (handle, first, others) = (Arc::downgrade(handle), first.clone(), others.clone());
    Box::new(move |reply| {
        first.push(reply.err().unwrap_or(Code::OK));
        let handle = handle.upgrade().unwrap();
        others.iter().for_each(|other| handle.sync(terms(None), "/", other.sink()));
    })
}

const DELETE: RawOp<'static> = RawOp::Delete { path: "/a", version: -1 };
