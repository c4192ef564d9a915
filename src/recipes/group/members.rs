//! The members of a group, as a list and as a stream.
//!
//! Whatever changes in a group wakes all who watch it, and each of them lists it again: of a thousand members that watch
//! each other, each that comes or goes costs a thousand listings of a thousand names. So what a member says is read
//! once, and who was notified waits a moment before it lists again, longer the larger the group is: changes that come
//! together cost one listing, and the watchers' listings are spread out.

use std::collections::HashMap;
use std::time::Duration;

use futures_lite::stream;

use super::super::persistent::run;
use super::Group;
use crate::client::{Children, TrustedSession, Watch, Znode};
use crate::error::{Code, Error, Result};
use crate::path;
use crate::process::{Process, inherited};
use crate::retry;
use crate::runtime::{Pending, Timer, Updates};

/// How long changes are collected for each member that there is, and at most.
const PAUSE_FOR_EACH: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The name of its znode. It stays the same during the membership and is never reused.
    pub id: String,
    /// The data that it joined with.
    pub data: Vec<u8>,
    /// The session of its znode.
    pub session: i64,
    /// The transaction that created its znode. Later members have a larger one.
    pub joined: i64,
}

/// The members of a group as they change: see [`Group::watch_members`].
pub type Members = Updates<Result<Vec<Member>>>;

/// The state of a group, as far as known.
#[derive(Default)]
struct Looked {
    known: HashMap<String, Member>,
    /// The children at the last look, in alphabetical order, and how often one had come or gone by then.
    listed: Option<(Vec<String>, i32)>,
    /// Ends when there may be others than are known.
    watch: Option<(Watch, TrustedSession)>,
}

impl Group {
    /// The present members in the order in which they joined; empty if no member has joined yet. It costs a listing,
    /// and a read for each member.
    ///
    /// Cancel safety: it changes nothing.
    ///
    /// # Errors
    /// It waits for a server to answer.
    /// - `BAD_ARGUMENTS`: the path is not allowed.
    /// - `NO_AUTH`
    /// - `OPERATION_TIMEOUT`: the [limit](Pending::within) has passed.
    /// - Why the client is closed, if it is.
    pub fn members(&self) -> Pending<Vec<Member>> {
        let group = self.clone();
        run("members", self.path(), async move { list(group).await })
    }

    /// Watches the members, in the order in which they joined: the present ones first, then each change. It is a stream
    /// and a blocking receiver.
    ///
    /// Members that come and go between two looks are left out. A member that joined again in another session is a
    /// change only if its place has changed. It costs one watch, one listing for each change, and one read for each new
    /// member; if one came and went between two looks, one read for each member. Changes within a short time count as
    /// one: 0.1 ms for each member, at most one second.
    ///
    /// # Errors
    /// As [`members`](Group::members). It ends after an error.
    ///
    /// # On connection loss
    /// It continues on the next connection or session and keeps what it has reported.
    pub fn watch_members(&self) -> Members {
        let in_a_child = Err(inherited("watch_members", self.path()));
        let watching = Some((self.clone(), None, Looked::default()));
        let stream = stream::unfold(watching, |watching| async {
            let (group, reported, looked) = watching?;
            let others = async {
                path::validate_chosen(group.path()).map_err(|why| refused(group.path(), why))?;
                others_than(&group, reported, looked).await
            };
            Some(match others.await {
                Ok((looked, members)) => {
                    let reported = Some(ids(&members));
                    (Ok(members), Some((group, reported, looked)))
                }
                Err(error) => (Err(error), None),
            })
        });
        Updates::new(Process::this(), in_a_child, stream)
    }
}

fn refused(path: &str, why: &'static str) -> Error {
    Error::with_detail("members", path, Code::BAD_ARGUMENTS, why)
}

fn ids(members: &[Member]) -> Vec<String> {
    members.iter().map(|member| member.id.clone()).collect()
}

/// The present members.
async fn list(group: Group) -> Result<Vec<Member>> {
    let mut looked = Looked::default();
    loop {
        let session = group.client.inner().trusted_session().await?;
        match looked.look(&group, &session, false).await {
            Err(error) if error.is_transient() => Timer::after(4 * retry::SOON).await,
            members => return members,
        }
    }
}

/// The members, as soon as they are others than those that were reported.
async fn others_than(
    group: &Group,
    reported: Option<Vec<String>>,
    mut looked: Looked,
) -> Result<(Looked, Vec<Member>)> {
    loop {
        if let Some((watch, session)) = looked.watch.take() {
            // How it ends is no matter: the next look tells.
            futures_lite::future::or(async { drop(watch.await) }, session.lost()).await;
            Timer::after(looked.pause()).await;
        }
        let session = group.client.inner().trusted_session().await?;
        match looked.look(group, &session, true).await {
            Ok(members) if reported.as_ref() != Some(&ids(&members)) => {
                return Ok((looked, members));
            }
            Ok(_) => {}
            Err(error) if error.code() == Code::THROTTLED_OP => {
                Timer::after(2 * retry::WITHOUT_A_WATCH).await;
                let members = looked.look(group, &session, false).await;
                if let Ok(members) = members {
                    if reported.as_ref() != Some(&ids(&members)) {
                        return Ok((looked, members));
                    }
                }
            }
            Err(error) if error.is_transient() => {
                // A member that could not be read may be the last change for long.
                looked.watch = None;
                Timer::after(4 * retry::SOON).await;
            }
            Err(error) => return Err(error),
        }
    }
}

impl Looked {
    /// How long changes are collected: a different time for each who watches.
    fn pause(&self) -> Duration {
        let members = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let longest = PAUSE_FOR_EACH.saturating_mul(members).min(LONGEST_PAUSE);
        longest.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Looks once; leaves a watch where one is wanted.
    async fn look(
        &mut self,
        group: &Group,
        session: &TrustedSession,
        watch: bool,
    ) -> Result<Vec<Member>> {
        let path = group.path();
        let names = self.names(path, session, watch).await;
        let (names, changes) = names.map_err(|error| {
            Error::with_detail("members", path, error.code(), error.to_string())
        })?;
        if self.has_hidden_changes(&names, changes) {
            self.known.clear();
        }
        self.listed = Some((names.clone(), changes));
        self.known.retain(|name, _| names.binary_search(name).is_ok());
        // All at once.
        let new = names.into_iter().filter(|name| !self.known.contains_key(name));
        let above = path.trim_end_matches('/');
        let reads = new.map(|name| (session.get(&format!("{above}/{name}")), name));
        let reads: Vec<_> = reads.collect();
        for (read, id) in reads {
            match read.await {
                // A child that is no member: it is owned by no session.
                Ok(znode) if !znode.stat.is_ephemeral() => {}
                Ok(Znode { data, stat }) => {
                    let (session, joined) = (stat.ephemeral_owner, stat.czxid);
                    self.known.insert(id.clone(), Member { id, data, session, joined });
                }
                // It has left meanwhile, which ends the watch.
                Err(error) if error.is_no_node() => {}
                Err(error) => return Err(error),
            }
        }
        let mut members: Vec<Member> = self.known.values().cloned().collect();
        members.sort_unstable_by_key(|member| member.joined);
        Ok(members)
    }

    /// Whether more have come or gone than the names show: a member has joined again under its name, in another session.
    fn has_hidden_changes(&self, names: &[String], changes: i32) -> bool {
        self.listed.as_ref().is_some_and(|(before, earlier)| {
            let missing_in = |all: &[String], some: &[String]| {
                some.iter().filter(|name| all.binary_search(name).is_err()).count()
            };
            let shown = missing_in(before, names) + missing_in(names, before);
            changes.wrapping_sub(*earlier) != i32::try_from(shown).unwrap_or(i32::MAX)
        })
    }

    /// The names of the children, in alphabetical order, and how often one has come or gone.
    async fn names(
        &mut self,
        path: &str,
        session: &TrustedSession,
        watch: bool,
    ) -> Result<(Vec<String>, i32)> {
        loop {
            let listed = if watch {
                let listed = session.children_and_watch(path).await;
                listed.map(|listed| (listed.value, Some(listed.watch)))
            } else {
                session.children(path).await.map(|listed| (listed, None))
            };
            match listed {
                Ok((Children { mut names, stat }, watch)) => {
                    self.watch = watch.map(|watch| (watch, session.clone()));
                    names.sort_unstable();
                    return Ok((names, stat.cversion));
                }
                Err(error) if !error.is_no_node() => return Err(error),
                Err(_) if !watch => return Ok((Vec::new(), 0)),
                Err(_) => {}
            }
            // Nobody has joined it yet.
            let looked = session.exists_and_watch(path).await?;
            if looked.value.is_none() {
                self.watch = Some((looked.watch, session.clone()));
                return Ok((Vec::new(), 0));
            }
        }
    }
}
