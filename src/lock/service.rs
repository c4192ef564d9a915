//! What the acquire loop needs of ZooKeeper, and nothing more.
//!
//! The loop is written against these two traits, so that another implementation (one that
//! explores schedules, say) can drive the very same code.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_lite::future::or;

use crate::client::{ClientInner, Created, Hold, Pending, Timer, TrustedSession, Watch, WatchFor};
use crate::error::Result;
use crate::znode::{Acl, CreateMode, Stat};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A client: sessions that follow one another, a clock, and a place for tasks in the background.
pub(crate) trait Service: Send + Sync {
    /// Waits until a session is connected and trusted. Fails when there will never be one.
    fn session(&self) -> BoxFuture<Result<Arc<dyn Session>>>;
    /// A number of this client's alone.
    fn id(&self) -> u64;
    /// Whether the connection is up, as far as was heard.
    fn is_connected(&self) -> bool;
    fn now(&self) -> Instant;
    fn sleep_until(&self, at: Instant) -> BoxFuture<()>;
    /// Runs a task that outlives its caller, for as long as the client is open.
    fn spawn(&self, task: BoxFuture<()>);
    /// As [`spawn`](Service::spawn), for what others would have to wait for if it were left undone.
    fn spawn_duty(&self, task: BoxFuture<()>) {
        self.spawn(task);
    }
}

/// One session in one period of trust. Requests are submitted when called, in that order, and can
/// never act on another session.
pub(crate) trait Session: Send + Sync {
    fn id(&self) -> i64;
    /// Whether the session is certainly alive, by the local clock. Once `false`, for ever `false`.
    fn is_trusted(&self) -> bool;
    /// Whether another handle had the session before this client took it up.
    fn was_taken_up(&self) -> bool;
    /// Whether nobody but this client has ever used the session.
    fn is_ours_alone(&self) -> bool;
    /// Holds a lock on the session, if the servers have proven that it is alive. A session that was
    /// trusted for less may not be any more, once something is held on it.
    fn hold(&self) -> Option<Hold>;
    /// Waits until a lock can be held on the session, or it is no longer trusted.
    fn proven(&self) -> BoxFuture<()>;
    /// Waits until the session is no longer trusted.
    fn lost(&self) -> BoxFuture<()>;
    fn create(&self, path: &str, data: &[u8], acl: &[Acl], mode: CreateMode) -> Pending<Created>;
    /// The names of a znode's children, and the znode's own stat.
    fn children(&self, path: &str) -> Pending<(Vec<String>, Stat)>;
    fn get(&self, path: &str) -> Pending<(Vec<u8>, Stat)>;
    fn get_and_watch(&self, path: &str) -> Pending<(Vec<u8>, Stat, Watch)>;
    /// Whether there is room for a watch on that path.
    fn has_room_to_watch(&self, path: &str, purpose: WatchFor) -> bool;
    fn sync(&self, path: &str) -> Pending<()>;
    /// Deletes a znode of this session for certain: tried until it, or the session, is gone, and
    /// only the one that the transaction `czxid` created. Without `look`, the caller vouches for
    /// that on the first try, which then saves a request. Gives `false` if the first deletion
    /// found no such znode. `kept` is kept until it is certain.
    fn guaranteed_delete(&self, path: &str, czxid: i64, look: bool, kept: Arc<()>)
    -> Pending<bool>;
    /// Creates the znodes above `path` that are missing.
    fn create_parents(&self, path: &str, acl: &[Acl]) -> BoxFuture<Result<()>>;
}

/// What `work` gives; or what `late` does, once the deadline has passed.
pub(super) async fn within<T>(
    service: &dyn Service,
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
    late: impl FnOnce() -> T,
) -> T {
    let too_late = async {
        match deadline {
            Some(deadline) => service.sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        late()
    };
    or(work, too_late).await
}

impl Service for Arc<ClientInner> {
    fn session(&self) -> BoxFuture<Result<Arc<dyn Session>>> {
        let inner = Arc::clone(self);
        Box::pin(async move {
            let session = inner.trusted_session().await?;
            Ok(Arc::new(session) as Arc<dyn Session>)
        })
    }

    fn id(&self) -> u64 {
        ClientInner::id(self)
    }

    fn is_connected(&self) -> bool {
        ClientInner::is_connected(self)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<()> {
        Box::pin(async move {
            Timer::at(at).await;
        })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        ClientInner::spawn(self, task);
    }

    fn spawn_duty(&self, task: BoxFuture<()>) {
        ClientInner::spawn_duty(self, task);
    }
}

impl Session for TrustedSession {
    fn id(&self) -> i64 {
        self.trust.session()
    }

    fn is_trusted(&self) -> bool {
        self.trust.is_trusted()
    }

    fn was_taken_up(&self) -> bool {
        self.link.was_taken_up()
    }

    fn is_ours_alone(&self) -> bool {
        !self.link.is_adopted() && !self.link.was_taken_up()
    }

    fn hold(&self) -> Option<Hold> {
        TrustedSession::hold(self)
    }

    fn proven(&self) -> BoxFuture<()> {
        let session = self.clone();
        Box::pin(async move { TrustedSession::proven(&session).await })
    }

    fn lost(&self) -> BoxFuture<()> {
        let trust = Arc::clone(&self.trust);
        Box::pin(async move { trust.lost().await })
    }

    fn create(&self, path: &str, data: &[u8], acl: &[Acl], mode: CreateMode) -> Pending<Created> {
        self.link.create(path, data, acl, mode)
    }

    fn children(&self, path: &str) -> Pending<(Vec<String>, Stat)> {
        self.link.children(path)
    }

    fn get(&self, path: &str) -> Pending<(Vec<u8>, Stat)> {
        self.link.get(path)
    }

    fn get_and_watch(&self, path: &str) -> Pending<(Vec<u8>, Stat, Watch)> {
        self.link.get_and_watch(path)
    }

    fn has_room_to_watch(&self, path: &str, purpose: WatchFor) -> bool {
        self.link.has_room_to_watch(path, purpose)
    }

    fn sync(&self, path: &str) -> Pending<()> {
        self.link.sync(path)
    }

    fn guaranteed_delete(
        &self,
        path: &str,
        czxid: i64,
        look: bool,
        kept: Arc<()>,
    ) -> Pending<bool> {
        self.link.guaranteed_delete(path, czxid, look, kept)
    }

    fn create_parents(&self, path: &str, acl: &[Acl]) -> BoxFuture<Result<()>> {
        let (link, path, acl) = (Arc::clone(&self.link), path.to_owned(), acl.to_vec());
        Box::pin(async move { link.create_parents(&path, &acl).await })
    }
}
