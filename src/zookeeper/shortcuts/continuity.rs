//! Consecutive numbers: when a claim holds without a listing.
//!
//! Each child that is created in a directory gets the next number. If a new claim has the number after that of the last
//! claim that this client held, no other claim came in between. Those before the last claim were gone when it held, and it
//! is gone itself. So the new claim is the first.
//!
//! Another directory at the same path counts from zero again and may reach any number. So the directory is watched, and
//! what is known is believed until an event comes, on one connection: there the event comes before the reply to a create
//! in another directory. If the number is not the next one, a listing decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::{TrustedSession, Watch, WatchFor, Watched};
use crate::zookeeper::name;

#[derive(Default)]
pub(crate) struct Continuity {
    directory: Directory,
    held: Option<Held>,
    /// Whether the last two claims of ours that held had numbers that follow each other: the next will, too.
    is_usual: bool,
}

#[derive(Default)]
pub(crate) enum Directory {
    #[default]
    Unwatched,
    Asked,
    Watched(Box<WatchedDirectory>),
}

pub(crate) struct WatchedDirectory {
    connection: Connection,
    /// The transaction that made it.
    czxid: i64,
    watch: Watch,
}

struct Held {
    session: i64,
    /// In which directory, by the transaction that made that.
    directory: i64,
    number: i32,
    /// Whether it is gone, once that is certain.
    gone: Arc<AtomicBool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connection(i64, u64);

pub(crate) struct OwnClaim<'a> {
    pub(crate) session: &'a TrustedSession,
    pub(crate) path: &'a str,
    /// In which directory, by the transaction that made that.
    pub(crate) directory: i64,
    /// Whether it is gone, once that is certain.
    pub(crate) gone: &'a Arc<AtomicBool>,
}

impl Connection {
    pub(crate) fn of(session: &TrustedSession) -> Connection {
        Connection(session.id(), session.connection())
    }
}

impl Continuity {
    /// Whether the next claim is probably given the next number, and would then be known to be the first.
    pub(crate) fn is_expected(&mut self, session: &TrustedSession) -> bool {
        let is_held = self.held.as_ref().is_some_and(|held| held.session == session.id());
        self.is_usual && is_held && self.is_watched(session).is_some()
    }

    pub(crate) fn is_first(&mut self, own: &OwnClaim) -> bool {
        let is_watched = self.is_in_its_directory(own);
        let follows = self.is_next(own);
        let is_gone = self.is_gone();
        // Somebody came in between: most likely he comes again.
        self.is_usual &= follows;
        is_watched && follows && is_gone
    }

    /// A claim of ours holds, so those with lower numbers are gone. Gives whether the directory should be watched
    /// from now on.
    pub(crate) fn holds(&mut self, own: &OwnClaim, may_wait: bool) -> bool {
        self.is_usual = self.is_next(own);
        self.held = name::number_in_turn(own.path).map(|number| Held {
            session: own.session.id(),
            directory: own.directory,
            number,
            gone: Arc::clone(own.gone),
        });
        // An adopted handle may lose its connection unheard.
        let may_matter = self.is_usual || may_wait;
        let is_wanted = may_matter && !own.session.is_adopted();
        if is_wanted && self.is_watched(own.session).is_none() {
            return !matches!(
                std::mem::replace(&mut self.directory, Directory::Asked),
                Directory::Asked
            );
        }
        false
    }

    /// Whether a new claim is in the directory that it is named for: that was there before, and is still.
    pub(crate) fn is_in_its_directory(&mut self, own: &OwnClaim) -> bool {
        self.is_watched(own.session) == Some(own.directory)
    }

    /// Whether a single number was given between a new claim's and that of the last one that held.
    pub(crate) fn is_behind_one(&mut self, own: &OwnClaim) -> bool {
        self.is_in_its_directory(own) && self.is_later_by(own, 2) && self.is_gone()
    }

    /// Whether a claim has the number after that of the last one that held.
    fn is_next(&self, own: &OwnClaim) -> bool {
        self.is_later_by(own, 1)
    }

    fn is_later_by(&self, own: &OwnClaim, numbers: i32) -> bool {
        self.held.as_ref().is_some_and(|held| {
            let number = held.number.wrapping_add(numbers);
            (held.session, held.directory) == (own.session.id(), own.directory)
                && name::number_in_turn(own.path) == Some(number)
        })
    }

    fn is_gone(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.gone.load(Ordering::Acquire))
    }

    pub(crate) fn watches(&mut self, directory: Directory) {
        self.directory = directory;
    }

    /// The directory that is watched on this connection, by the transaction that made it: it is still there.
    fn is_watched(&mut self, session: &TrustedSession) -> Option<i64> {
        let Directory::Watched(it) = &mut self.directory else { return None };
        if it.connection == Connection::of(session) && it.watch.try_event().is_none() {
            return Some(it.czxid);
        }
        self.directory = Directory::Unwatched;
        None
    }
}

pub(crate) async fn watch(session: &TrustedSession, path: &str) -> Directory {
    let connection = Connection::of(session);
    if !session.has_room_to_watch(path, WatchFor::Deletion) {
        return Directory::Unwatched;
    }
    match session.get_and_watch(path).await {
        Ok(Watched { value, watch }) => {
            let czxid = value.stat.czxid;
            Directory::Watched(Box::new(WatchedDirectory { connection, czxid, watch }))
        }
        // The next claim that holds has it watched again.
        Err(_) => Directory::Unwatched,
    }
}
