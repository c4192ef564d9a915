//! What one process says it believed, put together from its journal.

use std::collections::HashMap;

use crate::clock::Moment;
use crate::journal::{Entry, Event, State, Written};

/// An attempt to get a lock.
#[derive(Clone, Debug)]
pub struct Ask {
    pub process: u32,
    pub thread: u16,
    pub lock: usize,
    pub how: String,
    pub at: Moment,
    pub ended: Option<Moment>,
    /// The error that it should not have ended with.
    pub failed: Option<String>,
}

/// A fenced write, from the writer's side.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub number: u32,
    pub sent: Moment,
    pub written: Written,
}

/// A holding of a lock, from the holder's side.
#[derive(Clone, Debug)]
pub struct Belief {
    pub process: u32,
    pub thread: u16,
    pub lock: usize,
    pub token: i64,
    pub session: i64,
    /// When the acquire had ended; the first look follows it.
    pub got: Moment,
    pub looks: Vec<(Moment, State)>,
    pub told: Option<Moment>,
    pub writes: Vec<Attempt>,
    pub release: Option<Moment>,
    pub released: Option<(Moment, String)>,
}

impl Belief {
    /// The looks at which it was not lost.
    pub fn believed(&self) -> impl Iterator<Item = Moment> {
        self.looks.iter().filter(|(_, state)| *state != State::Lost).map(|(at, _)| *at)
    }

    /// The last of these until then.
    pub fn last_believed(&self, until: Moment) -> Option<Moment> {
        self.believed().filter(|look| *look <= until).last()
    }

    /// When the holder first knew that it has lost it.
    pub fn knew_lost(&self) -> Option<Moment> {
        let lost = self.looks.iter().find(|(_, state)| *state == State::Lost).map(|(at, _)| *at);
        [lost, self.told].into_iter().flatten().min()
    }

    /// When the holder first knew that it holds no more, or gave it up.
    pub fn knew(&self) -> Option<Moment> {
        [self.knew_lost(), self.release].into_iter().flatten().min()
    }

    /// Whether it saw itself lose the lock.
    pub fn is_lost(&self) -> bool {
        self.told.is_some() || self.looks.iter().any(|(_, state)| *state == State::Lost)
    }
}

#[derive(Debug, Default)]
pub struct Account {
    pub asks: Vec<Ask>,
    pub beliefs: Vec<Belief>,
    /// Sessions whose end was reported, and when.
    pub closed: Vec<(i64, Moment)>,
    /// When the process stood still.
    pub stalls: Vec<(Moment, Moment)>,
    /// Lines that make no sense where they stand.
    pub strange: Vec<String>,
}

impl Account {
    /// Whether the process stood still at some time between these two.
    pub fn stood_still(&self, from: Moment, until: Moment) -> bool {
        self.stalls.iter().any(|(since, end)| *since <= until && *end >= from)
    }

    pub fn of(process: u32, journal: &[Entry]) -> Account {
        let mut account = Account::default();
        let mut asking: HashMap<u16, usize> = HashMap::new();
        let mut holding: HashMap<u16, usize> = HashMap::new();
        for Entry { at, thread, event } in journal {
            let (at, thread) = (*at, *thread);
            if let Event::Stalled { since } = event {
                account.stalls.push((*since, at));
                continue;
            }
            if let Event::Closed { session } = event {
                account.closed.push((*session, at));
                continue;
            }
            if let Event::Limits { .. } | Event::Limited { .. } = event {
                // The log says which limits there were.
                continue;
            }
            if let Event::Ask { lock, how, .. } = event {
                asking.insert(thread, account.asks.len());
                let (lock, how) = (*lock, how.clone());
                let ask = Ask { process, thread, lock, how, at, ended: None, failed: None };
                account.asks.push(ask);
                continue;
            }
            let ask = asking.get(&thread).map(|index| &mut account.asks[*index]);
            let belief = holding.get(&thread).map(|index| &mut account.beliefs[*index]);
            match (event, ask, belief) {
                (Event::None { .. }, Some(ask), _) => ask.ended = Some(at),
                (Event::Failed { why }, Some(ask), _) => {
                    ask.ended = Some(at);
                    ask.failed = Some(why.clone());
                }
                (Event::Got { token, session, state }, Some(ask), _) => {
                    ask.ended = Some(at);
                    holding.insert(thread, account.beliefs.len());
                    let (token, session, lock) = (*token, *session, ask.lock);
                    account.beliefs.push(Belief {
                        process,
                        thread,
                        lock,
                        token,
                        session,
                        got: at,
                        looks: vec![(at, *state)],
                        told: None,
                        writes: Vec::new(),
                        release: None,
                        released: None,
                    });
                }
                (Event::Look { state }, _, Some(belief)) => belief.looks.push((at, *state)),
                (Event::Told, _, Some(belief)) => belief.told = belief.told.or(Some(at)),
                (Event::Wrote { number, sent, written }, _, Some(belief)) => {
                    let (number, sent, written) = (*number, *sent, *written);
                    belief.writes.push(Attempt { number, sent, written });
                }
                (Event::Release, _, Some(belief)) => belief.release = Some(at),
                (Event::Released { why }, _, Some(belief)) => {
                    belief.released = Some((at, why.clone()));
                }
                (event, ..) => account.strange.push(format!("client {process}: {event:?}")),
            }
        }
        account
    }
}
