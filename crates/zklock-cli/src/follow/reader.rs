//! Requests on their way, and watches, as one line of what comes of them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, Stream};
use parking::{Parker, Unparker};
use zklock::zookeeper::Watched;
use zklock::zookeeper::{Children, SessionState, SessionStates};
use zklock::{Client, Contender, Error, LockError, Strategy};

/// What has come.
pub enum Event {
    Listed(String, Result<Watched<Children>, Error>),
    Read(String, Result<Vec<Contender>, LockError>),
    /// Its children changed, or it was created; or the session that watched is over.
    Changed(String, Result<(), Error>),
    Session(SessionState, SessionStates),
    /// The client is closed.
    Closed,
}

type Coming = Pin<Box<dyn Future<Output = Event> + Send>>;

pub struct Reader {
    client: Client,
    coming: FuturesUnordered<Coming>,
    parker: Parker,
    unparker: Unparker,
}

impl Reader {
    pub fn new(client: Client) -> Reader {
        let (parker, unparker) = parking::pair();
        let reader = Reader { client, coming: FuturesUnordered::new(), parker, unparker };
        reader.follow_states(reader.client.states());
        reader
    }

    /// The state that follows.
    pub fn follow_states(&self, mut states: SessionStates) {
        self.coming.push(Box::pin(async move {
            let next = std::future::poll_fn(|cx| Pin::new(&mut states).poll_next(cx)).await;
            next.map_or(Event::Closed, |state| Event::Session(state, states))
        }));
    }

    /// Lists a znode's children, and watches them.
    pub fn list(&self, path: String) {
        let listing = self.client.children_and_watch(&path);
        self.coming.push(Box::pin(async move { Event::Listed(path, listing.await) }));
    }

    /// Waits until a znode exists.
    pub fn await_creation(&self, path: String) {
        let exists = self.client.exists_and_watch(&path);
        self.coming.push(Box::pin(async move {
            let created = match exists.await {
                Ok(Watched { value: None, watch }) => watch.await.map(drop),
                found => found.map(drop),
            };
            Event::Changed(path, created)
        }));
    }

    /// Reads who contends for a lock, which is one znode or has numbered children.
    pub fn read(&self, path: String, is_one_znode: bool) {
        let lock = self.client.lock(&path);
        let lock = if is_one_znode { lock.strategy(Strategy::Watch) } else { lock };
        let contenders = lock.contenders();
        self.coming.push(Box::pin(async move { Event::Read(path, contenders.await) }));
    }

    pub fn watch(&self, path: String, watch: zklock::zookeeper::Watch) {
        self.coming.push(Box::pin(async move { Event::Changed(path, watch.await.map(drop)) }));
    }

    /// The next of all that comes; `None` at that time.
    pub fn next(&mut self, until: Instant) -> Option<Event> {
        let waker = self.unparker.clone().into();
        loop {
            let mut cx = Context::from_waker(&waker);
            if let Poll::Ready(Some(event)) = Pin::new(&mut self.coming).poll_next(&mut cx) {
                return Some(event);
            }
            if !self.parker.park_deadline(until) {
                return None;
            }
        }
    }
}
