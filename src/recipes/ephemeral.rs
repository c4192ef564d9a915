//! An ephemeral znode with one owner. It is created once even if replies are lost, and deleted when its owner is
//! dropped.
//!
//! Its name contains a uuid, so it is unique. If it exists already, an earlier create of ours has made it: the reply
//! was lost, or that session is over.

use std::sync::Arc;
use std::time::Duration;

use crate::client::{ClientInner, Created, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::retry;
use crate::runtime::{Pending, Timer};
use crate::znode::{Acl, CreateMode};

/// Between two tries, when the first has failed.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Ephemeral {
    client: Arc<ClientInner>,
    /// For errors.
    op: &'static str,
    path: Arc<str>,
    data: Arc<[u8]>,
    acl: Arc<[Acl]>,
    state: State,
}

enum State {
    /// There is none.
    None,
    /// A create was submitted; without a reply to wait for, its outcome is unknown.
    Sent {
        session: TrustedSession,
        reply: Option<Box<Pending<Created>>>,
        /// Whether an earlier create on that session may have made it.
        is_in_doubt: bool,
    },
    /// It is there, made by that transaction.
    Placed { session: TrustedSession, czxid: i64 },
}

impl State {
    /// Whether it may be there, on that session.
    fn may_be_on(&self, at: &TrustedSession) -> bool {
        match self {
            State::None => false,
            State::Sent { session, .. } | State::Placed { session, .. } => session.id() == at.id(),
        }
    }
}

/// Whether it may be there after this error of a create. A server that has no parent for it knows of no earlier create,
/// and executes none of a connection before any more.
fn may_be_there(error: &Error, is_in_doubt: bool) -> bool {
    retry::may_be_done(error.code()) || error.is_node_exists() || is_in_doubt && !error.is_no_node()
}

impl Ephemeral {
    /// `path` has a name that nobody else gives.
    pub(super) fn new(
        client: &Arc<ClientInner>,
        op: &'static str,
        path: Arc<str>,
        data: Arc<[u8]>,
        acl: Arc<[Acl]>,
    ) -> Ephemeral {
        Ephemeral { client: Arc::clone(client), op, path, data, acl, state: State::None }
    }

    /// The session that it is on, once it is there.
    pub(super) fn session(&self) -> Option<&TrustedSession> {
        match &self.state {
            State::Placed { session, .. } => Some(session),
            _ => None,
        }
    }

    /// The transaction that made it, once it is there.
    pub(super) fn czxid(&self) -> Option<i64> {
        match &self.state {
            State::Placed { czxid, .. } => Some(*czxid),
            _ => None,
        }
    }

    /// Creates it, or finds it, on the present session. Creates missing parents.
    ///
    /// # Errors
    /// Errors that no retry would mend. Lost connections and sessions are retried.
    pub(super) async fn place(&mut self) -> Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            let session = self.client.trusted_session().await?;
            let reply = session.create(&self.path, &self.data, &self.acl, CreateMode::Ephemeral);
            let (reply, is_in_doubt) = (Some(Box::new(reply)), self.state.may_be_on(&session));
            self.state = State::Sent { session: session.clone(), reply, is_in_doubt };
            let created = match &mut self.state {
                // Awaited in place: should this be dropped, the reply to come says what is to be deleted.
                State::Sent { reply: Some(reply), .. } => reply.await,
                _ => return Ok(()),
            };
            let placed = match created {
                Ok(created) => Ok(Some(created.stat.czxid)),
                Err(error) => {
                    self.state = State::None;
                    if may_be_there(&error, is_in_doubt) {
                        let (session, reply) = (session.clone(), None);
                        self.state = State::Sent { session, reply, is_in_doubt: true };
                    }
                    self.after(&session, error).await
                }
            };
            match placed {
                Ok(Some(czxid)) => {
                    self.state = State::Placed { session, czxid };
                    return Ok(());
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => {
                    Timer::after(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    let detail = error.to_string();
                    return Err(Error::with_detail(self.op, &self.path, error.code(), detail));
                }
            }
        }
    }

    /// The czxid, if the znode exists in spite of the error; `None` if the create can be retried.
    async fn after(&mut self, session: &TrustedSession, error: Error) -> Result<Option<i64>> {
        if error.is_node_exists() {
            return match session.exists(&self.path).await? {
                Some(stat) if stat.ephemeral_owner == session.id() => Ok(Some(stat.czxid)),
                // Of an earlier session of ours, which the servers have not ended yet.
                Some(stat) => {
                    let kept = Arc::default();
                    session.guaranteed_delete(&self.path, stat.czxid, true, kept).await?;
                    Ok(None)
                }
                None => Ok(None),
            };
        }
        // Below the root there is nothing to be made: the chroot is missing.
        if error.is_no_node() && self.path.rfind('/') != Some(0) {
            session.create_parents(&self.path, &self.acl).await?;
            return Ok(None);
        }
        Err(error)
    }

    /// Deletes it for certain, and waits until it is gone: deleted, or gone with its session.
    ///
    /// # Errors
    /// Why it may still be there.
    pub(super) async fn remove(mut self) -> Result<()> {
        let (gone, session) = match std::mem::replace(&mut self.state, State::None) {
            State::None => return Ok(()),
            State::Placed { session, czxid } => {
                let gone = session.guaranteed_delete(&self.path, czxid, false, Arc::default());
                (gone.await.map(drop), session.id())
            }
            State::Sent { session, reply, is_in_doubt } => {
                let (client, path, id) =
                    (Arc::clone(&self.client), Arc::clone(&self.path), session.id());
                (clean_up(client, path, session, reply, is_in_doubt).await, id)
            }
        };
        match gone {
            Err(error) if error.is_session_over() => self.client.session_gone(session).await,
            gone => gone,
        }
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::None) {
            State::None => {}
            State::Placed { session, czxid } => {
                drop(session.guaranteed_delete(&self.path, czxid, false, Arc::default()));
            }
            State::Sent { session, reply, is_in_doubt } => {
                let (client, path) = (Arc::clone(&self.client), Arc::clone(&self.path));
                let cleanup = clean_up(client, path, session, reply, is_in_doubt);
                self.client.spawn_duty(async { drop(cleanup.await) });
            }
        }
    }
}

/// Deletes the znode of a create after its owner was dropped.
async fn clean_up(
    client: Arc<ClientInner>,
    path: Arc<str>,
    sent: TrustedSession,
    reply: Option<Box<Pending<Created>>>,
    is_in_doubt: bool,
) -> Result<()> {
    if let Some(reply) = reply {
        match reply.await {
            Ok(created) => {
                let czxid = created.stat.czxid;
                let gone = sent.guaranteed_delete(&path, czxid, false, Arc::default());
                return gone.await.map(drop);
            }
            Err(error) if !may_be_there(&error, is_in_doubt) => return Ok(()),
            Err(_) => {}
        }
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let session = client.trusted_session().await?;
        if session.id() != sent.id() {
            return Err(Error::new("delete", &path, Code::SESSION_EXPIRED));
        }
        let (caught_up, look) = (session.catch_up(&path), session.exists(&path));
        match (caught_up.await, look.await) {
            // It may be of an earlier session of ours, which the servers have not ended yet.
            (Ok(()), Ok(Some(stat))) => {
                let kept = Arc::default();
                let gone = session.guaranteed_delete(&path, stat.czxid, true, kept);
                return gone.await.map(drop);
            }
            (Ok(()), Ok(None)) => return Ok(()),
            (Err(error), _) | (_, Err(error)) if !error.is_transient() => return Err(error),
            _ => {}
        }
        Timer::after(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
