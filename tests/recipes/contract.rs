//! What every operation of every recipe promises. `tests/architecture/contracts.rs` sees to it that each has a row.

use std::fmt::Debug;

use test_support::{Bench, TIMEOUT, eventually};
use zklock::zookeeper::{Acl, Permissions};
use zklock::{Client, Code, Error, LockError};
use zklock_testing::{Action, Ops, Rule};

use crate::{around, asked};

type Operation = Box<dyn FnOnce() -> Result<String, Code>>;

/// An operation, and what has to be there before it.
struct Row {
    name: &'static str,
    prepare: fn(&Client, &str) -> Operation,
}

trait Coded {
    fn of(&self) -> Code;
}

impl Coded for Error {
    fn of(&self) -> Code {
        self.code()
    }
}

impl Coded for LockError {
    fn of(&self) -> Code {
        self.code()
    }
}

fn told<T: Debug, E: Coded>(result: Result<T, E>) -> Result<String, Code> {
    result.map(|value| format!("{value:?}")).map_err(|error| error.of())
}

/// What it was, where its text names what differs from run to run.
fn done<T, E: Coded>(result: Result<T, E>) -> Result<String, Code> {
    told(result.map(drop))
}

const ROWS: &[Row] = &[
    Row {
        name: "Barrier::set",
        prepare: |client, path| {
            let barrier = client.barrier(path);
            Box::new(move || told(barrier.set().wait()))
        },
    },
    Row {
        name: "Barrier::remove",
        prepare: |client, path| {
            let barrier = client.barrier(path);
            barrier.set().wait().unwrap();
            Box::new(move || told(barrier.remove().wait()))
        },
    },
    Row {
        name: "Barrier::pass",
        prepare: |client, path| {
            let barrier = client.barrier(path);
            Box::new(move || told(barrier.pass().wait()))
        },
    },
    Row {
        name: "Counter::get",
        prepare: |client, path| {
            let counter = client.counter(path);
            counter.set(3).wait().unwrap();
            Box::new(move || told(counter.get().wait()))
        },
    },
    Row {
        name: "Counter::set",
        prepare: |client, path| {
            let counter = client.counter(path);
            Box::new(move || told(counter.set(3).wait()))
        },
    },
    Row {
        name: "Counter::add",
        prepare: |client, path| {
            let counter = client.counter(path);
            counter.set(3).wait().unwrap();
            Box::new(move || told(counter.add(4).wait()))
        },
    },
    Row {
        name: "Counter::get_and_add",
        prepare: |client, path| {
            let counter = client.counter(path);
            counter.set(3).wait().unwrap();
            Box::new(move || told(counter.get_and_add(4).wait()))
        },
    },
    Row {
        name: "Counter::compare_and_set",
        prepare: |client, path| {
            let counter = client.counter(path);
            counter.set(3).wait().unwrap();
            Box::new(move || told(counter.compare_and_set(3, 4).wait()))
        },
    },
    Row {
        name: "DoubleBarrier::enter",
        prepare: |client, path| {
            let barrier = client.double_barrier(path, 1);
            // Kept: dropping it would leave.
            Box::new(move || done(barrier.enter().wait().map(std::mem::forget)))
        },
    },
    Row {
        name: "Entered::leave",
        prepare: |client, path| {
            let entered = client.double_barrier(path, 1).enter().wait().unwrap();
            Box::new(move || told(entered.leave().wait()))
        },
    },
    Row {
        name: "Group::join",
        prepare: |client, path| {
            let group = client.group(path);
            Box::new(move || done(group.join("data").wait().map(std::mem::forget)))
        },
    },
    Row {
        name: "Group::members",
        prepare: |client, path| {
            let group = client.group(path);
            std::mem::forget(group.join("data").wait().unwrap());
            Box::new(move || told(group.members().wait().map(|members| members.len())))
        },
    },
    Row {
        name: "Group::watch_members",
        prepare: |client, path| {
            let group = client.group(path);
            std::mem::forget(group.join("data").wait().unwrap());
            Box::new(move || {
                let members = group.watch_members().wait_timeout(TIMEOUT);
                let members = members.expect("it is answered in time").expect("it goes on");
                told(members.map(|members| members.len()))
            })
        },
    },
    Row {
        name: "Membership::leave",
        prepare: |client, path| {
            let membership = client.group(path).join("data").wait().unwrap();
            Box::new(move || told(membership.leave().wait()))
        },
    },
    Row {
        name: "Latch::set",
        prepare: |client, path| {
            let latch = client.latch(path);
            Box::new(move || told(latch.set(3).wait()))
        },
    },
    Row {
        name: "Latch::count_down",
        prepare: |client, path| {
            let latch = client.latch(path);
            latch.set(3).wait().unwrap();
            Box::new(move || told(latch.count_down().wait()))
        },
    },
    Row {
        name: "Latch::left",
        prepare: |client, path| {
            let latch = client.latch(path);
            latch.set(3).wait().unwrap();
            Box::new(move || told(latch.left().wait()))
        },
    },
    Row {
        name: "Latch::opened",
        prepare: |client, path| {
            let latch = client.latch(path);
            latch.set(0).wait().unwrap();
            Box::new(move || told(latch.opened().wait()))
        },
    },
    Row {
        name: "WorkQueue::put",
        prepare: |client, path| {
            let queue = client.queue(path);
            Box::new(move || told(queue.put("data").wait()))
        },
    },
    Row {
        name: "WorkQueue::put_with_priority",
        prepare: |client, path| {
            let queue = client.queue(path);
            Box::new(move || told(queue.put_with_priority(7, "data").wait()))
        },
    },
    Row {
        name: "WorkQueue::peek",
        prepare: |client, path| {
            let queue = client.queue(path);
            queue.put("data").wait().unwrap();
            Box::new(move || told(queue.peek().wait()))
        },
    },
    Row {
        name: "WorkQueue::take",
        prepare: |client, path| {
            let queue = client.queue(path);
            queue.put("data").wait().unwrap();
            Box::new(move || done(queue.take().wait().map(std::mem::forget)))
        },
    },
    Row {
        name: "WorkQueue::try_take",
        prepare: |client, path| {
            let queue = client.queue(path);
            queue.put("data").wait().unwrap();
            Box::new(move || {
                let delivery = queue.try_take().wait();
                told(delivery.map(|delivery| delivery.map(std::mem::forget)))
            })
        },
    },
    Row {
        name: "Delivery::done",
        prepare: |client, path| {
            let queue = client.queue(path);
            queue.put("data").wait().unwrap();
            let delivery = queue.take().wait().unwrap();
            Box::new(move || told(delivery.done().wait()))
        },
    },
];

/// How many znodes are at and below a path, and how long the data of each is that no session owns.
fn tree(bench: &Bench) -> (usize, Vec<usize>) {
    let (mut znodes, mut lengths, mut paths) = (0, Vec::new(), vec![around(bench).to_owned()]);
    while let Some(path) = paths.pop() {
        // It may be gone by now.
        let Ok(names) = bench.ask(|raw| raw.children(&path)) else { continue };
        let Ok(data) = bench.ask(|raw| raw.get_data(&path)) else { continue };
        znodes += 1;
        lengths.extend((bench.owner(&path) == Some(0)).then_some(data.0.len()));
        paths.extend(names.iter().map(|name| format!("{path}/{name}")));
    }
    lengths.sort_unstable();
    (znodes, lengths)
}

/// Which way a frame goes.
type Way = fn(Ops) -> Rule;

/// What has come of an operation.
struct Outcome {
    answer: Result<String, Code>,
    bench: Bench,
    /// Whose session owns what is there.
    _client: Client,
}

/// What comes of the operation if `lost` picks the frame that is lost; `None` if there is no such frame.
fn outcome(row: &Row, lost: Option<(Way, usize)>) -> Option<Outcome> {
    let bench = Bench::shared();
    let client = bench.client();
    let operation = (row.prepare)(&client, &bench.path);
    let loss = lost.map(|(way, number)| {
        let frame = way(Ops::any()).path_prefix(around(&bench)).nth(number as u64);
        (bench.proxy.on(frame, Action::Reset), number)
    });
    // Requests of the preparation may still pass. The rule for the loss counts at least those that are counted here.
    let before = asked(&bench).len();
    let answer = operation();
    if let Some((loss, number)) = loss {
        if asked(&bench).len() - before < number {
            return None;
        }
        loss.wait_hits(1, TIMEOUT).unwrap();
    }
    Some(Outcome { answer, bench, _client: client })
}

#[test]
fn every_operation_answers_and_does_the_same_whichever_of_its_frames_is_lost() {
    let ways: [(&str, Way); 2] = [("request", Rule::request), ("reply", Rule::reply)];
    for row in ROWS {
        let undisturbed = outcome(row, None).unwrap();
        for (what, way) in ways {
            let disturbed = (1..).map_while(|number| outcome(row, Some((way, number))));
            let disturbed: Vec<_> = disturbed.collect();
            assert!(!disturbed.is_empty(), "{}", row.name);
            for (number, disturbed) in (1..).zip(disturbed) {
                let what = format!("{}, {what} {number}", row.name);
                assert_eq!(disturbed.answer, undisturbed.answer, "{what}");
                eventually(&what, || tree(&disturbed.bench) == tree(&undisturbed.bench));
            }
        }
    }
}

#[test]
fn every_operation_of_a_client_that_is_closed_says_so_and_changes_nothing() {
    for row in ROWS {
        let bench = Bench::shared();
        let client = bench.direct();
        let operation = (row.prepare)(&client, &bench.path);
        client.close().wait().unwrap();
        let before = tree(&bench);
        let expected = match row.name {
            // Members go with their session.
            "Membership::leave" => Ok("()".to_owned()),
            // So do claims, and others may have the element.
            "Delivery::done" => Err(Code::SESSION_EXPIRED),
            _ => Err(Code::INVALID_STATE),
        };
        assert_eq!(operation(), expected, "{}", row.name);
        assert_eq!(tree(&bench), before, "{}", row.name);
    }
}

#[test]
fn what_a_recipe_makes_has_the_access_control_list_that_was_given() {
    let bench = Bench::shared();
    let client = bench.direct();
    let all_but_admin = Permissions::ALL.difference(Permissions::ADMIN);
    let acl = vec![Acl::new(all_but_admin, "world", "anyone")];
    let at = |name: &str| format!("{}/{name}", bench.path);
    client.barrier(&at("barrier")).acl(acl.clone()).set().wait().unwrap();
    client.counter(&at("counter")).acl(acl.clone()).set(1).wait().unwrap();
    client.latch(&at("latch")).acl(acl.clone()).set(1).wait().unwrap();
    client.queue(&at("queue")).acl(acl.clone()).put("data").wait().unwrap();
    let double = client.double_barrier(&at("double"), 1).acl(acl.clone());
    let _entered = double.enter().wait().unwrap();
    let _member = client.group(&at("group")).acl(acl.clone()).join("data").wait().unwrap();
    let mut paths = vec![bench.path.clone()];
    while let Some(path) = paths.pop() {
        assert_eq!(client.get_acl(&path).wait().unwrap().entries, acl, "{path}");
        let children = client.children(&path).wait().unwrap().names;
        paths.extend(children.iter().map(|child| format!("{path}/{child}")));
    }
}
