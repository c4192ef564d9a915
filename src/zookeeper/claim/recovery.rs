//! Finding a claim's znode after its create's reply was lost, and deleting unowned znodes.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::layout::NodeLayout;
use super::node::Node;
use super::sent_after::SentAfter;
use super::{lookup, pair};
use crate::client::{Created, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::retry;
use crate::runtime::{Pending, Timer};
use crate::zookeeper::name;
use crate::zookeeper::spec::LockSpec;

pub(super) type Ends = Vec<Pending<bool>>;

/// The reply to a create; while it is to come, the client knows so.
pub(super) type Reply = (Pending<Created>, Arc<()>);

#[derive(Clone)]
pub(super) struct Search {
    pub(super) lock: Arc<LockSpec>,
    pub(super) layout: NodeLayout,
    pub(super) uuid: Uuid,
    pub(super) sent_after: SentAfter,
    pub(super) is_announced: bool,
}

impl Search {
    /// The nodes of this session that carry the claim's uuid: path and czxid of each. And the ends of those
    /// that may have been the claim's, and are being deleted.
    pub(super) async fn run(
        &self,
        session: &TrustedSession,
    ) -> Result<(Vec<(Arc<str>, i64)>, Ends)> {
        let found = match &self.layout {
            NodeLayout::At(path) => Arc::new(lookup::look_at(session, path.to_string()).await?),
            NodeLayout::Under { directory, .. } => {
                let found = self.lock.memory.look_up(session, directory, self.sent_after).await?;
                // Another may have taken the look-up that ours was to be part of.
                if !found.sent_after.covers(self.sent_after) {
                    return Err(unknown(&self.lock));
                }
                found
            }
        };
        let claims = found.by_uuid.get(&self.uuid).cloned().unwrap_or_default();
        let mut ends = Ends::new();
        let znodes = if self.layout.is_pair() { 2 } else { 1 };
        if claims.len() < znodes && session.is_ours_alone() {
            ends = self.delete_nameless(session, &found)?;
        }
        Ok((claims, ends))
    }

    /// Handles our session's znodes with foreign data. One that is no claim of this client comes from a
    /// create without an answer, perhaps ours. It is deleted, because nobody would ever release it. The
    /// acquire that loses it claims again.
    fn delete_nameless(&self, session: &TrustedSession, found: &lookup::Found) -> Result<Ends> {
        let mut nobodys = Vec::new();
        for (path, czxid) in &found.nameless {
            match self.lock.memory.is_claim(*czxid) {
                // Another acquire looked it up before this one, and it may be ours.
                Some(true) if self.lock.memory.is_nobodys(*czxid) => {
                    return Err(unknown(&self.lock));
                }
                Some(true) => {}
                Some(false) => nobodys.push((path, *czxid)),
                // It will be known once the reply has come.
                None => return Err(unknown(&self.lock)),
            }
        }
        let delete = |(path, czxid): (&Arc<str>, i64)| {
            // From now on it is known: two deletions of one claim could hit its successor, which
            // at the lock's own path has the same name.
            let kept = self.lock.memory.made_for_nobody(czxid);
            let end = session.guaranteed_delete(path, czxid, true, kept);
            let path = path.to_string();
            log!(WARN, path, "deleted a claim whose data somebody has replaced");
            end
        };
        Ok(nobodys.into_iter().map(delete).collect())
    }

    /// Our node, of those that a look-up has found. There is never a second one, but a second one would block
    /// everybody for ever, as would half a claim: what is left over is deleted.
    pub(super) fn placed(
        &self,
        session: &TrustedSession,
        mut found: Vec<(Arc<str>, i64)>,
        ends: &mut Ends,
    ) -> Option<Node> {
        let node = if self.layout.is_pair() {
            let (pair, rest) = pair::complete(found);
            found = rest;
            pair.map(|(path, second, czxid)| self.node(session, path, Some(second), czxid))
        } else {
            let first = (!found.is_empty()).then(|| found.remove(0));
            first.map(|(path, czxid)| self.node(session, path, None, czxid))
        };
        for (path, czxid) in found {
            ends.push(session.guaranteed_delete(&path, czxid, true, self.lock.memory.made(czxid)));
        }
        node
    }

    /// Our node, as the reply to its create says.
    pub(super) fn created(
        &self,
        session: &TrustedSession,
        Created { path, stat }: Created,
    ) -> Node {
        let second = self.layout.is_pair().then(|| pair::second_path(&path)).flatten();
        self.node(session, path.into(), second.map(Into::into), stat.czxid)
    }

    fn node(
        &self,
        session: &TrustedSession,
        path: Arc<str>,
        second: Option<Arc<str>>,
        czxid: i64,
    ) -> Node {
        // A name that carries its directory's czxid is given once, until the directory's counter has
        // reached its end. The lock's own path is given again and again, and the recipe's names
        // where a directory was recreated.
        let name_is_reused = self.layout.directory().is_none_or(|created| {
            self.lock.memory.saw_claim(created, &path);
            name::sequence(&path).is_some_and(name::is_out_of_turn)
        });
        Node {
            session: session.clone(),
            path,
            second,
            czxid,
            name_is_reused,
            is_announced: self.is_announced && !name_is_reused,
            lock: Arc::clone(&self.lock),
            known: self.lock.memory.made(czxid),
        }
    }
}

pub(super) fn unknown(lock: &LockSpec) -> Error {
    Error::new("acquire", &lock.path, Code::OPERATION_TIMEOUT)
}

pub(super) async fn delete_directory(lock: Arc<LockSpec>) {
    while let Ok(session) = lock.client.trusted_session().await {
        match session.delete(&lock.path, None).await {
            Err(error) if error.is_transient() => Timer::after(FIRST_PAUSE).await,
            deleted => return log!(DEBUG, ?deleted, "a lock's directory that was made in vain"),
        }
    }
}

/// Between two looks for a claim that was abandoned, when the first could not be had.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Deletes the node of a claim that was abandoned while its create was in flight.
pub(super) async fn clean_up(search: Search, sent: TrustedSession, reply: Option<Reply>) {
    if let Some((reply, _sent)) = reply {
        match reply.await {
            Ok(created) => {
                return drop(search.created(&sent, created).guaranteed_delete());
            }
            Err(error) if !retry::may_be_done(error.code()) => return,
            Err(_) => {}
        }
    }
    // Until it was looked up, or its session is over and it is gone by itself.
    let mut pause = FIRST_PAUSE;
    while let Ok(session) = search.lock.client.trusted_session().await {
        if session.id() != sent.id() {
            return;
        }
        match search.run(&session).await {
            Ok((found, _)) => {
                for (path, czxid) in found {
                    drop(session.guaranteed_delete(
                        &path,
                        czxid,
                        true,
                        search.lock.memory.made(czxid),
                    ));
                }
                return;
            }
            Err(error) => {
                log!(DEBUG, %error, "looking for a claim that was given up");
                Timer::after(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
