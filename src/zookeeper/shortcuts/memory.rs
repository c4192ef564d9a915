//! The state that a client's acquires of one path share: knowledge about the path, and queries in flight.
//!
//! The knowledge may be outdated. It decides how an acquire begins and which requests it can skip, but
//! never that it holds.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::coalesced::Coalesced;
use super::continuity::{self, Continuity};
use crate::client::TrustedSession;
use crate::error::Result;
use crate::znode::Stat;
use crate::zookeeper::acquire::listing::Listing;
use crate::zookeeper::claim::lookup::{self, Found};
use crate::zookeeper::claim::sent_after::SentAfter;
use crate::zookeeper::kinds::limit::Limit;
use crate::zookeeper::name;

/// How many children that are no claims are known by name.
const DATA: usize = 100_000;

#[derive(Default)]
pub(crate) struct PathMemory {
    /// Whether the last acquire had to wait, so that the next one probably has to.
    contended: AtomicBool,
    known: Mutex<Known>,
    listings: Coalesced<Listing>,
    lookups: Coalesced<Found>,
    continuity: Mutex<Continuity>,
    claims: Mutex<Claims>,
}

/// The claims of this client on the path, for as long as somebody has them.
#[derive(Default)]
struct Claims {
    /// By the transactions that made them, in their order.
    made: Vec<Made>,
    /// Each that is sent and not answered yet has one.
    sent: Arc<()>,
}

struct Made {
    czxid: i64,
    kept: Weak<AtomicBool>,
    is_nobodys: bool,
}

impl Claims {
    fn kept(&self, czxid: i64) -> Option<&Made> {
        let found = self.made.binary_search_by_key(&czxid, |made| made.czxid);
        found.ok().map(|at| &self.made[at]).filter(|made| made.kept.strong_count() > 0)
    }
}

#[derive(Default)]
struct Known {
    /// The transaction that made the lock's directory; 0 where there is none, or it is not known. The
    /// rest is of that directory alone.
    directory: i64,
    /// The largest number that a claim of ours was given in it.
    last: Option<i32>,
    /// The last claim of ours that held, by the transaction that made it: no claim was before it. Not by
    /// its name: a claim that was sent before its directory was recreated may have that again.
    first: i64,
    /// How many permits there are, by the transaction that has said so.
    limit: Option<(i64, Limit)>,
    /// Children with names like claims, but of no session.
    data: BTreeSet<Box<str>>,
    /// For the next look-up: after which number the claims that it is for were sent.
    sent_after: SentAfter,
}

impl Known {
    fn enter(&mut self, directory: i64) {
        if self.directory != directory {
            let sent_after = self.sent_after;
            *self = Known { directory, sent_after, ..Known::default() };
        }
    }
}

impl PathMemory {
    pub(crate) fn is_contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed)
    }

    pub(crate) fn set_contended(&self, contended: bool) {
        self.contended.store(contended, Ordering::Relaxed);
    }

    pub(crate) fn directory(&self) -> i64 {
        self.known.lock().directory
    }

    pub(crate) fn saw_no_directory(&self) {
        self.known.lock().enter(0);
    }

    pub(crate) fn made_directory(&self, czxid: i64) {
        self.known.lock().enter(czxid);
    }

    fn saw(&self, listing: &Listing) {
        self.known.lock().enter(listing.directory.czxid);
    }

    /// A claim of ours was made in that directory. Other children say nothing of the numbers to come:
    /// anybody can make one with any number.
    pub(crate) fn saw_claim(&self, directory: i64, path: &str) {
        let mut known = self.known.lock();
        let number = name::sequence(path).filter(|number| {
            let is_later = known.last.is_none_or(|last| number.wrapping_sub(last) > 0);
            known.directory == directory && is_later && !name::is_out_of_turn(*number)
        });
        known.last = number.or(known.last);
    }

    /// A claim of ours holds: those before it are gone, and numbers before its own are not given again.
    pub(crate) fn saw_first(&self, czxid: i64) {
        self.known.lock().first = czxid;
    }

    pub(crate) fn continuity(&self) -> MutexGuard<'_, Continuity> {
        self.continuity.lock()
    }

    /// Has the lock's directory watched, for as long as somebody uses the lock.
    pub(crate) fn watch_directory(
        self: &Arc<Self>,
        session: TrustedSession,
        path: Arc<str>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let memory = Arc::downgrade(self);
        async move {
            let directory = continuity::watch(&session, &path).await;
            if let Some(memory) = memory.upgrade() {
                memory.continuity().watches(directory);
            }
        }
    }

    /// Whether all claims before this one are gone.
    pub(crate) fn was_first(&self, czxid: i64) -> bool {
        self.known.lock().first == czxid
    }

    /// A claim that is sent now will have a later number than this.
    pub(crate) fn sent_after(&self, directory: i64) -> SentAfter {
        let known = self.known.lock();
        match known.last.filter(|_| known.directory == directory) {
            Some(number) => SentAfter::Number { directory, number },
            None => SentAfter::Unknown,
        }
    }

    /// How many permits there were when the directory had this stat, if that is known.
    pub(crate) fn limit(&self, directory: &Stat) -> Option<Limit> {
        let known = self.known.lock();
        let (mzxid, limit) = known.limit.filter(|_| known.directory == directory.czxid)?;
        (mzxid == directory.mzxid).then_some(limit)
    }

    /// The directory said so when it had this stat.
    pub(crate) fn saw_limit(&self, directory: &Stat, limit: Limit) {
        let mut known = self.known.lock();
        known.enter(directory.czxid);
        known.limit = Some((directory.mzxid, limit));
    }

    /// The child is no claim, and as no session owns it, will be none.
    pub(crate) fn saw_data(&self, directory: i64, name: &str) {
        let mut known = self.known.lock();
        let is_given_once = name::number_in_turn(name).is_some();
        if known.directory == directory && is_given_once && known.data.len() < DATA {
            known.data.insert(name.into());
        }
    }

    pub(crate) fn is_data(&self, directory: i64, name: &str) -> bool {
        let known = self.known.lock();
        known.directory == directory && known.data.contains(name)
    }

    /// A claim was sent: for as long as this is kept, its reply is to come.
    pub(crate) fn sent(&self) -> Arc<()> {
        Arc::clone(&self.claims.lock().sent)
    }

    /// A claim was made by that transaction, and somebody has it for as long as this is kept. It says whether the
    /// claim is gone, once that is certain.
    pub(crate) fn made(&self, czxid: i64) -> Arc<AtomicBool> {
        self.keep(czxid, false)
    }

    /// As [`made`](PathMemory::made), of a claim that no acquire knows as its own. It is kept until it is deleted.
    pub(crate) fn made_for_nobody(&self, czxid: i64) -> Arc<AtomicBool> {
        self.keep(czxid, true)
    }

    fn keep(&self, czxid: i64, is_nobodys: bool) -> Arc<AtomicBool> {
        let kept = Arc::new(AtomicBool::new(false));
        let made = &mut self.claims.lock().made;
        if made.len() >= 64 && made.len().is_power_of_two() {
            made.retain(|made| made.kept.strong_count() > 0);
        }
        let of = Made { czxid, kept: Arc::downgrade(&kept), is_nobodys };
        match made.binary_search_by_key(&czxid, |made| made.czxid) {
            Ok(at) => made[at] = of,
            Err(at) => made.insert(at, of),
        }
        kept
    }

    /// Whether the claim that this transaction has made belongs to an acquire or a guard. `None` if a create
    /// without a reply yet may have made it.
    pub(crate) fn is_claim(&self, czxid: i64) -> Option<bool> {
        let claims = self.claims.lock();
        if claims.kept(czxid).is_some() {
            return Some(true);
        }
        (Arc::strong_count(&claims.sent) == 1).then_some(false)
    }

    /// Whether that claim is being deleted because nobody knows whose it is.
    pub(crate) fn is_nobodys(&self, czxid: i64) -> bool {
        self.claims.lock().kept(czxid).is_some_and(|made| made.is_nobodys)
    }

    /// The claims in the lock's directory, by a listing that is sent when this is first awaited, or later.
    pub(crate) fn list(
        self: &Arc<Self>,
        session: &TrustedSession,
        path: &Arc<str>,
    ) -> impl Future<Output = Result<Arc<Listing>>> + Send + use<> {
        let (memory, asked, path) = (Arc::clone(self), session.clone(), Arc::clone(path));
        self.listings.ask(session.id(), move || async move {
            let listed = asked.children(&path).await?;
            let listing = Listing::new(listed.names, listed.stat);
            memory.saw(&listing);
            Ok(listing)
        })
    }

    /// The claims of this session in the lock's directory, by a look-up that is sent from now on; it
    /// need not find others than those that were sent after that.
    pub(crate) fn look_up(
        self: &Arc<Self>,
        session: &TrustedSession,
        path: &str,
        sent_after: SentAfter,
    ) -> impl Future<Output = Result<Arc<Found>>> + Send + use<> {
        {
            let mut known = self.known.lock();
            known.sent_after = known.sent_after.and(sent_after);
        }
        let (memory, path) = (Arc::clone(self), path.to_owned());
        let asked = session.clone();
        self.lookups.ask(session.id(), move || {
            // All who share this look-up have said by now what they look for.
            let sent_after = std::mem::take(&mut memory.known.lock().sent_after);
            // Without a word the one before has taken it, and looks for more than that.
            let sent_after = match sent_after {
                SentAfter::Nothing => SentAfter::Unknown,
                sent_after => sent_after,
            };
            lookup::look_up(asked, path, sent_after)
        })
    }
}
