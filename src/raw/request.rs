//! Submits requests. Each names its completion beside its call; nothing here blocks.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use super::convert::{self, AclVector};
use super::handle::{Credentials, HandleState, Requests, Sink, Terms, WatchOn};
use super::multi::{MultiMemory, RawOp, RawOpResult};
use super::slots::Receiver;
use super::window::{Call, Request};
use super::zhandle::Zhandle;
use super::{callback, sys, watcher};
use crate::error::Code;
use crate::znode::{Acl, CreateMode, Stat};

/// Unwraps an argument that C can take, or refuses the request.
macro_rules! argument {
    ($argument:expr, $receiver:expr) => {
        match $argument {
            Ok(value) => value,
            Err(code) => return $receiver.fail(code),
        }
    };
}

/// A request about a path, perhaps with data: `call` gets both as C takes them.
struct About<'a, F> {
    path: &'a str,
    data: &'a [u8],
    call: F,
}

impl<F> Request for About<'_, F>
where
    F: FnOnce(*mut sys::zhandle_t, *const c_char, *const c_char, *const c_void) -> c_int
        + Send
        + 'static,
{
    fn send(self, zh: *mut sys::zhandle_t, context: *const c_void) -> c_int {
        let data = self.data.as_ptr().cast();
        let sent =
            convert::with_c_string(self.path, |path| (self.call)(zh, path.as_ptr(), data, context));
        sent.unwrap_or_else(Code::as_raw)
    }

    fn keep(self) -> Call {
        let (path, data, call) = (self.path.to_owned(), self.data.to_vec(), self.call);
        Box::new(move |zh, context| About { path: &path, data: &data, call }.send(zh, context))
    }
}

impl Zhandle {
    /// Submits a request about a path.
    fn about<F>(&self, terms: Terms, receiver: Receiver, path: &str, data: &[u8], call: F)
    where
        F: FnOnce(*mut sys::zhandle_t, *const c_char, *const c_char, *const c_void) -> c_int
            + Send
            + 'static,
    {
        let bytes = path.len() + data.len();
        self.submit(terms, receiver, None, bytes, About { path, data, call });
    }

    fn watcher_fn(watch: WatchOn) -> sys::watcher_fn {
        match watch {
            WatchOn::Yes => Some(watcher::watcher),
            WatchOn::No => None,
        }
    }
}

impl Requests for Zhandle {
    fn create(
        &self,
        terms: Terms,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
        sink: Sink<(String, Stat)>,
    ) {
        let receiver = Receiver::Created(sink);
        let len = argument!(convert::c_len(data.len()), receiver);
        let acl = argument!(AclVector::new(acl), receiver);
        let (mode, ttl) = argument!(mode_of(mode), receiver);
        self.about(terms, receiver, path, data, move |zh, path, data, context| {
            let entries = acl.as_c();
            let done: sys::string_stat_completion_t = Some(callback::created);
            match ttl {
                // SAFETY: `submit` keeps the handle open; `About` keeps path and data until the call returns, which
                // serialises them and the ACL, which is this closure's; the context is a number.
                None => unsafe {
                    sys::zoo_acreate2(zh, path, data, len, &entries, mode, done, context)
                },
                // SAFETY: as above.
                Some(ttl) => unsafe {
                    sys::zoo_acreate2_ttl(zh, path, data, len, &entries, mode, ttl, done, context)
                },
            }
        });
    }

    fn delete(&self, terms: Terms, path: &str, version: i32, sink: Sink<()>) {
        let receiver = Receiver::Void(sink);
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            // SAFETY: `submit` keeps the handle open; `About` keeps the path until the call returns, which
            // serialises it; the context is a number.
            unsafe { sys::zoo_adelete(zh, path, version, Some(callback::void), context) }
        });
    }

    fn exists(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<Stat>) {
        let receiver = Receiver::Stat(sink);
        let listener = self.context();
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            let (watcher, listener) = (Zhandle::watcher_fn(watch), watcher::context(listener));
            let done: sys::stat_completion_t = Some(callback::stat);
            // SAFETY: `submit` keeps the handle open; `About` keeps the path until the call returns, which
            // copies it; both contexts are numbers.
            unsafe { sys::zoo_awexists(zh, path, watcher, listener, done, context) }
        });
    }

    fn get(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<u8>, Stat)>) {
        let receiver = Receiver::Data(sink);
        let listener = self.context();
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            let (watcher, listener) = (Zhandle::watcher_fn(watch), watcher::context(listener));
            let done: sys::data_completion_t = Some(callback::data);
            // SAFETY: as in `exists`.
            unsafe { sys::zoo_awget(zh, path, watcher, listener, done, context) }
        });
    }

    fn set(&self, terms: Terms, path: &str, data: &[u8], version: i32, sink: Sink<Stat>) {
        let receiver = Receiver::Stat(sink);
        let len = argument!(convert::c_len(data.len()), receiver);
        self.about(terms, receiver, path, data, move |zh, path, data, context| {
            // SAFETY: as in `delete`; the data too are kept, and serialised.
            unsafe { sys::zoo_aset(zh, path, data, len, version, Some(callback::stat), context) }
        });
    }

    fn children(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<String>, Stat)>) {
        let receiver = Receiver::Children(sink);
        let listener = self.context();
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            let (watcher, listener) = (Zhandle::watcher_fn(watch), watcher::context(listener));
            let done: sys::strings_stat_completion_t = Some(callback::children);
            // SAFETY: as in `exists`.
            unsafe { sys::zoo_awget_children2(zh, path, watcher, listener, done, context) }
        });
    }

    fn get_acl(&self, terms: Terms, path: &str, sink: Sink<(Vec<Acl>, Stat)>) {
        let receiver = Receiver::Acl(sink);
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            // SAFETY: as in `delete`.
            unsafe { sys::zoo_aget_acl(zh, path, Some(callback::acl), context) }
        });
    }

    fn set_acl(&self, terms: Terms, path: &str, acl: &[Acl], version: i32, sink: Sink<()>) {
        let receiver = Receiver::Void(sink);
        let acl = argument!(AclVector::new(acl), receiver);
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            let mut entries = acl.as_c();
            let done: sys::void_completion_t = Some(callback::void);
            // SAFETY: as in `delete`; the ACL too is this closure's, and the call only reads it.
            unsafe { sys::zoo_aset_acl(zh, path, version, &mut entries, done, context) }
        });
    }

    fn reconfigure(
        &self,
        terms: Terms,
        lists: [Option<String>; 3],
        version: i64,
        sink: Sink<(Vec<u8>, Stat)>,
    ) {
        let receiver = Receiver::Data(sink);
        let bytes = lists.iter().flatten().map(String::len).sum();
        let lists = lists.map(|list| list.map(|list| convert::c_string(&list)).transpose());
        let [joining, leaving, members] = lists;
        let joining = argument!(joining, receiver);
        let leaving = argument!(leaving, receiver);
        let members = argument!(members, receiver);
        self.submit(terms, receiver, None, bytes, move |zh, context| {
            let [joining, leaving, members] = [&joining, &leaving, &members]
                .map(|list| list.as_ref().map_or(ptr::null(), |list| list.as_ptr()));
            let done: sys::data_completion_t = Some(callback::data);
            // SAFETY: `submit` keeps the handle open; the lists are this closure's, and the call
            // serialises them, where a null is none; the context is a number.
            unsafe { sys::zoo_areconfig(zh, joining, leaving, members, version, done, context) }
        });
    }

    fn sync(&self, terms: Terms, path: &str, sink: Sink<()>) {
        let receiver = Receiver::Void(sink);
        self.about(terms, receiver, path, &[], move |zh, path, _, context| {
            // SAFETY: as in `delete`.
            unsafe { sys::zoo_async(zh, path, Some(callback::synced), context) }
        });
    }

    fn add_auth(&self, deadline: Option<Instant>, credentials: &Credentials, sink: Sink<()>) {
        let receiver = Receiver::Void(sink);
        let scheme = argument!(convert::c_string(&credentials.scheme), receiver);
        let len = argument!(convert::c_len(credentials.secret.len()), receiver);
        let secret = &credentials.secret;
        self.submit_uncounted(deadline, receiver, |zh, context| {
            let (scheme, secret) = (scheme.as_ptr(), secret.as_ptr().cast());
            // SAFETY: `submit_uncounted` keeps the handle open; scheme and secret outlive the call,
            // which copies them; the context is a number.
            unsafe { sys::zoo_add_auth(zh, scheme, secret, len, Some(callback::accepted), context) }
        });
    }

    fn multi(&self, terms: Terms, ops: &[RawOp<'_>], sink: Sink<Vec<RawOpResult>>) {
        let receiver = Receiver::Multi(sink);
        let bytes = ops.iter().map(RawOp::len).sum();
        let mut memory = argument!(MultiMemory::new(ops), receiver);
        let pointers = memory.as_c();
        self.submit(terms, receiver, Some(memory), bytes, move |zh, context| {
            let (count, ops, results) = pointers.into_c();
            // If the session ends within the call, the C client frees paths that are ours. It does not end
            // while the handle is connected: a new connection, whose server says so, comes first.
            // SAFETY: `submit` keeps the handle open; the call only reads.
            match HandleState(unsafe { sys::zoo_state(zh) }) {
                HandleState::CONNECTED => {}
                HandleState(..0) => return Code::INVALID_STATE.as_raw(),
                _ => return Code::NOT_CONNECTED.as_raw(),
            }
            // SAFETY: `submit` keeps the handle open; what the pointers lead to is owned by the
            // slot, which lives until the completion ran, the request is given up unsent, or the
            // handle is closed; the context is a number.
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
