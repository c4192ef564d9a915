//! The operations on znodes.
//!
//! Each is written once, on the [`Link`] of its session. The client's methods pick the present link.

use std::sync::Arc;

use super::heartbeat::NO_VERSION;
use super::lease::Proof;
use super::watch::{WatchFor, WatchOf};
use super::{AclList, Children, Client, Created, Link, Watch, Watched, Znode};
use crate::error::{Code, Error, Result};
use crate::path;
use crate::raw::{Credentials, WatchOn};
use crate::runtime::Pending;
use crate::znode::{Acl, CreateMode, Stat};

/// The value of a result; an error ends the operation at once.
macro_rules! checked {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Pending::ready(Err(error)),
        }
    };
}
pub(super) use checked;

/// Any version will do.
const ANY_VERSION: i32 = -1;

/// A znode that never exists.
const CATCH_UP: &str = "/zklock/catch-up";

const IS_A_CLAIM: &str =
    "a claim to a lock, and a write to it would count as its release (see announced_releases)";

/// How many bytes an access control list takes in a request.
pub(super) fn acl_len(acl: &[Acl]) -> usize {
    const NUMBERS: usize = 12;
    acl.iter().map(|entry| NUMBERS + entry.scheme.len() + entry.id.len()).sum()
}

impl Link {
    /// Refuses what the C client or the server would choke on.
    fn check(
        &self,
        op: &'static str,
        path: &str,
        valid: std::result::Result<(), &'static str>,
        data: usize,
    ) -> Result<()> {
        let refuse = |detail: String| Error::with_detail(op, path, Code::BAD_ARGUMENTS, detail);
        valid.map_err(|why| refuse(why.to_owned()))?;
        let size = path.len() + data;
        if size > self.options.max_request {
            return Err(refuse(format!(
                "{size} bytes of path, data and acl, but a request takes {} (see max_request)",
                self.options.max_request
            )));
        }
        Ok(())
    }

    pub(crate) fn create(
        &self,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
    ) -> Pending<Created> {
        let sequential = matches!(
            mode,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::PersistentSequentialWithTtl(_)
        );
        let valid = if sequential { path::validate_prefix(path) } else { path::validate(path) };
        checked!(self.check("create", path, valid, data.len() + acl_len(acl)));
        checked!(self.check_acl("create", path, acl));
        let history = Arc::clone(&self.history);
        let read = move |(path, stat): (String, Stat)| {
            history.wrote(stat.czxid);
            Ok(Created { path, stat })
        };
        self.renewing_request(Proof::Write, "create", path, read, |handle, terms, sink| {
            handle.create(terms, path, data, acl, mode, sink);
        })
    }

    pub(crate) fn delete(&self, path: &str, version: Option<i32>) -> Pending<()> {
        checked!(self.check("delete", path, path::validate(path), 0));
        self.renewing_request(Proof::Write, "delete", path, Ok, |handle, terms, sink| {
            handle.delete(terms, path, version.unwrap_or(ANY_VERSION), sink);
        })
    }

    pub(crate) fn exists(&self, path: &str) -> Pending<Option<Stat>> {
        checked!(self.check("exists", path, path::validate(path), 0));
        let pending = self.request("exists", path, Ok, |handle, terms, sink| {
            handle.exists(terms, path, WatchOn::No, sink);
        });
        pending.map(|stat| match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if error.is_no_node() => Ok(None),
            Err(error) => Err(error),
        })
    }

    pub(crate) fn exists_and_watch(self: &Arc<Self>, path: &str) -> Pending<Watched<Option<Stat>>> {
        checked!(self.check("exists", path, path::validate(path), 0));
        // The server leaves a watch also where there is no znode, so that answer has to reach the
        // table too: on the completion thread, before any event can.
        let watch = checked!(self.watch("exists", path.into(), WatchOf::Existence));
        let read = move |stat: Option<Stat>| Ok(Watched { value: stat, watch: watch() });
        self.request("exists", path, read, |handle, terms, sink| {
            let sink = Box::new(move |reply| {
                sink(match reply {
                    Ok(stat) => Ok(Some(stat)),
                    Err(Code::NO_NODE) => Ok(None),
                    Err(code) => Err(code),
                });
            });
            handle.exists(terms, path, WatchOn::Yes, sink);
        })
    }

    /// Reserves room for a watch. The result files the watch once the reply has come.
    fn watch(
        &self,
        op: &'static str,
        path: Arc<str>,
        of: WatchOf,
    ) -> Result<impl FnOnce() -> Watch + Send + use<>> {
        let Some(reserved) = self.watch_room.reserve(&path, of) else {
            let detail = format!(
                "more than {} bytes of paths are watched, which a reconnection could not do again \
                 in one request (see max_request)",
                self.watch_room.limit()
            );
            return Err(Error::with_detail(op, &path, Code::THROTTLED_OP, detail));
        };
        let watches = Arc::clone(&self.watches);
        Ok(move || {
            reserved.set(&path, of);
            watches.add(path, of)
        })
    }

    /// Whether there is room for a watch on that path.
    pub(crate) fn has_room_to_watch(&self, path: &str, purpose: WatchFor) -> bool {
        self.watch_room.has_room_for(path, purpose)
    }

    pub(crate) fn get(&self, path: &str) -> Pending<Znode> {
        checked!(self.check("get", path, path::validate(path), 0));
        let read = |(data, stat)| Ok(Znode { data, stat });
        self.request("get", path, read, |handle, terms, sink| {
            handle.get(terms, path, WatchOn::No, sink);
        })
    }

    pub(crate) fn get_and_watch(
        self: &Arc<Self>,
        path: impl Into<Arc<str>>,
    ) -> Pending<Watched<Znode>> {
        let path = path.into();
        checked!(self.check("get", &path, path::validate(&path), 0));
        let watch = checked!(self.watch("get", Arc::clone(&path), WatchOf::Data));
        let read = move |(data, stat)| Ok(Watched { value: Znode { data, stat }, watch: watch() });
        self.request("get", Arc::clone(&path), read, |handle, terms, sink| {
            handle.get(terms, &path, WatchOn::Yes, sink);
        })
    }

    /// Whether the program may write to that znode: not to a claim where releases are announced, because waiters take
    /// the first write for the release.
    pub(super) fn check_write(&self, path: &str) -> std::result::Result<(), &'static str> {
        let is_claim = path::after_directory(path::last(path)).is_some();
        if is_claim && self.own_identity().is_some() { Err(IS_A_CLAIM) } else { Ok(()) }
    }

    pub(crate) fn set(&self, path: &str, data: &[u8], version: Option<i32>) -> Pending<Stat> {
        checked!(self.check("set", path, path::validate(path), data.len()));
        let history = Arc::clone(&self.history);
        let read = move |stat: Stat| {
            history.wrote(stat.mzxid);
            Ok(stat)
        };
        self.renewing_request(Proof::Write, "set", path, read, |handle, terms, sink| {
            handle.set(terms, path, data, version.unwrap_or(ANY_VERSION), sink);
        })
    }

    pub(crate) fn children(&self, path: &str) -> Pending<Children> {
        checked!(self.check("children", path, path::validate(path), 0));
        let read = |(names, stat)| Ok(Children { names, stat });
        self.request("children", path, read, |handle, terms, sink| {
            handle.children(terms, path, WatchOn::No, sink);
        })
    }

    pub(crate) fn children_and_watch(self: &Arc<Self>, path: &str) -> Pending<Watched<Children>> {
        checked!(self.check("children", path, path::validate(path), 0));
        let watch = checked!(self.watch("children", path.into(), WatchOf::Children));
        let read =
            move |(names, stat)| Ok(Watched { value: Children { names, stat }, watch: watch() });
        self.request("children", path, read, |handle, terms, sink| {
            handle.children(terms, path, WatchOn::Yes, sink);
        })
    }

    fn get_acl(&self, path: &str) -> Pending<AclList> {
        checked!(self.check("get_acl", path, path::validate(path), 0));
        let read = |(entries, stat)| Ok(AclList { entries, stat });
        self.request("get_acl", path, read, |handle, terms, sink| {
            handle.get_acl(terms, path, sink);
        })
    }

    fn set_acl(&self, path: &str, acl: &[Acl], version: Option<i32>) -> Pending<()> {
        let valid = path::validate(path).and_then(|()| self.check_write(path));
        checked!(self.check("set_acl", path, valid, acl_len(acl)));
        checked!(self.check_acl("set_acl", path, acl));
        self.renewing_request(Proof::Write, "set_acl", path, Ok, |handle, terms, sink| {
            handle.set_acl(terms, path, acl, version.unwrap_or(ANY_VERSION), sink);
        })
    }

    pub(crate) fn sync(&self, path: &str) -> Pending<()> {
        checked!(self.check("sync", path, path::validate(path), 0));
        self.renewing_request(Proof::Sync, "sync", path, Ok, |handle, terms, sink| {
            handle.sync(terms, path, sink);
        })
    }

    /// Waits until the connected server has all that a quorum had committed at the call. A later read shows whether a
    /// write without a reply was done. A deposed leader may still answer a sync, but not this: it asks for a deletion,
    /// and a quorum has to commit the refusal.
    pub(crate) fn catch_up(&self, path: &str) -> Pending<()> {
        let asked = self.renewing_request(Proof::Write, "sync", path, Ok, |handle, terms, sink| {
            handle.delete(terms, CATCH_UP, NO_VERSION, sink);
        });
        asked.map(|refused| match refused {
            Err(error) if error.code().is_server_decision() => Ok(()),
            answer => answer,
        })
    }

    /// Creates a znode's parents, all that are missing: as containers, which the server removes
    /// some time after they became empty, or persistent where it knows no containers. Gives the nearest, if this has made
    /// it.
    pub(crate) async fn create_parents(&self, path: &str, acl: &[Acl]) -> Result<Option<Stat>> {
        let mut made = None;
        let mut missing = Vec::new();
        let mut at = path::parent(path);
        while let Some(path) = at.filter(|path| *path != "/") {
            match self.make_container(path, acl).await {
                Ok(stat) => {
                    made = stat;
                    break;
                }
                Err(error) if error.is_no_node() => missing.push(path),
                Err(error) => return Err(error),
            }
            at = path::parent(path);
        }
        for path in missing.into_iter().rev() {
            made = self.make_container(path, acl).await?;
        }
        Ok(made)
    }

    /// `None` if it was there.
    async fn make_container(&self, path: &str, acl: &[Acl]) -> Result<Option<Stat>> {
        let create = |mode| self.create(path, b"", acl, mode);
        let created = match create(CreateMode::Container).await {
            Err(error) if error.code() == Code::UNIMPLEMENTED => {
                create(CreateMode::Persistent).await
            }
            created => created,
        };
        match created {
            Err(error) if error.is_node_exists() => Ok(None),
            created => created.map(|created| Some(created.stat)),
        }
    }
}

/// # Operations
///
/// All operations share these errors:
/// - `BAD_ARGUMENTS`: refused before anything was sent. The path is not allowed, or the request is too large.
/// - `CONNECTION_LOSS`, `OPERATION_TIMEOUT`, `RUNTIME_INCONSISTENCY`, `CLOSING`: the outcome is unknown. A write may
///   have happened.
/// - `SESSION_EXPIRED`, `AUTH_FAILED`, `INVALID_STATE`: the session is over.
/// - `NO_AUTH`: the znode's ACL forbids it.
/// - `THROTTLED_OP`: too many requests wait to be sent, or too much is watched for one more watch. Nothing was done.
///
/// Cancel safety: dropping the [`Pending`] drops only the result. The request is still executed.
impl Client {
    /// Creates a znode that all clients may read and write. The server appends ten digits to the name of a sequential
    /// znode: use the returned path.
    ///
    /// # Errors
    /// - `NODE_EXISTS`
    /// - `NO_NODE`: the parent is missing.
    /// - `NO_CHILDREN_FOR_EPHEMERALS`
    /// - `UNIMPLEMENTED`: a TTL, on a server where they are disabled.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Pending<Created> {
        self.create_with_acl(path, data, mode, &Acl::open())
    }

    /// As [`create`](Client::create), with an access control list.
    ///
    /// # Errors
    /// As [`create`](Client::create), and `INVALID_ACL`.
    pub fn create_with_acl(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Pending<Created> {
        checked!(self.inner().link("create", path)).create(path, data, acl, mode)
    }

    /// Deletes a znode. With a version, only if its data has that version.
    ///
    /// # Errors
    /// `NO_NODE`, `BAD_VERSION`, `NOT_EMPTY`.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Pending<()> {
        checked!(self.inner().link("delete", path)).delete(path, version)
    }

    /// The stat of a znode, or `None` if it does not exist.
    pub fn exists(&self, path: &str) -> Pending<Option<Stat>> {
        checked!(self.inner().link("exists", path)).exists(path)
    }

    /// As [`exists`](Client::exists), with a watch for the znode's creation, change or deletion.
    pub fn exists_and_watch(&self, path: &str) -> Pending<Watched<Option<Stat>>> {
        checked!(self.inner().link("exists", path)).exists_and_watch(path)
    }

    /// The data and stat of a znode.
    ///
    /// # Errors
    /// `NO_NODE`.
    pub fn get(&self, path: &str) -> Pending<Znode> {
        checked!(self.inner().link("get", path)).get(path)
    }

    /// As [`get`](Client::get), with a watch for the znode's change or deletion. If the znode does not exist, no watch
    /// is left.
    ///
    /// # Errors
    /// `NO_NODE`.
    pub fn get_and_watch(&self, path: &str) -> Pending<Watched<Znode>> {
        checked!(self.inner().link("get", path)).get_and_watch(path)
    }

    /// Replaces the data of a znode. With a version, only if its data has that version.
    ///
    /// # Errors
    /// `NO_NODE`, `BAD_VERSION`.
    pub fn set(&self, path: &str, data: &[u8], version: Option<i32>) -> Pending<Stat> {
        let link = checked!(self.inner().link("set", path));
        checked!(link.check("set", path, link.check_write(path), data.len()));
        link.set(path, data, version)
    }

    /// The children of a znode, and its stat.
    ///
    /// # Errors
    /// `NO_NODE`.
    pub fn children(&self, path: &str) -> Pending<Children> {
        checked!(self.inner().link("children", path)).children(path)
    }

    /// As [`children`](Client::children), with a watch for the next child that is created or deleted, or for the
    /// znode's deletion.
    ///
    /// # Errors
    /// `NO_NODE`.
    pub fn children_and_watch(&self, path: &str) -> Pending<Watched<Children>> {
        checked!(self.inner().link("children", path)).children_and_watch(path)
    }

    /// The access control list and stat of a znode.
    ///
    /// # Errors
    /// `NO_NODE`.
    pub fn get_acl(&self, path: &str) -> Pending<AclList> {
        checked!(self.inner().link("get_acl", path)).get_acl(path)
    }

    /// Replaces the access control list of a znode. With a version, only if the list has that version
    /// (`Stat::aversion`).
    ///
    /// # Errors
    /// `NO_NODE`, `BAD_VERSION`, `INVALID_ACL`.
    pub fn set_acl(&self, path: &str, acl: &[Acl], version: Option<i32>) -> Pending<()> {
        checked!(self.inner().link("set_acl", path)).set_acl(path, acl, version)
    }

    /// Waits until the connected server has caught up with the leader. A later read shows all writes that were done
    /// before the call.
    pub fn sync(&self, path: &str) -> Pending<()> {
        checked!(self.inner().link("sync", path)).sync(path)
    }

    /// Adds an identity, such as `digest` with `user:password`, to this session and later ones. Waits for a connection
    /// first.
    ///
    /// # Errors
    /// `AUTH_FAILED`: the server refuses it. The client cannot be used any more.
    pub fn add_auth(&self, scheme: &str, secret: &[u8]) -> Pending<()> {
        let credentials = Credentials { scheme: scheme.to_owned(), secret: secret.to_vec() };
        let valid = self.inner().options.check_credentials(&credentials);
        checked!(valid.map_err(|why| Error::with_detail("add_auth", "", Code::BAD_ARGUMENTS, why)));
        self.inner().add_auth(credentials)
    }

    /// Creates a persistent znode without data, and its missing parents. If the znode exists, it succeeds. It takes
    /// several requests.
    ///
    /// # On connection loss
    /// Some of the znodes may be created. Call it again to create the others.
    pub fn make_path(&self, path: &str) -> Pending<()> {
        let link = checked!(self.inner().link("create", path));
        checked!(link.check("create", path, path::validate(path), 0));
        let znode = path.to_owned();
        Pending::run("create", path, async move {
            let path = znode;
            let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
            for end in ends.filter(|end| *end > 1) {
                match link.create(&path[..end], b"", &Acl::open(), CreateMode::Persistent).await {
                    Err(error) if error.is_node_exists() => {}
                    // The server asks for the permission to create before it looks.
                    Err(error) if error.code() == Code::NO_AUTH => {
                        if link.exists(&path[..end]).await?.is_none() {
                            return Err(error);
                        }
                    }
                    created => drop(created?),
                }
            }
            Ok(())
        })
    }
}
