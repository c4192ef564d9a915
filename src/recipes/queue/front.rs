//! Finds the oldest element of a queue.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::retry_budget::RetryBudget;
use super::super::transaction::named;
use super::element;
use super::head_cache::HeadCache;
use crate::client::{TrustPeriod, TrustedSession, Watch, Watched, Znode};
use crate::error::{Code, Error, Result};
use crate::znode::Stat;

/// An element that was there a moment ago.
pub(super) struct Found {
    pub(super) number: i32,
    pub(super) data: Vec<u8>,
    pub(super) stat: Stat,
    /// The version of the queue's own znode.
    pub(super) queue_version: i32,
}

/// The front of a queue.
pub(super) enum Front {
    Found(Found),
    /// There is no element; the watch, if one was wanted, ends when that may have changed.
    Empty(Option<(Watch, Arc<TrustPeriod>)>),
    /// There is not even the queue's znode.
    NoQueue,
}

/// The elements of a queue, and what is known of the first of them.
pub(super) struct Elements {
    pub(super) path: String,
    pub(super) head: Arc<Mutex<HeadCache>>,
}

impl Elements {
    /// The path of an element.
    pub(super) fn path_of(&self, number: i32) -> String {
        format!("{}/{}", self.path, element::name(number))
    }

    /// Looks for the oldest element until an answer is there.
    pub(super) async fn front(&self, budget: &mut RetryBudget<'_>, watch: bool) -> Result<Front> {
        loop {
            let session = budget.session().await?;
            match self.look(&session, watch).await {
                Ok(Some(front)) => return Ok(front),
                Ok(None) => budget.renew(),
                Err(error) if error.is_no_node() => {
                    self.head.lock().forget();
                    return Ok(Front::NoQueue);
                }
                Err(error) if error.is_transient() => budget.pause().await,
                Err(error) => return Err(named(budget.op(), &self.path, &error)),
            }
        }
    }

    /// Looks once; `None` if that changed what is known of the queue.
    async fn look(&self, session: &TrustedSession, watch: bool) -> Result<Option<Front>> {
        let link = &session.link;
        let (known, list) = {
            let head = self.head.lock();
            (head.oldest(), head.is_to_be_listed())
        };
        // All at once, the queue before its elements. Several of those: after a while among other
        // consumers, most are gone.
        let watch_now = watch && known.is_empty();
        let listing = (list && !watch_now).then(|| link.children(&self.path));
        let watching = (list && watch_now).then(|| link.children_and_watch(&self.path));
        let look = (!list).then(|| link.exists(&self.path));
        let gets: Vec<_> = known.iter().map(|number| link.get(&self.path_of(*number))).collect();

        let mut names = None;
        let mut left = None;
        let mut queue = Stat::default();
        if let Some(listing) = listing {
            let listed = listing.await?;
            (names, queue) = (Some(listed.names), listed.stat);
        }
        if let Some(watching) = watching {
            let Watched { value: listed, watch } = watching.await?;
            (names, queue) = (Some(listed.names), listed.stat);
            left = Some((watch, Arc::clone(&session.trust)));
        }
        if let Some(look) = look {
            let missing = || Error::new("exists", &self.path, Code::NO_NODE);
            queue = look.await?.ok_or_else(missing)?;
        }
        let mut found = None;
        let mut gone = Vec::new();
        for (&number, get) in known.iter().zip(gets) {
            match get.await {
                Ok(Znode { data, stat }) => {
                    found = Some(Found { number, data, stat, queue_version: queue.version });
                    break;
                }
                Err(error) if error.is_no_node() => gone.push(number),
                Err(error) => return Err(error),
            }
        }

        let mut head = self.head.lock();
        match names {
            Some(names) => {
                let numbers = element::in_order(&names);
                head.listed(&queue, &numbers);
                if numbers.is_empty() {
                    let is_answer = left.is_some() || !watch;
                    return Ok(is_answer.then_some(Front::Empty(left)));
                }
            }
            None => head.seen(&queue),
        }
        head.gone(&gone, found.is_some());
        Ok(found.filter(|found| head.first() == Some(found.number)).map(Front::Found))
    }
}
