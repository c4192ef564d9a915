//! The holds of a history, put together from its lines.

use std::collections::{BTreeMap, HashMap};

use crate::line::{Event, Kind, Line, Operation, Outcome};

/// A moment, and the number of the line that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub at: i64,
    pub line: usize,
}

/// One successful acquire, and what its process said about it.
#[derive(Clone, Debug)]
pub struct Hold {
    pub process: String,
    pub kind: Kind,
    pub token: i64,
    pub permits: usize,
    pub called: Mark,
    pub returned: Mark,
    /// Looks that said "held", and calls of fenced writes that were done.
    pub looks: Vec<Mark>,
    pub release_called: Option<Mark>,
    /// The release has returned, whatever its outcome.
    pub release_returned: Option<Mark>,
    /// The release has succeeded.
    pub released: Option<Mark>,
    /// The element of a work queue was removed.
    pub finished: bool,
}

impl Hold {
    /// The first and the last look that said "held".
    pub fn span(&self) -> Option<(Mark, Mark)> {
        Some((*self.looks.iter().min()?, *self.looks.iter().max()?))
    }

    /// From its return to its last look: the hold lasted at least that long.
    pub fn certain_until(&self) -> i64 {
        self.span().map_or(self.returned.at, |(_, last)| last.at.max(self.returned.at))
    }
}

/// When an operation was called, and when it returned, if it did.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    pub from: i64,
    pub to: i64,
}

/// What happened to one lock.
#[derive(Debug, Default)]
pub struct Lock {
    pub holds: Vec<Hold>,
    /// When claims were taken from their owners on purpose.
    pub breaks: Vec<Interval>,
    /// A semaphore's limits, and when each may have come into force.
    pub limits: Vec<(Interval, usize)>,
    /// When an element may have been put.
    pub puts: Vec<Interval>,
    /// Looks that do not count, because the claim was broken before them.
    pub uncounted: usize,
}

/// What a file tells.
#[derive(Debug, Default)]
pub struct History {
    pub locks: BTreeMap<String, Lock>,
    /// Calls by kind.
    pub calls: BTreeMap<Kind, usize>,
    /// Calls without a return, or whose outcome is unknown.
    pub open: usize,
}

impl History {
    /// # Errors
    /// The first line that can't be read, and why.
    pub fn read(text: &str) -> Result<History, String> {
        let mut history = History::default();
        let mut calls = HashMap::new();
        let mut current = HashMap::new();
        // The last line may be torn: its process was killed.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (number, text) in (1..).zip(whole.lines()) {
            let line = serde_json::from_str(text).map_err(|error| error.to_string());
            line.and_then(|line| history.add(line, number, &mut calls, &mut current))
                .map_err(|why| format!("line {number}: {why}"))?;
        }
        history.open += calls.len();
        for ((_, path, operation), call) in calls {
            history.leave_open(&path, operation, &call);
        }
        history.locks.values_mut().for_each(Lock::cut);
        Ok(history)
    }

    fn add(
        &mut self,
        line: Line,
        number: usize,
        calls: &mut Calls,
        current: &mut Current,
    ) -> Result<(), String> {
        let mark = Mark { at: line.at, line: number };
        let lock = self.locks.entry(line.path.clone()).or_default();
        let owner = (line.process.clone(), line.path.clone());
        if line.event == Event::Held {
            let token = line.token.ok_or("a look needs a token")?;
            let hold = current.get(&owner).map(|place| &mut lock.holds[*place]);
            let hold =
                hold.filter(|hold| hold.token == token).ok_or("no acquire got that token")?;
            hold.looks.push(mark);
            return Ok(());
        }
        let operation = line.operation.ok_or("a call or return needs an operation")?;
        let key = (line.process.clone(), line.path.clone(), operation);
        if line.event == Event::Call {
            *self.calls.entry(line.kind).or_default() += 1;
            if matches!(operation, Operation::Release | Operation::Finish) {
                if let Some(place) = current.get(&owner) {
                    lock.holds[*place].release_called = Some(mark);
                }
            }
            let call = Call { mark, permits: line.permits.unwrap_or(1), limit: line.limit };
            return match calls.insert(key, call) {
                Some(_) => Err("the call before it has not returned".to_owned()),
                None => Ok(()),
            };
        }
        let call = calls.remove(&key).ok_or("a return without a call")?;
        let outcome = line.outcome.ok_or("a return needs an outcome")?;
        self.open += usize::from(outcome == Outcome::Unknown);
        let interval = Interval { from: call.mark.at, to: mark.at };
        match (operation, outcome) {
            (Operation::Acquire, Outcome::Done) => {
                let token = line.token.ok_or("an acquire that is done needs a token")?;
                current.insert(owner, lock.holds.len());
                lock.holds.push(Hold {
                    process: line.process,
                    kind: line.kind,
                    token,
                    permits: call.permits,
                    called: call.mark,
                    returned: mark,
                    looks: Vec::new(),
                    release_called: None,
                    release_returned: None,
                    released: None,
                    finished: false,
                });
            }
            (Operation::Release | Operation::Finish, outcome) => {
                let hold = current.get(&owner).map(|place| &mut lock.holds[*place]);
                let hold = hold.ok_or("a release without a hold")?;
                hold.release_returned = Some(mark);
                hold.released = (outcome == Outcome::Done).then_some(mark);
                hold.finished = operation == Operation::Finish && outcome == Outcome::Done;
                if hold.finished {
                    // The servers refuse it once the claim is gone.
                    hold.looks.push(call.mark);
                }
            }
            (Operation::Write, Outcome::Done) => {
                if let Some(place) = current.get(&owner) {
                    lock.holds[*place].looks.push(call.mark);
                }
            }
            (_, Outcome::Unknown) => self.leave_open(&line.path, operation, &call),
            (Operation::Break, Outcome::Done) => lock.breaks.push(interval),
            (Operation::Put, Outcome::Done) => lock.puts.push(interval),
            (Operation::Limit, Outcome::Done) => {
                lock.limits.push((interval, call.limit.ok_or("a limit needs a number")?));
            }
            (_, Outcome::Refused) => {}
        }
        Ok(())
    }

    /// An operation that may take effect at any time after its call. Only what allows more than before matters:
    /// an acquire or a release that may never happen constrains nothing.
    fn leave_open(&mut self, path: &str, operation: Operation, call: &Call) {
        let lock = self.locks.entry(path.to_owned()).or_default();
        let interval = Interval { from: call.mark.at, to: i64::MAX };
        match operation {
            Operation::Break => lock.breaks.push(interval),
            Operation::Put => lock.puts.push(interval),
            Operation::Limit => lock.limits.extend(call.limit.map(|limit| (interval, limit))),
            _ => {}
        }
    }
}

/// A call that has not returned yet.
#[derive(Debug)]
struct Call {
    mark: Mark,
    permits: usize,
    limit: Option<usize>,
}

/// By process, path and operation.
type Calls = HashMap<(String, String, Operation), Call>;
/// The last hold of each process, by path.
type Current = HashMap<(String, String), usize>;

impl Lock {
    /// A hold whose claim may have been taken by a break does not hear of it at once: its later looks do not count.
    /// Its late release may delete the next claim of that name, so it counts as a break too.
    fn cut(&mut self) {
        let mut was_cut = vec![false; self.holds.len()];
        let mut next = 0;
        while let Some(taken) = self.breaks.get(next).copied() {
            next += 1;
            for (hold, was_cut) in self.holds.iter_mut().zip(&mut was_cut) {
                let is_over =
                    hold.release_returned.is_some_and(|returned| returned.at < taken.from);
                if is_over || hold.called.at > taken.to {
                    continue;
                }
                let before = hold.looks.len();
                hold.looks.retain(|look| look.at < taken.from);
                self.uncounted += before - hold.looks.len();
                if let (false, Some(from)) = (*was_cut, hold.release_called) {
                    let to = hold.release_returned.unwrap_or(from).at;
                    self.breaks.push(Interval { from: from.at, to });
                }
                *was_cut = true;
            }
        }
    }
}
