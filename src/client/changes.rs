//! The changes of a znode, or of its children.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::stream;

use super::{Children, Client, ClientInner, Link, TrustedSession, Watch, WatchFor, Watched, Znode};
use crate::error::Result;
use crate::process::{Process, inherited};
use crate::retry;
use crate::runtime::{Pending, Timer, Updates};

impl Client {
    /// Watches a znode's data: gives the present data first, then each change; `None` while the znode does not exist.
    ///
    /// The last change is always reported, even if the connection was lost or the session ended meanwhile. Of several
    /// changes between two looks only the last is reported. A change that was undone is reported too. A znode that is
    /// created and deleted between two looks is left out. One that is deleted and recreated has another `czxid` in its
    /// [`Stat`](crate::zookeeper::Stat). Only data counts: a new child or another ACL is no change.
    ///
    /// It costs a watch on the servers, and a read for each change. For many children of one znode,
    /// [`watch_children`](Client::watch_children) may cost less. If there is no room for a watch (see
    /// [`max_request`](crate::ClientOptions::max_request)), it reads twice a second. It does not keep the client open.
    ///
    /// # Errors
    /// Errors of [`get`](Client::get) that a retry cannot fix (`BAD_ARGUMENTS`, `NO_AUTH`), or why the client is
    /// closed. It ends after an error.
    ///
    /// # On connection loss
    /// It continues on the next connection or session and reports nothing twice.
    ///
    /// # Cancel safety
    /// Dropping it removes the watch on this side. The server keeps it until it fires.
    pub fn watch_data(&self, path: &str) -> Updates<Result<Option<Znode>>> {
        changes(self, path, "get")
    }

    /// Watches a znode's children: gives the present children first, then each change; `None` while the znode does not
    /// exist.
    ///
    /// The last change is always reported, as in [`watch_data`](Client::watch_data). The data of children and znodes
    /// below them do not count. Each change costs a listing of all children.
    ///
    /// # Errors
    /// As [`watch_data`](Client::watch_data).
    ///
    /// # On connection loss
    /// It continues on the next connection or session and reports nothing twice.
    ///
    /// # Cancel safety
    /// As [`watch_data`](Client::watch_data).
    pub fn watch_children(&self, path: &str) -> Updates<Result<Option<Children>>> {
        changes(self, path, "children")
    }
}

/// The part of a znode that is watched.
trait Aspect: Send + Sized + 'static {
    fn read(link: &Arc<Link>, path: &str) -> Pending<Self>;

    fn read_and_watch(link: &Arc<Link>, path: &str) -> Pending<Watched<Self>>;

    /// The transactions that created the znode, and that last changed this of it.
    fn version(&self) -> (i64, i64);
}

impl Aspect for Znode {
    fn read(link: &Arc<Link>, path: &str) -> Pending<Znode> {
        link.get(path)
    }

    fn read_and_watch(link: &Arc<Link>, path: &str) -> Pending<Watched<Znode>> {
        link.get_and_watch(path)
    }

    fn version(&self) -> (i64, i64) {
        (self.stat.czxid, self.stat.mzxid)
    }
}

impl Aspect for Children {
    fn read(link: &Arc<Link>, path: &str) -> Pending<Children> {
        link.children(path)
    }

    fn read_and_watch(link: &Arc<Link>, path: &str) -> Pending<Watched<Children>> {
        link.children_and_watch(path)
    }

    fn version(&self) -> (i64, i64) {
        (self.stat.czxid, self.stat.pzxid)
    }
}

fn changes<T: Aspect>(client: &Client, path: &str, op: &'static str) -> Updates<Result<Option<T>>> {
    let changes = Changes::new(Arc::clone(client.inner()), path);
    let stream = stream::unfold(Some(changes), |changes| async {
        let mut changes = changes?;
        let next = changes.next().await;
        let goes_on = next.is_ok();
        Some((next, goes_on.then_some(changes)))
    });
    Updates::new(Process::this(), Err(inherited(op, path)), stream)
}

struct Changes {
    inner: Arc<ClientInner>,
    path: Box<str>,
    /// The version that was reported last, if any was; `None` of a znode that was not there.
    reported: Option<Option<(i64, i64)>>,
    next_look: NextLook,
    /// The session that has caught up with what was reported.
    session: Option<i64>,
}

/// When to look the next time.
enum NextLook {
    Now,
    When(Watch),
    After(Duration),
}

impl Changes {
    fn new(inner: Arc<ClientInner>, path: &str) -> Changes {
        let path = Box::from(path);
        Changes { inner, path, reported: None, next_look: NextLook::Now, session: None }
    }

    /// The present value, as soon as it differs from the one reported last.
    async fn next<T: Aspect>(&mut self) -> Result<Option<T>> {
        loop {
            match std::mem::replace(&mut self.next_look, NextLook::Now) {
                NextLook::Now => {}
                // It ends with an error where the session does: the next one shows what has changed.
                NextLook::When(watch) => drop(watch.await),
                NextLook::After(pause) => Timer::after(pause).await,
            }
            let session = self.inner.trusted_session().await?;
            match self.look(&session).await {
                Ok(found) => {
                    let version = found.as_ref().map(T::version);
                    if self.reported.replace(version) != Some(version) {
                        return Ok(found);
                    }
                }
                Err(error) if error.is_transient() => {
                    self.next_look = NextLook::After(retry::LATER);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what is there, and sets a watch by the same request.
    async fn look<T: Aspect>(&mut self, session: &TrustedSession) -> Result<Option<T>> {
        // A session may begin at a server that lags behind the one where the last look was.
        let catch_up = (self.session != Some(session.id())).then(|| session.sync(&self.path));
        let room = session.has_room_to_watch(&self.path, WatchFor::Later);
        let found = loop {
            let read = if room {
                T::read_and_watch(session, &self.path).await.map(|Watched { value, watch }| {
                    self.next_look = NextLook::When(watch);
                    value
                })
            } else {
                T::read(session, &self.path).await
            };
            match read {
                Err(error) if error.is_no_node() && room => {
                    let Watched { value, watch } = session.exists_and_watch(&self.path).await?;
                    if value.is_none() {
                        self.next_look = NextLook::When(watch);
                        break None;
                    }
                }
                Err(error) if error.is_no_node() => break None,
                read => break Some(read?),
            }
        };
        if !room {
            self.next_look = NextLook::After(retry::WITHOUT_A_WATCH);
        }
        if let Some(catch_up) = catch_up {
            catch_up.await?;
            self.session = Some(session.id());
        }
        Ok(found)
    }
}
