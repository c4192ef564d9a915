//! That a member is there, and that it comes again after its session has ended.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::super::ephemeral::Ephemeral;
use super::super::persistent::run;
use super::super::transaction::named;
use super::Group;
use crate::client::{Client, TrustedSession, WatchFor};
use crate::error::Result;
use crate::logging::log;
use crate::runtime::{Latest, Pending, Timer};

/// Before another try, when it was refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// A membership in a group. Dropping it leaves the group.
///
/// After its session has ended, it joins again in the next session, with the same id. It does the same if another
/// client deletes its znode. It keeps its client open, as a guard of a lock does.
#[must_use = "dropping it leaves the group"]
pub struct Membership {
    id: String,
    path: Arc<str>,
    state: Arc<Latest<State>>,
    /// Answered, or dropped, when it has left.
    left: Option<oneshot::AsyncReceiver<Result<()>>>,
    client: Client,
}

impl Group {
    /// Joins the group, with data that all clients can read. It waits without a limit, or [within](Pending::within)
    /// one. It costs one request, and creates missing parents.
    ///
    /// # Errors
    /// Nothing is left behind.
    /// - `BAD_ARGUMENTS`: the path is not allowed.
    /// - `NO_AUTH`
    /// - `OPERATION_TIMEOUT`: the limit has passed.
    /// - Why the client is closed, if it is.
    ///
    /// # On connection loss
    /// It waits for the next connection and looks up there whether it has joined.
    ///
    /// # Cancel safety
    /// Dropping it cancels it. Its znode is deleted in the background, even if the reply to the create was lost.
    pub fn join(&self, data: impl Into<Vec<u8>>) -> Pending<Membership> {
        let id = Uuid::new_v4().simple().to_string();
        let path: Arc<str> = format!("{}/{id}", self.path.trim_end_matches('/')).into();
        let data: Vec<u8> = data.into();
        let (inner, acl) = (self.client.inner(), Arc::clone(&self.acl));
        let znode = Ephemeral::new(inner, "join", Arc::clone(&path), data.into(), acl);
        let client = self.client.clone();
        run("join", &self.path, async move { Membership::begin(client, id, path, znode).await })
    }
}

#[derive(Clone, Default)]
struct State {
    /// The session that its znode is on.
    session: Option<TrustedSession>,
    leaves: bool,
}

impl Membership {
    async fn begin(
        client: Client,
        id: String,
        path: Arc<str>,
        mut znode: Ephemeral,
    ) -> Result<Membership> {
        znode.place().await?;
        let session = znode.session().cloned();
        let state = Arc::new(Latest::new(State { session, leaves: false }));
        let (send, left) = oneshot::async_channel();
        client.inner().spawn(keep(znode, Arc::clone(&path), Arc::clone(&state), send));
        Ok(Membership { id, path, state, left: Some(left), client })
    }

    /// Its id in the group: see [`Member::id`](super::Member::id).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of its znode.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is a member now, by the local clock. After a loss of the session it is `false` until it has joined
    /// again. Costs no request. It says less than a [`Guard`](crate::Guard): a leader that others have replaced without
    /// its knowledge vouches for a session that they have ended, for a few seconds.
    pub fn is_member(&self) -> bool {
        let state = self.state.get();
        !state.leaves && state.session.is_some_and(|session| session.is_trusted())
    }

    /// Leaves the group. Success means that its znode is gone: deleted, or gone with its session.
    ///
    /// # Errors
    /// Its znode may still be there.
    /// - `NO_AUTH`: the session may not delete it. It stays until the session ends.
    /// - `CONNECTION_LOSS`: the client was closed meanwhile, and no server has confirmed the end of its session.
    ///
    /// # Cancel safety
    /// If it is dropped, it still leaves.
    pub fn leave(mut self) -> Pending<()> {
        self.let_go();
        let (left, path) = (self.left.take(), Arc::clone(&self.path));
        Pending::run("leave", &path, async move {
            if let Some(left) = left {
                let gone = match left.await {
                    Ok(gone) => gone,
                    // There is no answer if the client was closed.
                    Err(_) => self.client.inner().closed_for_certain().await,
                };
                gone.map_err(|error| named("leave", &self.path, &error))?;
            }
            drop(self);
            Ok(())
        })
    }

    fn let_go(&self) {
        self.state.update(|state| !std::mem::replace(&mut state.leaves, true));
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_member = self.is_member();
        f.debug_struct("Membership")
            .field("path", &self.path)
            .field("is_member", &is_member)
            .finish()
    }
}

/// Makes it again whenever it is gone, until it is to leave or the client is closed.
async fn keep(
    mut znode: Ephemeral,
    path: Arc<str>,
    state: Arc<Latest<State>>,
    left: oneshot::Sender<Result<()>>,
) {
    let leaves = state.wait_for(|state| state.leaves.then_some(()));
    let stays = async {
        let mut refused = None;
        loop {
            if let Some(session) = znode.session().cloned() {
                gone(&session, &path).await;
            }
            state.update(|state| state.session.take().is_some());
            match znode.place().await {
                Ok(()) => {
                    refused = None;
                    let session = znode.session().cloned();
                    state.update(|state| {
                        state.session = session;
                        true
                    });
                }
                Err(error) => {
                    if refused.replace(error.code()) != Some(error.code()) {
                        log!(WARN, %error, "a member can't join its group again; it is tried every second");
                    }
                    Timer::after(AFTER_REFUSAL).await;
                }
            }
        }
    };
    futures_lite::future::or(leaves, stays).await;
    crate::runtime::wake::send(left, znode.remove().await);
}

/// Waits until the session can't be trusted any more, or the znode is gone.
async fn gone(session: &TrustedSession, path: &str) {
    let deleted = async {
        while session.has_room_to_watch(path, WatchFor::Later) {
            let watched = session.exists_and_watch(path).await;
            match watched {
                Ok(watched) if watched.value.is_none() => return,
                Ok(watched) => drop(watched.watch.await),
                Err(_) => Timer::after(Duration::from_millis(50)).await,
            }
        }
        // Without a watch, only the end of the session is noticed.
        session.lost().await;
    };
    futures_lite::future::or(deleted, session.lost()).await;
}
