//! Submits requests. Each names its completion beside its call; nothing here blocks.

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use super::convert::{self, AclVector};
use super::handle::{Credentials, Handle};
use super::multi::{MultiMemory, RawOp, RawOpResult};
use super::slots::{Receiver, Sink};
use super::{callback, sys, watcher};
use crate::error::Code;
use crate::znode::{Acl, CreateMode, Stat};

/// Whether a read leaves a watch on what it read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchOn {
    No,
    Yes,
}

/// Unwraps an argument that C can take, or refuses the request.
macro_rules! argument {
    ($argument:expr, $receiver:expr) => {
        match $argument {
            Ok(value) => value,
            Err(code) => return $receiver.fail(code),
        }
    };
}

impl Handle {
    fn watch_context(&self) -> *mut c_void {
        watcher::context(self.context())
    }

    fn watcher_fn(watch: WatchOn) -> sys::watcher_fn {
        match watch {
            WatchOn::Yes => Some(watcher::watcher),
            WatchOn::No => None,
        }
    }

    pub(crate) fn create(
        &self,
        deadline: Option<Instant>,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
        sink: Sink<(String, Stat)>,
    ) {
        let receiver = Receiver::Created(sink);
        let path = argument!(convert::c_string(path), receiver);
        let len = argument!(convert::c_len(data.len()), receiver);
        let acl = argument!(AclVector::new(acl), receiver);
        let acl = (acl.as_c(), acl);
        let (mode, ttl) = argument!(mode_of(mode), receiver);
        self.submit(deadline, receiver, None, |zh, context| match ttl {
            // SAFETY: `submit` keeps the handle open; path, data and ACL outlive the call, which
            // serialises them; the context is a number.
            None => unsafe {
                sys::zoo_acreate2(
                    zh,
                    path.as_ptr(),
                    data.as_ptr().cast(),
                    len,
                    &acl.0,
                    mode,
                    Some(callback::created),
                    context,
                )
            },
            // SAFETY: as above.
            Some(ttl) => unsafe {
                sys::zoo_acreate2_ttl(
                    zh,
                    path.as_ptr(),
                    data.as_ptr().cast(),
                    len,
                    &acl.0,
                    mode,
                    ttl,
                    Some(callback::created),
                    context,
                )
            },
        });
    }

    pub(crate) fn delete(
        &self,
        deadline: Option<Instant>,
        path: &str,
        version: i32,
        sink: Sink<()>,
    ) {
        let receiver = Receiver::Void(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: `submit` keeps the handle open; the path outlives the call, which serialises
            // it; the context is a number.
            unsafe { sys::zoo_adelete(zh, path.as_ptr(), version, Some(callback::void), context) }
        });
    }

    pub(crate) fn exists(
        &self,
        deadline: Option<Instant>,
        path: &str,
        watch: WatchOn,
        sink: Sink<Stat>,
    ) {
        let receiver = Receiver::Stat(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: `submit` keeps the handle open; the path outlives the call, which copies it;
            // both contexts are numbers.
            unsafe {
                sys::zoo_awexists(
                    zh,
                    path.as_ptr(),
                    Handle::watcher_fn(watch),
                    self.watch_context(),
                    Some(callback::stat),
                    context,
                )
            }
        });
    }

    pub(crate) fn get(
        &self,
        deadline: Option<Instant>,
        path: &str,
        watch: WatchOn,
        sink: Sink<(Vec<u8>, Stat)>,
    ) {
        let receiver = Receiver::Data(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `exists`.
            unsafe {
                sys::zoo_awget(
                    zh,
                    path.as_ptr(),
                    Handle::watcher_fn(watch),
                    self.watch_context(),
                    Some(callback::data),
                    context,
                )
            }
        });
    }

    pub(crate) fn set(
        &self,
        deadline: Option<Instant>,
        path: &str,
        data: &[u8],
        version: i32,
        sink: Sink<Stat>,
    ) {
        let receiver = Receiver::Stat(sink);
        let path = argument!(convert::c_string(path), receiver);
        let len = argument!(convert::c_len(data.len()), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `delete`; the data too outlives the call, which serialises it.
            unsafe {
                sys::zoo_aset(
                    zh,
                    path.as_ptr(),
                    data.as_ptr().cast(),
                    len,
                    version,
                    Some(callback::stat),
                    context,
                )
            }
        });
    }

    pub(crate) fn children(
        &self,
        deadline: Option<Instant>,
        path: &str,
        watch: WatchOn,
        sink: Sink<(Vec<String>, Stat)>,
    ) {
        let receiver = Receiver::Children(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `exists`.
            unsafe {
                sys::zoo_awget_children2(
                    zh,
                    path.as_ptr(),
                    Handle::watcher_fn(watch),
                    self.watch_context(),
                    Some(callback::children),
                    context,
                )
            }
        });
    }

    pub(crate) fn get_acl(
        &self,
        deadline: Option<Instant>,
        path: &str,
        sink: Sink<(Vec<Acl>, Stat)>,
    ) {
        let receiver = Receiver::Acl(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `delete`.
            unsafe { sys::zoo_aget_acl(zh, path.as_ptr(), Some(callback::acl), context) }
        });
    }

    pub(crate) fn set_acl(
        &self,
        deadline: Option<Instant>,
        path: &str,
        acl: &[Acl],
        version: i32,
        sink: Sink<()>,
    ) {
        let receiver = Receiver::Void(sink);
        let path = argument!(convert::c_string(path), receiver);
        let acl = argument!(AclVector::new(acl), receiver);
        let mut acl = (acl.as_c(), acl);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `delete`; the ACL too outlives the call, which only reads it.
            unsafe {
                sys::zoo_aset_acl(
                    zh,
                    path.as_ptr(),
                    version,
                    &mut acl.0,
                    Some(callback::void),
                    context,
                )
            }
        });
    }

    /// Waits until the connected server has caught up with the leader.
    pub(crate) fn sync(&self, deadline: Option<Instant>, path: &str, sink: Sink<()>) {
        // The completion's string is the path given; nobody needs it.
        let receiver = Receiver::Synced(sink);
        let path = argument!(convert::c_string(path), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: as in `delete`.
            unsafe { sys::zoo_async(zh, path.as_ptr(), Some(callback::synced), context) }
        });
    }

    /// The sink runs on the C client's IO thread, perhaps under one of its locks: it may do no
    /// more than signal.
    pub(crate) fn add_auth(
        &self,
        deadline: Option<Instant>,
        credentials: &Credentials,
        sink: Sink<()>,
    ) {
        let receiver = Receiver::Void(sink);
        let scheme = argument!(convert::c_string(&credentials.scheme), receiver);
        let len = argument!(convert::c_len(credentials.secret.len()), receiver);
        self.submit(deadline, receiver, None, |zh, context| {
            // SAFETY: `submit` keeps the handle open; scheme and secret outlive the call, which
            // copies them; the context is a number.
            unsafe {
                sys::zoo_add_auth(
                    zh,
                    scheme.as_ptr(),
                    credentials.secret.as_ptr().cast(),
                    len,
                    Some(callback::void),
                    context,
                )
            }
        });
    }

    /// All or nothing. The sink gets one result for each operation, also when the server refused
    /// the whole; then one of them has the reason.
    pub(crate) fn multi(
        &self,
        deadline: Option<Instant>,
        ops: &[RawOp<'_>],
        sink: Sink<Vec<RawOpResult>>,
    ) {
        let receiver = Receiver::Multi(sink);
        let mut memory = argument!(MultiMemory::new(ops), receiver);
        let (count, ops, results) = memory.as_c();
        self.submit(deadline, receiver, Some(memory), |zh, context| {
            // SAFETY: `submit` keeps the handle open; what the pointers lead to is owned by the
            // slot, which lives until the completion ran or the handle is closed; the context is a
            // number.
            unsafe { sys::zoo_amulti(zh, count, ops, results, Some(callback::multi), context) }
        });
    }
}

/// The server keeps a time to live in 40 bits: a little under 35 years.
const MAX_TTL_MS: i64 = (1 << 40) - 1;

/// The C client's number for a mode, and the time to live in milliseconds where it has one.
fn mode_of(mode: CreateMode) -> Result<(c_int, Option<i64>), Code> {
    let ttl = |ttl: Duration| {
        let millis = i64::try_from(ttl.as_millis()).map_err(|_| Code::BAD_ARGUMENTS)?;
        if (1..=MAX_TTL_MS).contains(&millis) { Ok(Some(millis)) } else { Err(Code::BAD_ARGUMENTS) }
    };
    Ok(match mode {
        CreateMode::Persistent => (0, None),
        CreateMode::Ephemeral => (1, None),
        CreateMode::PersistentSequential => (2, None),
        CreateMode::EphemeralSequential => (3, None),
        CreateMode::Container => (4, None),
        CreateMode::PersistentWithTtl(time) => (5, ttl(time)?),
        CreateMode::PersistentSequentialWithTtl(time) => (6, ttl(time)?),
    })
}
