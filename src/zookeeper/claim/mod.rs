//! One claim to a lock: the node that stands for it, from before it is created until it is gone.
//!
//! Dropping a claim deletes it, unless a guard has taken it over. This holds for every end of its owner:
//! an error, a deadline, a dropped future. It holds even while it is unknown whether the claim exists, or
//! under what name.

mod layout;
pub(super) mod lookup;
pub(super) mod node;
pub(super) mod pair;
pub(super) mod payload;
mod recovery;
pub(super) mod sent_after;

use std::sync::Arc;
use std::time::Instant;

use super::acquire::listing::Listing;
use super::name;
use super::shortcuts::announced;
use super::shortcuts::succession::UNWATCHED;
use super::spec::Spec;
use crate::client::{Created, Op, TrustedSession};
use crate::error::Result;
use crate::lock::Strategy;
use crate::logging::log;
use crate::retry;
use crate::runtime::{Pending, now};
use crate::znode::CreateMode;
use layout::NodeLayout;
use node::Node;
use recovery::{Ends, Reply, Search, clean_up, delete_directory, unknown};
use sent_after::SentAfter;

pub(super) struct Claim {
    /// How to find our node if its name is unknown.
    search: Search,
    data: Vec<u8>,
    /// Whether its release is announced if its session can.
    may_announce: bool,
    state: State,
    /// When its create was submitted.
    sent: Instant,
    /// Pending deletions of abandoned nodes, if the attempt waits for them.
    abandoned: Option<Ends>,
    /// Whether its node was handed over or deleted.
    is_over: bool,
}

enum State {
    None,
    /// A create was submitted; without a reply to wait for, its outcome is unknown.
    Sent {
        session: TrustedSession,
        reply: Option<Reply>,
    },
    Placed(Node),
}

impl Claim {
    pub(super) fn new(spec: &Spec, only_tries: bool) -> Claim {
        let lock = &spec.lock;
        let uuid = payload::new_uuid(lock.client.id());
        let token = spec.hold.changes.as_ref().map(|present| present.token);
        let search = Search {
            lock: Arc::clone(lock),
            layout: NodeLayout::of(spec),
            uuid,
            sent_after: SentAfter::Unknown,
            is_announced: false,
        };
        // It costs a little, and gains nothing where nobody waits.
        let may_announce = lock.client.announces_releases()
            && search.layout.directory().is_some()
            && spec.naming.is_by_number_alone()
            && lock.memory.is_contended();
        Claim {
            search,
            data: payload::write(uuid, &spec.hold.label, token),
            may_announce,
            state: State::None,
            sent: now(),
            abandoned: (only_tries || token.is_some()).then(Ends::new),
            is_over: false,
        }
    }

    pub(super) fn node(&self) -> Option<&Node> {
        match &self.state {
            State::Placed(node) => Some(node),
            _ => None,
        }
    }

    /// Until when it is believed to be there although nobody watches it.
    pub(super) fn young_until(&self) -> Instant {
        self.sent + UNWATCHED
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Sets the directory, by the transaction that made it.
    pub(super) fn enter(&mut self, directory: i64) {
        if let NodeLayout::Under { created, .. } = &mut self.search.layout {
            *created = directory;
        }
    }

    /// Puts the claim in the place of the one with this number. `None`: at the end of the queue.
    pub(super) fn take_place(&mut self, number: Option<i32>) {
        if let NodeLayout::Under { place, .. } = &mut self.search.layout {
            *place = number;
        }
    }

    /// Whether our node, if there is one, is all in that listing, and the directory was not recreated since.
    pub(super) fn is_in(&self, listing: &Listing) -> bool {
        let czxid = listing.directory.czxid;
        let is_named_so = self.search.layout.directory().is_none_or(|created| created == czxid);
        let is_there = self.node().is_none_or(|node| {
            let is_listed = |second: &Arc<str>| listing.find(name::last(second)).is_some();
            czxid < node.czxid && node.second.as_ref().is_none_or(is_listed)
        });
        is_named_so && is_there
    }

    /// Submits the create. Follow it up with [`confirm`](Claim::confirm).
    pub(super) fn send(&mut self, session: &TrustedSession) {
        let identity = session.own_identity().filter(|_| self.may_announce);
        self.search.is_announced = identity.is_some();
        self.send_by(session, |claim, path, mode| {
            if let Some(second) = claim.search.layout.second() {
                let (first, second) = (claim.op(path, mode), claim.op(&second, mode));
                return pair::create(session, first, second, claim.data.clone());
            }
            let Some(id) = identity else {
                return session.create(path, &claim.data, &claim.search.lock.acl, mode);
            };
            let (data, acl) = announced::protected(&claim.data, &claim.search.lock.acl, id);
            session.create(path, &data, &acl, mode)
        });
    }

    /// Lets the caller submit the create, for example in a transaction with others.
    pub(super) fn send_by(
        &mut self,
        session: &TrustedSession,
        create: impl FnOnce(&Claim, &str, CreateMode) -> Pending<Created>,
    ) {
        let sent = self.search.lock.memory.sent();
        let (path, mode) = match &self.search.layout {
            NodeLayout::At(path) => (path.to_string(), CreateMode::Ephemeral),
            NodeLayout::Under { directory, naming, created, place: Some(number) } => {
                self.search.sent_after = SentAfter::Unknown;
                let nonce = self.search.uuid.as_u64_pair().1;
                let name = naming.in_the_place_of(*created, nonce, *number);
                (name::join(directory, &name), CreateMode::Ephemeral)
            }
            NodeLayout::Under { directory, naming, created, place: None } => {
                self.search.sent_after = self.search.lock.memory.sent_after(*created);
                let prefix = name::join(directory, &naming.prefix(session.id(), *created));
                (prefix, CreateMode::EphemeralSequential)
            }
        };
        self.sent = now();
        let reply = create(self, &path, mode);
        self.state = State::Sent { session: session.clone(), reply: Some((reply, sent)) };
    }

    pub(super) fn op(&self, path: &str, mode: CreateMode) -> Op {
        Op::Create {
            path: path.to_owned(),
            data: self.data.clone(),
            acl: self.search.lock.acl.to_vec(),
            mode,
        }
    }

    pub(super) async fn confirm(&mut self) -> Result<&Node> {
        if let State::Sent { session, reply: pending } = &mut self.state {
            // Awaited in place: should this future be dropped, the claim still has the reply to
            // come and can clean up after it.
            let reply = match pending {
                Some((reply, _)) => reply.await,
                None => return Err(unknown(&self.search.lock)),
            };
            self.state = match reply {
                Ok(created) => State::Placed(self.search.created(session, created)),
                Err(error) => {
                    if retry::may_be_done(error.code()) {
                        *pending = None;
                    } else {
                        self.state = State::None;
                    }
                    return Err(error);
                }
            };
        }
        self.node().ok_or_else(|| unknown(&self.search.lock))
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
                let (found, mut ends) = self.search.run(session).await?;
                let node = self.search.placed(session, found, &mut ends);
                self.state = node.map_or(State::None, State::Placed);
                if let Some(abandoned) = &mut self.abandoned {
                    abandoned.extend(ends);
                }
            }
        }
        Ok(())
    }

    /// Waits until the abandoned nodes are gone: a try would take them for
    /// another's. Nobody else has to.
    pub(super) async fn abandoned_are_gone(&mut self) {
        for gone in self.abandoned.iter_mut().flat_map(|ends| ends.drain(..)) {
            let gone = gone.await;
            log!(DEBUG, ?gone, "a claim that was given up");
        }
    }

    /// Deletes the node, if there is one: no other follows.
    pub(super) fn withdraw(&mut self) {
        self.is_over = true;
        if let Some(node) = self.take() {
            self.abandoned.get_or_insert_default().push(node.guaranteed_delete());
        }
    }

    /// The node seems to be gone. It is deleted anyway: a node that nobody answers for would
    /// block everybody for as long as the session lives. But not its successor: if the directory
    /// went with it, another's claim may have its name by now. The next one has another uuid: a look-up
    /// for it must not find this one, which is being deleted.
    pub(super) fn abandon(&mut self) {
        if let Some(node) = self.take() {
            let gone = node.delete(true);
            self.is_over = false;
            if let Some(ends) = &mut self.abandoned {
                ends.push(gone);
            }
            self.search.uuid = payload::new_uuid(self.search.lock.client.id());
            // Its owner stays, whichever thread makes the next.
            payload::set_uuid(&mut self.data, self.search.uuid);
        }
    }

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

impl Drop for Claim {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::None) {
            State::None => {
                let lock = &self.search.lock;
                if lock.leaves_nothing && !self.is_over && lock.strategy == Strategy::Queue {
                    // The directory may have been made for it, and never used: then the servers keep it.
                    lock.client.spawn_duty(delete_directory(Arc::clone(lock)));
                }
            }
            State::Placed(node) => drop(node.guaranteed_delete()),
            State::Sent { session, reply } => {
                let cleanup = clean_up(self.search.clone(), session, reply);
                self.search.lock.client.spawn_duty(cleanup);
            }
        }
    }
}
