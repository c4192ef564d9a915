//! The specifications: which holds may follow each other.
//!
//! A lock's state is its holders. An acquire takes effect between its call and its return; a hold ends no earlier than
//! the last look that said "held". Tokens grow from one hold to the next that excludes it, so they give the order,
//! and one pass that lets each hold begin as early as it can finds an order of all operations, if there is one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::hold::{History, Hold, Lock, Mark};
use crate::line::Kind;
use crate::semaphore;

/// Two holds that no order of the operations explains, or one that lasts too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Such as "two holders".
    pub what: &'static str,
    /// The lock.
    pub path: String,
    /// The events of the violation in the order of time, one text for each.
    pub story: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)?;
        self.story.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// What a history shows.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Holds by kind.
    pub holds: BTreeMap<&'static str, usize>,
    /// Calls by kind.
    pub calls: BTreeMap<&'static str, usize>,
    /// Calls that may have taken effect or not.
    pub open: usize,
    /// Looks that do not count, because another client broke the hold.
    pub uncounted: usize,
    /// None in a history that the specifications explain.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, calls) in &self.calls {
            let holds = self.holds.get(kind).unwrap_or(&0);
            writeln!(f, "{kind:<10} {calls:>9} calls, {holds} holds")?;
        }
        writeln!(f, "open       {:>9} calls without a return, or of unknown outcome", self.open)?;
        writeln!(f, "uncounted  {:>9} looks after another client broke the hold", self.uncounted)?;
        write!(f, "violations {:>9}", self.violations.len())?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// Checks the text of a history.
///
/// # Errors
/// The first line that can't be read, and why.
pub fn check(text: &str) -> Result<Verdict, String> {
    let history = History::read(text)?;
    let calls = history.calls.iter().map(|(kind, count)| (kind.name(), *count)).collect();
    let mut verdict = Verdict { calls, open: history.open, ..Verdict::default() };
    for (path, lock) in &history.locks {
        verdict.uncounted += lock.uncounted;
        for hold in &lock.holds {
            *verdict.holds.entry(hold.kind.name()).or_default() += 1;
        }
        let mut found = repeated(lock);
        found.extend(lock.holds.iter().filter_map(outlives_its_release));
        if lock.holds.iter().any(|hold| hold.kind == Kind::Semaphore) {
            found.extend(semaphore::check(lock));
        } else {
            found.extend(exclusion(lock));
        }
        found.extend(deliveries(lock));
        let violation = |(what, story): Found| Violation { what, path: path.clone(), story };
        verdict.violations.extend(found.into_iter().map(violation));
    }
    Ok(verdict)
}

/// The name of a violation, and its story.
pub type Found = (&'static str, Vec<String>);

fn repeated(lock: &Lock) -> Vec<Found> {
    let mut seen: HashMap<i64, &Hold> = HashMap::new();
    let mut found = Vec::new();
    for hold in &lock.holds {
        if let Some(before) = seen.insert(hold.token, hold) {
            found.push(("two holds have one token", story(&[before, hold])));
        }
    }
    found
}

fn outlives_its_release(hold: &Hold) -> Option<Found> {
    let (released, (_, last)) = (hold.released?, hold.span()?);
    (last.at > released.at).then(|| ("held after its release returned", story(&[hold])))
}

/// Holds that exclude each other come one after the other, in the order of their tokens.
fn exclusion(lock: &Lock) -> Vec<Found> {
    let mut holds: Vec<&Hold> = lock.holds.iter().collect();
    holds.sort_by_key(|hold| hold.token);
    // The end of the last hold so far, of those that only read and of the others.
    let mut ends: [Option<(i64, &Hold)>; 2] = [None, None];
    let mut found = Vec::new();
    for hold in holds {
        let rivals = ends.iter().flatten().filter(|(_, before)| before.kind.excludes(hold.kind));
        let rival = rivals.max_by_key(|(end, _)| *end).copied();
        let mut begin = hold.called.at.max(rival.map_or(i64::MIN, |(end, _)| end));
        if let Some((_, before)) = rival.filter(|_| begin > hold.returned.at) {
            begin = hold.returned.at;
            let overlap = before.returned.at <= hold.certain_until()
                && hold.returned.at <= before.certain_until();
            let what = if overlap { "two holders" } else { "the token did not grow" };
            found.push((what, story(&[before, hold])));
        }
        let end = hold.span().map_or(begin, |(_, last)| last.at.max(begin));
        let class = &mut ends[usize::from(hold.kind == Kind::Read)];
        if class.is_none_or(|(latest, _)| latest < end) {
            *class = Some((end, hold));
        }
    }
    found
}

/// An element of a work queue is delivered after it was put, and never again once it was removed.
fn deliveries(lock: &Lock) -> Vec<Found> {
    let mut holds: Vec<&Hold> = lock.holds.iter().filter(|hold| hold.kind == Kind::Work).collect();
    holds.sort_by_key(|hold| hold.token);
    let mut found = Vec::new();
    for (index, hold) in holds.iter().enumerate() {
        if lock.puts.iter().all(|put| put.from > hold.returned.at) {
            found.push(("delivered before it was put", story(&[hold])));
        }
        if let Some(before) = holds[..index].iter().rfind(|before| before.finished) {
            found.push(("delivered after it was removed", story(&[before, hold])));
        }
    }
    found
}

/// The events of these holds in the order of time.
pub fn story(holds: &[&Hold]) -> Vec<String> {
    let mut events: Vec<(Mark, String)> = Vec::new();
    for hold in holds {
        let mut tell = |mark: Option<Mark>, what: &str| {
            let who = format!("{} ({} {:#x})", hold.process, hold.kind.name(), hold.token);
            events.extend(mark.map(|mark| (mark, format!("{who} {what}"))));
        };
        tell(Some(hold.called), "calls acquire");
        tell(Some(hold.returned), "has acquired");
        tell(hold.span().map(|(first, _)| first), "holds: first look");
        tell(hold.span().map(|(_, last)| last), "holds: last look");
        tell(hold.release_called, "calls release");
        tell(hold.released, "has released");
    }
    events.sort();
    let start = events.first().map_or(0, |(mark, _)| mark.at);
    let line = |(mark, what): &(Mark, String)| {
        format!("line {:>6}  +{:.6} s  {what}", mark.line, (mark.at - start) as f64 / 1e9)
    };
    events.iter().map(line).collect()
}
