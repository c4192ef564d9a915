//! Finds the oldest element of a queue.

use std::sync::Arc;

use super::super::patience::{Patience, is_passing};
use super::super::transaction::named;
use super::{Queue, element, line};
use crate::client::{Link, TrustPeriod, Watch};
use crate::error::Result;

/// An element that was there a moment ago.
pub(super) struct Found {
    pub(super) link: Arc<Link>,
    pub(super) name: String,
    pub(super) data: Vec<u8>,
    pub(super) version: i32,
}

/// The front of a queue.
pub(super) enum Front {
    Found(Found),
    /// There is no element; the watch, if one was wanted, ends when that may have changed.
    Empty(Option<(Watch, Arc<TrustPeriod>)>),
    /// There is not even the queue's znode.
    NoQueue,
}

impl Queue {
    /// Looks for the oldest element until an answer is there.
    pub(super) async fn front(&self, patience: &mut Patience<'_>, watch: bool) -> Result<Front> {
        loop {
            let session = patience.session().await?;
            match self.look(&session.link, &session.trust, watch).await {
                Ok(Some(front)) => return Ok(front),
                Ok(None) => patience.renew(),
                Err(error) if is_passing(&error) => patience.pause().await,
                Err(error) => return Err(named(patience.op(), &self.path, &error)),
            }
        }
    }

    /// Looks once; `None` if that changed what is known of the queue.
    async fn look(
        &self,
        link: &Arc<Link>,
        trust: &Arc<TrustPeriod>,
        watch: bool,
    ) -> Result<Option<Front>> {
        let names = line::oldest(link, &self.path);
        if names.is_empty() {
            return self.list(link, trust, watch).await;
        }
        // All at once: after a while among other consumers, most are gone.
        let gets: Vec<_> = names.iter().map(|name| link.get(&self.element_path(name))).collect();
        for (at, get) in gets.into_iter().enumerate() {
            match get.await {
                Ok((data, stat)) => {
                    line::gone(link, &self.path, &names[..at], true);
                    let (link, name) = (Arc::clone(link), names[at].clone());
                    return Ok(Some(Front::Found(Found {
                        link,
                        name,
                        data,
                        version: stat.version,
                    })));
                }
                Err(error) if error.is_no_node() => {}
                Err(error) => return Err(error),
            }
        }
        line::gone(link, &self.path, &names, false);
        Ok(None)
    }

    /// Lists the queue; `None` if there are elements.
    async fn list(
        &self,
        link: &Arc<Link>,
        trust: &Arc<TrustPeriod>,
        watch: bool,
    ) -> Result<Option<Front>> {
        let listed = if watch {
            let listed = link.children_and_watch(&self.path).await;
            listed.map(|(names, watch)| (names, Some((watch, Arc::clone(trust)))))
        } else {
            link.children(&self.path).await.map(|(names, _)| (names, None))
        };
        let (names, watch) = match listed {
            Ok(listed) => listed,
            Err(error) if error.is_no_node() => return Ok(Some(Front::NoQueue)),
            Err(error) => return Err(error),
        };
        let elements = element::in_order(names);
        let is_empty = elements.is_empty();
        line::listed(link, &self.path, elements);
        Ok(is_empty.then_some(Front::Empty(watch)))
    }
}
