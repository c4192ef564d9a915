//! A query that many make at once, sent once for all of them.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures_lite::future::Boxed;
use futures_util::FutureExt as _;
use futures_util::future::{Either, Shared};
use parking_lot::Mutex;

use crate::error::Result;

/// The result of a query, for each caller that shares it.
type Answer<T> = Shared<Boxed<Result<Arc<T>>>>;

/// A caller that asks alone has a private query. The others share one query at a time. A caller that asks while one is
/// in flight shares the next, which is sent after the first was answered. So each query is sent after it was asked for.
pub(super) struct Coalesced<T> {
    /// Made when something is asked for the first time.
    state: OnceLock<Arc<Mutex<State<T>>>>,
}

struct State<T> {
    next: u64,
    /// Whether a private query is in flight. No other caller waits for it, because its owner may be slow.
    is_alone: bool,
    latest: Option<Latest<T>>,
}

/// While this lives, a private query is in flight.
struct Alone<T>(Arc<Mutex<State<T>>>);

impl<T> Drop for Alone<T> {
    fn drop(&mut self) {
        self.0.lock().is_alone = false;
    }
}

struct Latest<T> {
    number: u64,
    session: i64,
    is_sent: bool,
    answer: Answer<T>,
}

impl<T> Default for Coalesced<T> {
    fn default() -> Self {
        Coalesced { state: OnceLock::new() }
    }
}

impl<T> Default for State<T> {
    fn default() -> Self {
        State { next: 0, is_alone: false, latest: None }
    }
}

impl<T: Send + Sync + 'static> Coalesced<T> {
    /// Asks in this session. `query` sends it, or is dropped where another's is joined.
    pub(super) fn ask<F, Q>(
        &self,
        session: i64,
        query: F,
    ) -> impl Future<Output = Result<Arc<T>>> + Send + use<T, F, Q>
    where
        F: FnOnce() -> Q + Send + 'static,
        Q: Future<Output = Result<T>> + Send + 'static,
    {
        match self.alone() {
            Some(alone) => Either::Left(async move {
                let answer = query().await.map(Arc::new);
                drop(alone);
                answer
            }),
            None => Either::Right(self.share(session, query)),
        }
    }

    fn state(&self) -> &Arc<Mutex<State<T>>> {
        self.state.get_or_init(Arc::default)
    }

    fn alone(&self) -> Option<Alone<T>> {
        let mut state = self.state().lock();
        let is_first = state.latest.is_none() && !state.is_alone;
        state.is_alone |= is_first;
        is_first.then(|| Alone(Arc::clone(self.state())))
    }

    /// Every caller that awaits the answer drives it, so any of them may be dropped.
    fn share<Q: Future<Output = Result<T>> + Send + 'static>(
        &self,
        session: i64,
        query: impl FnOnce() -> Q + Send + 'static,
    ) -> Answer<T> {
        let mut state = self.state().lock();
        let before = match &state.latest {
            Some(latest) if latest.session != session => None,
            Some(latest) if !latest.is_sent => return latest.answer.clone(),
            latest => latest.as_ref().map(|latest| latest.answer.clone()),
        };
        let number = state.next;
        state.next += 1;
        let shared = Arc::clone(self.state());
        let answer: Boxed<_> = Box::pin(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            if let Some(latest) = shared.lock().latest.as_mut().filter(|it| it.number == number) {
                latest.is_sent = true;
            }
            let answer = query().await.map(Arc::new);
            // Nobody may join any more; the answer stays with those who wait for it.
            let done = shared.lock().latest.take_if(|latest| latest.number == number);
            drop(done);
            answer
        });
        let answer = answer.shared();
        let latest = Latest { number, session, is_sent: false, answer: answer.clone() };
        let replaced = state.latest.replace(latest);
        drop(state);
        drop(replaced);
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_lite::future::{block_on, poll_once};

    use super::*;

    /// A query that counts, and is answered when the test says so.
    struct Server {
        sent: Arc<AtomicUsize>,
        queries: Coalesced<usize>,
        replies: Arc<Mutex<Vec<oneshot::Sender<()>>>>,
    }

    impl Server {
        fn new() -> Server {
            Server { sent: Arc::default(), queries: Coalesced::default(), replies: Arc::default() }
        }

        fn query(&self) -> impl FnOnce() -> Boxed<Result<usize>> + Send + use<> {
            let (sent, replies) = (Arc::clone(&self.sent), Arc::clone(&self.replies));
            move || {
                let number = sent.fetch_add(1, Ordering::Relaxed);
                let (send, reply) = oneshot::async_channel();
                replies.lock().push(send);
                Box::pin(async move {
                    let _ = reply.await;
                    Ok(number)
                })
            }
        }

        fn ask(&self, session: i64) -> Answer<usize> {
            self.queries.share(session, self.query())
        }

        fn sent(&self) -> usize {
            self.sent.load(Ordering::Relaxed)
        }

        fn reply(&self) {
            self.replies.lock().remove(0).send(()).unwrap();
        }
    }

    fn poll(answer: &mut Answer<usize>) -> Option<usize> {
        block_on(poll_once(answer)).map(|answer| *answer.unwrap())
    }

    #[test]
    fn who_asks_alone_has_a_query_of_its_own_and_nobody_waits_for_that() {
        let server = Server::new();
        let mut alone = Box::pin(server.queries.ask(1, server.query()));
        assert!(block_on(poll_once(&mut alone)).is_none());
        let mut others: Vec<_> =
            (0..3).map(|_| Box::pin(server.queries.ask(1, server.query()))).collect();
        assert!(others.iter_mut().all(|other| block_on(poll_once(other)).is_none()));
        assert_eq!(server.sent(), 2);
        server.replies.lock().remove(1).send(()).unwrap();
        assert!(others.iter_mut().all(|other| block_on(poll_once(other)).is_some()));
        drop(alone);
        let mut next = Box::pin(server.queries.ask(1, server.query()));
        assert!(block_on(poll_once(&mut next)).is_none());
        assert!(server.queries.state().lock().is_alone);
    }

    #[test]
    fn those_who_ask_while_one_is_on_its_way_share_the_next() {
        let server = Server::new();
        let mut first = server.ask(1);
        assert_eq!(poll(&mut first), None);
        let mut others: Vec<_> = (0..1000).map(|_| server.ask(1)).collect();
        assert!(others.iter_mut().all(|other| poll(other).is_none()));
        assert_eq!(server.sent(), 1);
        server.reply();
        assert_eq!(poll(&mut first), Some(0));
        assert!(others.iter_mut().all(|other| poll(other).is_none()));
        assert_eq!(server.sent(), 2);
        server.reply();
        assert!(others.iter_mut().all(|other| poll(other) == Some(1)));
        assert!(server.queries.state().lock().latest.is_none(), "no answer is kept");
    }

    #[test]
    fn nobody_waits_for_one_that_was_given_up() {
        let server = Server::new();
        let mut first = server.ask(1);
        assert_eq!(poll(&mut first), None);
        let (mut second, mut third) = (server.ask(1), server.ask(1));
        assert_eq!(poll(&mut second), None);
        drop((first, second));
        server.reply();
        assert_eq!(poll(&mut third), None);
        server.reply();
        assert_eq!(poll(&mut third), Some(1));
        // One that was never sent is joined, however long ago it was asked for.
        drop(server.ask(1));
        let mut late = server.ask(1);
        assert_eq!(poll(&mut late), None);
        server.reply();
        assert_eq!(poll(&mut late), Some(2));
    }

    #[test]
    fn a_session_does_not_wait_for_the_one_before() {
        let server = Server::new();
        let mut old = server.ask(1);
        assert_eq!(poll(&mut old), None);
        let mut new = server.ask(2);
        assert_eq!(poll(&mut new), None);
        assert_eq!(server.sent(), 2);
        server.reply();
        assert_eq!(poll(&mut old), Some(0));
        // Its end does not make way for others beside the one that is in flight.
        let mut next = server.ask(2);
        assert_eq!((poll(&mut next), server.sent()), (None, 2));
        server.reply();
        assert_eq!((poll(&mut new), poll(&mut next)), (Some(1), None));
    }
}
