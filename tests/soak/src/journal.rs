//! What a client process writes down of what it believes, line by line, while it believes it.
//!
//! Each line is one write to a file that is only appended to, so the lines of a process that is
//! killed or frozen are all there but perhaps for the end of the last one. A line is the time on
//! the shared clock, the session's thread, a word, and what the word needs, parted by tabs.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use zklock::GuardState;

use crate::clock::Moment;

/// One line: what `thread` of the process knew at `at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Moment,
    pub thread: u16,
    pub event: Event,
}

/// What became of a fenced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The server has confirmed it.
    Done,
    /// It was certainly not done.
    Refused,
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Asks for a lock; `how` says in which way, and `part` to read or write, or for how many permits.
    Ask { lock: usize, how: String, part: String },
    /// Begins to set a semaphore's limit.
    Limits { lock: usize, limit: u32 },
    /// That has ended.
    Limited { written: Written },
    /// The ask has ended without the lock, as it may: a timeout, a refusal to the one that only
    /// tries, an attempt that was dropped.
    None { why: String },
    /// The ask has ended with an error that it should not end with.
    Failed { why: String },
    /// Has the lock. The time is from before the look, and after the acquire.
    Got { token: i64, session: i64, state: State },
    /// Looked at the guard; the time is from before the look.
    Look { state: State },
    /// The signal of the loss has come.
    Told,
    /// The fenced write number `number` of this tenure has ended; it was sent at `sent`.
    Wrote { number: u32, sent: Moment, written: Written },
    /// Begins to release.
    Release,
    /// The release has ended; empty when it went well.
    Released { why: String },
    /// The close of a client whose session this is has reported success.
    Closed { session: i64 },
    /// The process stood still from `since` on: frozen, or without a processor.
    Stalled { since: Moment },
}

impl Event {
    /// Whether it is no single thread's.
    pub fn is_of_the_process(&self) -> bool {
        matches!(self, Event::Stalled { .. })
    }
}

/// A guard's state, as far as believing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Held,
    Suspended,
    Lost,
}

impl From<GuardState> for State {
    fn from(state: GuardState) -> State {
        match state {
            GuardState::Held => State::Held,
            GuardState::Suspended => State::Suspended,
            // What is not known to be a sort of holding is none.
            _ => State::Lost,
        }
    }
}

impl State {
    const NAMES: [(State, &'static str); 3] =
        [(State::Held, "held"), (State::Suspended, "suspended"), (State::Lost, "lost")];
}

impl Written {
    const NAMES: [(Written, &'static str); 3] =
        [(Written::Done, "done"), (Written::Refused, "refused"), (Written::Unknown, "unknown")];
}

fn name<T: Copy + PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(one, _)| *one == value).map_or("", |(_, name)| name)
}

fn named<T: Copy>(names: &[(T, &'static str)], word: &str) -> Option<T> {
    names.iter().find(|(_, name)| *name == word).map(|(value, _)| *value)
}

/// One line, whatever an error message holds.
fn flat(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t", self.at.0, self.thread)?;
        match &self.event {
            Event::Ask { lock, how, part } => write!(f, "ask\t{lock}\t{how}\t{part}"),
            Event::Limits { lock, limit } => write!(f, "limits\t{lock}\t{limit}"),
            Event::Limited { written } => write!(f, "limited\t{}", name(&Written::NAMES, *written)),
            Event::None { why } => write!(f, "none\t{}", flat(why)),
            Event::Failed { why } => write!(f, "failed\t{}", flat(why)),
            Event::Got { token, session, state } => {
                write!(f, "got\t{token}\t{session}\t{}", name(&State::NAMES, *state))
            }
            Event::Look { state } => write!(f, "look\t{}", name(&State::NAMES, *state)),
            Event::Told => write!(f, "told"),
            Event::Wrote { number, sent, written } => {
                write!(f, "wrote\t{number}\t{}\t{}", sent.0, name(&Written::NAMES, *written))
            }
            Event::Release => write!(f, "release"),
            Event::Released { why } => write!(f, "released\t{}", flat(why)),
            Event::Closed { session } => write!(f, "closed\t{session}"),
            Event::Stalled { since } => write!(f, "stalled\t{}", since.0),
        }
    }
}

impl Entry {
    pub fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split('\t');
        let at = Moment(words.next()?.parse().ok()?);
        let thread = words.next()?.parse().ok()?;
        let word = words.next()?;
        let mut next = || words.next();
        let event = match word {
            "ask" => Event::Ask {
                lock: next()?.parse().ok()?,
                how: next()?.to_owned(),
                part: next()?.to_owned(),
            },
            "limits" => Event::Limits { lock: next()?.parse().ok()?, limit: next()?.parse().ok()? },
            "limited" => Event::Limited { written: named(&Written::NAMES, next()?)? },
            "none" => Event::None { why: next()?.to_owned() },
            "failed" => Event::Failed { why: next()?.to_owned() },
            "got" => Event::Got {
                token: next()?.parse().ok()?,
                session: next()?.parse().ok()?,
                state: named(&State::NAMES, next()?)?,
            },
            "look" => Event::Look { state: named(&State::NAMES, next()?)? },
            "told" => Event::Told,
            "wrote" => Event::Wrote {
                number: next()?.parse().ok()?,
                sent: Moment(next()?.parse().ok()?),
                written: named(&Written::NAMES, next()?)?,
            },
            "release" => Event::Release,
            "released" => Event::Released { why: next()?.to_owned() },
            "closed" => Event::Closed { session: next()?.parse().ok()? },
            "stalled" => Event::Stalled { since: Moment(next()?.parse().ok()?) },
            _ => return None,
        };
        Some(Entry { at, thread, event })
    }
}

/// The file of one process; its threads share it.
pub struct Journal {
    file: File,
}

impl Journal {
    /// # Errors
    /// Those of opening a file.
    pub fn open(path: &Path) -> io::Result<Journal> {
        Ok(Journal { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// Writes a line down, in one piece. A process that can't must not go on.
    pub fn note(&self, at: Moment, thread: u16, event: Event) {
        let line = format!("{}\n", Entry { at, thread, event });
        if let Err(error) = (&self.file).write_all(line.as_bytes()) {
            eprintln!("soak: journal: {error}");
            std::process::abort();
        }
    }
}

/// Reads a journal. The last line may be torn; any other that can't be read is an error.
///
/// # Errors
/// Those of reading a file, or which line is wrong.
pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .enumerate()
        .map(|(number, line)| {
            Entry::parse(line).ok_or_else(|| {
                let what = format!("{}:{}: no journal line", path.display(), number + 1);
                io::Error::new(io::ErrorKind::InvalidData, what)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_half_a_line_is_left_out() {
        let events = [
            Event::Ask { lock: 3, how: "within".to_owned(), part: String::new() },
            Event::Limits { lock: 3, limit: 4 },
            Event::Limited { written: Written::Unknown },
            Event::None { why: "timeout".to_owned() },
            Event::Failed { why: "no\tnode".to_owned() },
            Event::Got { token: 0x1_0000_0007, session: -5, state: State::Held },
            Event::Look { state: State::Suspended },
            Event::Told,
            Event::Wrote { number: 2, sent: Moment(8), written: Written::Refused },
            Event::Release,
            Event::Released { why: String::new() },
            Event::Stalled { since: Moment(7) },
        ];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        for event in &events {
            journal.note(Moment(42), 5, event.clone());
        }
        (&journal.file).write_all(b"43\t5\tgot\t12").unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.len(), events.len());
        for (entry, event) in read.iter().zip(&events) {
            let Event::Failed { .. } = event else {
                assert_eq!((entry.at, entry.thread, &entry.event), (Moment(42), 5, event));
                continue;
            };
            assert_eq!(entry.event, Event::Failed { why: "no node".to_owned() });
        }
    }
}
