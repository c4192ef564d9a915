//! One claim to a lock: the node that stands for it, from before it is created until it is gone.
//!
//! However the owner goes (success handed on, an error, a deadline, a dropped future), a claim that
//! was not taken over is deleted when it is dropped, also when nobody knows yet whether, or under
//! what name, it exists.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use uuid::Uuid;

use super::continuity::Own;
use super::layout::NodeLayout;
use super::memory::PathMemory;
use super::sent_after::SentAfter;
use super::spec::Spec;
use super::{claim_data, lookup, name};
use crate::client::{ClientInner, Created, Op, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::runtime::{Pending, Timer};
use crate::znode::{Acl, CreateMode, Stat};

pub(super) struct Claim {
    /// How to find our node when its name is not known.
    search: Search,
    label: String,
    data: Vec<u8>,
    acl: Arc<[Acl]>,
    state: State,
    /// The ends of nodes that were given up, where somebody wants to know.
    given_up: Option<Ends>,
    /// Whether its node was handed on or deleted at its end.
    is_over: bool,
}

/// The ends of nodes that are being deleted.
type Ends = Vec<Pending<bool>>;

/// How to find a claim's node.
#[derive(Clone)]
struct Search {
    client: Arc<ClientInner>,
    memory: Arc<PathMemory>,
    layout: NodeLayout,
    /// Tells it from others of this session.
    uuid: Uuid,
    sent_after: SentAfter,
    /// Whether the directory goes when no claim is left in it.
    leaves_nothing: bool,
}

impl Search {
    /// The nodes of this session that carry the claim's uuid: path and czxid of each. And the ends of those
    /// that may have been the claim's, and are being deleted.
    async fn run(&self, session: &TrustedSession) -> Result<(Vec<(Arc<str>, i64)>, Ends)> {
        let found = match &self.layout {
            NodeLayout::At(path) => Arc::new(lookup::look_at(session, path.to_string()).await?),
            NodeLayout::Under { directory, .. } => {
                self.memory.look_up(session, directory, self.sent_after).await?
            }
        };
        let claims = found.claims(self.uuid);
        let mut ends = Ends::new();
        if claims.is_empty() && session.is_ours_alone() {
            ends = self.delete_nameless(session, &found)?;
        }
        Ok((claims, ends))
    }

    /// Of the nodes whose data somebody has replaced, those that are no claim of this client must have
    /// been made by a create that was not answered, ours perhaps. They are deleted, as nobody would
    /// ever release them; who has lost one claims again.
    fn delete_nameless(&self, session: &TrustedSession, found: &lookup::Found) -> Result<Ends> {
        let mut ends = Ends::new();
        for (path, czxid) in found.nameless() {
            match self.memory.is_claim(*czxid) {
                Some(true) => {}
                Some(false) => {
                    // From now on it is known: two deletions of one claim could hit its successor, which
                    // at the lock's own path has the same name.
                    let kept = self.memory.made(*czxid);
                    ends.push(session.guaranteed_delete(path, *czxid, true, kept));
                    let path = path.to_string();
                    log!(WARN, path, "deleted a claim whose data somebody has replaced");
                }
                // It will be known once the reply has come.
                None => return Err(unknown(&self.layout)),
            }
        }
        Ok(ends)
    }

    /// Our node.
    fn node(&self, session: &TrustedSession, path: Arc<str>, czxid: i64) -> Node {
        // A name that carries its directory's czxid is given once, until the directory's counter has
        // reached its end. The lock's own path is given again and again, and the recipe's names
        // where a directory was made anew.
        let name_is_reused = match &self.layout {
            NodeLayout::Under { naming, created, .. } if naming.is_of_the_directory() => {
                self.memory.saw_claim(*created, &path);
                name::sequence(&path).is_some_and(name::is_out_of_turn)
            }
            _ => true,
        };
        let known = (self.memory.made(czxid), Arc::clone(&self.memory));
        let goes_with = self.leaves_nothing.then(|| self.directory()).flatten();
        Node { session: session.clone(), path, czxid, name_is_reused, goes_with, known }
    }

    fn directory(&self) -> Option<Arc<str>> {
        match &self.layout {
            NodeLayout::At(_) => None,
            NodeLayout::Under { directory, .. } => Some(Arc::clone(directory)),
        }
    }
}

/// A node that is certainly ours.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) session: TrustedSession,
    pub(super) path: Arc<str>,
    pub(super) czxid: i64,
    /// Whether its name can become another's.
    name_is_reused: bool,
    /// Its directory, where that is deleted after it.
    goes_with: Option<Arc<str>>,
    /// Keeps it known as a claim of this client, and what the client knows of its path.
    known: (Arc<AtomicBool>, Arc<PathMemory>),
}

impl Node {
    /// Deletes it: submits that now, and repeats it until it is certain.
    pub(super) fn guaranteed_delete(&self) -> Pending<bool> {
        self.dispose_with(self.name_is_reused)
    }

    /// Until it is gone for certain, it is a claim of this client: nobody else deletes it too.
    fn dispose_with(&self, look: bool) -> Pending<bool> {
        let known = Arc::clone(&self.known.0);
        let gone = self.session.guaranteed_delete(&self.path, self.czxid, look, known);
        if let Some(directory) = &self.goes_with {
            // The servers refuse it where somebody is left in it. Should it be lost, they remove the container some
            // time later.
            drop(self.session.delete(directory, None));
        }
        gone
    }

    /// As a claim in that directory.
    pub(super) fn in_directory(&self, directory: i64) -> Own<'_> {
        Own { session: &self.session, path: &self.path, directory, gone: &self.known.0 }
    }
}

enum State {
    /// There is no node.
    None,
    /// A create was submitted; without a reply to wait for, its outcome is unknown.
    Sent {
        session: TrustedSession,
        reply: Option<Reply>,
    },
    Placed(Node),
}

/// The reply to a create; while it is to come, the client knows so.
type Reply = (Pending<Created>, Arc<()>);

impl Claim {
    pub(super) fn new(spec: &Spec, only_tries: bool) -> Claim {
        let uuid = claim_data::new_uuid(spec.client.id());
        let search = Search {
            client: Arc::clone(&spec.client),
            memory: Arc::clone(&spec.memory),
            layout: NodeLayout::of(spec),
            uuid,
            sent_after: SentAfter::Unknown,
            leaves_nothing: spec.leaves_nothing,
        };
        Claim {
            search,
            label: spec.label.clone(),
            data: claim_data::write(uuid, &spec.label),
            acl: Arc::clone(&spec.acl),
            state: State::None,
            given_up: only_tries.then(Ends::new),
            is_over: false,
        }
    }

    /// Our node, if there is one.
    pub(super) fn node(&self) -> Option<&Node> {
        match &self.state {
            State::Placed(node) => Some(node),
            _ => None,
        }
    }

    /// What the node says.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// It is to be created in the directory that this transaction has made.
    pub(super) fn enter(&mut self, directory: i64) {
        if let NodeLayout::Under { created, .. } = &mut self.search.layout {
            *created = directory;
        }
    }

    /// Whether our node, if there is one, can be in the directory that has this stat: not if that
    /// was made anew.
    pub(super) fn can_be_in(&self, directory: &Stat) -> bool {
        let made_before = self.node().is_none_or(|node| directory.czxid < node.czxid);
        let is_named_so = match &self.search.layout {
            NodeLayout::Under { naming, created, .. } if naming.is_of_the_directory() => {
                *created == directory.czxid
            }
            _ => true,
        };
        made_before && is_named_so
    }

    /// Submits the create. Follow it up with [`confirm`](Claim::confirm).
    pub(super) fn send(&mut self, session: &TrustedSession) {
        self.send_by(session, |claim, path, mode| {
            session.create(path, &claim.data, &claim.acl, mode)
        });
    }

    /// Submits the create by somebody who gives the reply to come: in a transaction with others, say.
    pub(super) fn send_by(
        &mut self,
        session: &TrustedSession,
        create: impl FnOnce(&Claim, &str, CreateMode) -> Pending<Created>,
    ) {
        let sent = self.search.memory.sent();
        let (path, mode) = match &self.search.layout {
            NodeLayout::At(path) => (path.to_string(), CreateMode::Ephemeral),
            NodeLayout::Under { directory, naming, created } => {
                self.search.sent_after = self.search.memory.sent_after(*created);
                let prefix = name::join(directory, &naming.prefix(session.id(), *created));
                (prefix, CreateMode::EphemeralSequential)
            }
        };
        let reply = create(self, &path, mode);
        self.state = State::Sent { session: session.clone(), reply: Some((reply, sent)) };
    }

    /// The create as an operation of a transaction.
    pub(super) fn op(&self, path: &str, mode: CreateMode) -> Op {
        Op::Create { path: path.to_owned(), data: self.data.clone(), acl: self.acl.to_vec(), mode }
    }

    /// Waits for the reply to the create.
    pub(super) async fn confirm(&mut self) -> Result<&Node> {
        if let State::Sent { session, reply: pending } = &mut self.state {
            // Awaited in place: should this future be dropped, the claim still has the reply to
            // come and can clean up after it.
            let reply = match pending {
                Some((reply, _)) => reply.await,
                None => return Err(unknown(&self.search.layout)),
            };
            self.state = match reply {
                Ok(Created { path, stat }) => {
                    State::Placed(self.search.node(session, path.into(), stat.czxid))
                }
                Err(error) => {
                    if may_exist(&error) {
                        *pending = None;
                    } else {
                        self.state = State::None;
                    }
                    return Err(error);
                }
            };
        }
        self.node().ok_or_else(|| unknown(&self.search.layout))
    }

    /// Brings what is known of the node up to date with the session: a node of a session that is
    /// over is gone, one of an unknown outcome is looked up.
    pub(super) async fn reconcile(&mut self, session: &TrustedSession) -> Result<()> {
        match &mut self.state {
            State::None => {}
            State::Placed(node) if node.session.id() == session.id() => {
                node.session = session.clone();
            }
            State::Placed(_) => self.state = State::None,
            State::Sent { session: sent, .. } if sent.id() != session.id() => {
                self.state = State::None;
            }
            State::Sent { .. } => {
                let (found, ends) = self.search.run(session).await?;
                if let Some(given_up) = &mut self.given_up {
                    given_up.extend(ends);
                }
                let mut found = found.into_iter();
                self.state = match found.next() {
                    Some((path, czxid)) => State::Placed(self.search.node(session, path, czxid)),
                    None => State::None,
                };
                // There is never a second one, but a second one would block everybody for ever.
                for (path, czxid) in found {
                    drop(session.guaranteed_delete(
                        &path,
                        czxid,
                        true,
                        self.search.memory.made(czxid),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Waits until the nodes that were given up are gone: who only tries would take them for
    /// another's. Nobody else has to.
    pub(super) async fn given_up_are_gone(&mut self) {
        for gone in self.given_up.iter_mut().flat_map(|ends| ends.drain(..)) {
            let gone = gone.await;
            log!(DEBUG, ?gone, "a claim that was given up");
        }
    }

    /// Deletes the node, if there is one, and waits until it is gone.
    pub(super) async fn withdraw(&mut self) {
        self.is_over = true;
        if let Some(node) = self.take() {
            let gone = node.guaranteed_delete().await;
            log!(DEBUG, ?gone, "withdrew a claim");
        }
    }

    /// The node seems to be gone. It is deleted all the same: a node that nobody answers for would
    /// block everybody for as long as the session lives. But not its successor: if the directory
    /// went with it, another's claim may have its name by now. The next one has another uuid: a look-up
    /// for it must not find this one, which is being deleted.
    pub(super) fn give_up(&mut self) {
        if let Some(node) = self.take() {
            let gone = node.dispose_with(true);
            self.is_over = false;
            if let Some(ends) = &mut self.given_up {
                ends.push(gone);
            }
            self.search.uuid = claim_data::new_uuid(self.search.client.id());
            self.data = claim_data::write(self.search.uuid, &self.label);
        }
    }

    /// Where the node is, or would be.
    pub(super) fn layout(&self) -> &NodeLayout {
        &self.search.layout
    }

    /// Hands the node over to a tenure; the claim is then empty.
    pub(super) fn take(&mut self) -> Option<Node> {
        match std::mem::replace(&mut self.state, State::None) {
            State::Placed(node) => {
                self.is_over = true;
                Some(node)
            }
            other => {
                self.state = other;
                None
            }
        }
    }
}

/// Whether a create that ended so may have made its node: also a reply that can't be read is one.
fn may_exist(error: &Error) -> bool {
    error.is_outcome_unknown() || error.code() == Code::MARSHALLING_ERROR
}

fn unknown(layout: &NodeLayout) -> Error {
    Error::new("acquire", layout.lock(), Code::OPERATION_TIMEOUT)
}

impl Drop for Claim {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::None) {
            State::None => {
                let directory = self.search.directory();
                let may_be_left = self.search.leaves_nothing && !self.is_over;
                if let Some(directory) = directory.filter(|_| may_be_left) {
                    // The directory may have been made for it, and never used: then the servers keep it.
                    let client = Arc::clone(&self.search.client);
                    self.search.client.spawn_duty(delete_directory(client, directory));
                }
            }
            State::Placed(node) => drop(node.guaranteed_delete()),
            State::Sent { session, reply } => {
                let cleanup = clean_up(self.search.clone(), session, reply);
                self.search.client.spawn_duty(cleanup);
            }
        }
    }
}

/// Deletes a directory, if nobody is in it.
async fn delete_directory(client: Arc<ClientInner>, directory: Arc<str>) {
    while let Ok(session) = client.trusted_session().await {
        match session.delete(&directory, None).await {
            Err(error) if error.is_transient() => Timer::after(FIRST_PAUSE).await,
            deleted => return log!(DEBUG, ?deleted, "a lock's directory that was made in vain"),
        }
    }
}

/// Between two looks for a claim that was given up, when the first could not be had.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Deletes the node of a claim that was given up while its create was on its way.
async fn clean_up(search: Search, sent: TrustedSession, reply: Option<Reply>) {
    if let Some((reply, _sent)) = reply {
        match reply.await {
            Ok(Created { path, stat }) => {
                return drop(search.node(&sent, path.into(), stat.czxid).guaranteed_delete());
            }
            Err(error) if !may_exist(&error) => return,
            Err(_) => {}
        }
    }
    // Until it was looked up, or its session is over and it is gone by itself.
    let mut pause = FIRST_PAUSE;
    while let Ok(session) = search.client.trusted_session().await {
        if session.id() != sent.id() {
            return;
        }
        match search.run(&session).await {
            Ok((found, _)) => {
                for (path, czxid) in found {
                    drop(session.guaranteed_delete(&path, czxid, true, search.memory.made(czxid)));
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
