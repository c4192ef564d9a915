//! The simulated stand-in for the C client: a handle, with the requests that locks make.

use std::cmp::Ordering;
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::client::Connection;
use super::request::{Op, Reply, Request};
use super::server::{Kind, New, SESSION_TIMEOUT};
use super::world::World;
use crate::client::handles::Listener;
use crate::error::Code;
use crate::raw::{
    Config, Credentials, Handle, HandleState, RawOp, RawOpResult, Requests, Sink, Terms, WatchOn,
};
use crate::session_key::SessionKey;
use crate::znode::{Acl, CreateMode, Permissions, Stat};

/// As the C client has it.
const EPHEMERAL_SEQUENTIAL: c_int = 3;

/// The world, shared by the code that runs in it.
pub(super) type Shared = Arc<Mutex<World>>;

/// Does something in the world; then notifies the client's code of what came of it.
pub(super) fn act<T>(world: &Shared, body: impl FnOnce(&mut World) -> T) -> T {
    let (result, calls) = {
        let mut world = world.lock();
        let result = body(&mut world);
        (result, std::mem::take(&mut world.calls))
    };
    for call in calls {
        call();
    }
    result
}

pub(super) struct SimulatedHandle {
    world: Shared,
    client: usize,
    /// Which of the client's handles it is.
    link: usize,
}

impl SimulatedHandle {
    /// One that is not connected yet.
    pub(super) fn open(
        world: &Shared,
        client: usize,
        config: &Config,
        listener: Listener,
    ) -> SimulatedHandle {
        assert!(config.session.is_none(), "no session is taken up here");
        let link = act(world, |world| world.open_handle(client, listener.into()));
        SimulatedHandle { world: Arc::clone(world), client, link }
    }

    fn submit(&self, terms: Terms, op: Op, path: &str, reply: Reply) {
        let (path, deadline) = (path.to_owned(), terms.deadline);
        act(&self.world, |world| {
            let client = &world.clients[self.client];
            let (submitted, ended) = (client.clock, client.ended);
            let request = Request { op, path, reply, deadline, submitted, ended };
            world.submit(self.client, self.link, request);
        });
    }

    fn znode(&self, data: &[u8], acl: &[Acl], mode: CreateMode) -> New {
        let session = self.with(|client| client.session).unwrap_or_default();
        let (kind, sequential) = match mode {
            CreateMode::Ephemeral => (Kind::Ephemeral(session), false),
            CreateMode::EphemeralSequential => (Kind::Ephemeral(session), true),
            CreateMode::Container => (Kind::Container, false),
            _ => (Kind::Persistent, false),
        };
        let by_anybody =
            |it: &Acl| it.scheme == "world" && it.permissions.contains(Permissions::WRITE);
        let is_protected = !acl.iter().any(by_anybody);
        New { sequential, kind, data: data.into(), is_protected }
    }

    /// Sends a transaction of so many operations.
    fn transact(
        &self,
        terms: Terms,
        op: Op,
        path: &str,
        number: usize,
        sink: Sink<Vec<RawOpResult>>,
    ) {
        let sink = Box::new(move |reply: Result<_, Code>| {
            let made = |path| RawOpResult { path: Some(path), ..result(Code::OK) };
            let why = |at: usize, failed: usize, code| match at.cmp(&failed) {
                Ordering::Less => result(Code::OK),
                Ordering::Equal => result(code),
                Ordering::Greater => result(Code::RUNTIME_INCONSISTENCY),
            };
            sink(reply.map(|created: Result<Vec<String>, (usize, Code)>| match created {
                Ok(paths) => paths.into_iter().map(made).collect(),
                Err((failed, code)) => (0..number).map(|at| why(at, failed, code)).collect(),
            }));
        });
        self.submit(terms, op, path, Reply::CreatedAll(sink));
    }

    fn delete_as(&self, terms: Terms, path: &str, announced: bool, sink: Sink<()>) {
        let too_late = self.world.lock().has_seen_it_gone(self.client, path);
        self.submit(terms, Op::Delete { announced, too_late }, path, Reply::Done(sink));
    }

    /// What it knows, unless it is closed.
    fn with<T>(&self, body: impl FnOnce(&super::client::Client) -> T) -> Option<T> {
        let world = self.world.lock();
        let client = &world.clients[self.client];
        (client.link == self.link && client.listener.is_some()).then(|| body(client))
    }
}

/// What one operation of a transaction gives.
fn result(code: Code) -> RawOpResult {
    RawOpResult { code, path: None, stat: None }
}

/// What locks and their clients do not ask for.
fn unasked() -> ! {
    panic!("the simulation knows nothing of that request");
}

impl Requests for SimulatedHandle {
    fn create(
        &self,
        terms: Terms,
        path: &str,
        data: &[u8],
        acl: &[Acl],
        mode: CreateMode,
        sink: Sink<(String, Stat)>,
    ) {
        let op = Op::Create(self.znode(data, acl, mode));
        self.submit(terms, op, path, Reply::Created(sink));
    }

    fn delete(&self, terms: Terms, path: &str, _: i32, sink: Sink<()>) {
        self.delete_as(terms, path, false, sink);
    }

    fn get(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<u8>, Stat)>) {
        let watch = watch == WatchOn::Yes;
        self.submit(terms, Op::Get { watch }, path, Reply::Data(sink));
    }

    fn children(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<(Vec<String>, Stat)>) {
        let watch = watch == WatchOn::Yes;
        self.submit(terms, Op::Children { watch }, path, Reply::Children(sink));
    }

    fn sync(&self, terms: Terms, path: &str, sink: Sink<()>) {
        self.submit(terms, Op::Sync, path, Reply::Done(sink));
    }

    fn exists(&self, terms: Terms, path: &str, watch: WatchOn, sink: Sink<Stat>) {
        assert!(watch != WatchOn::Yes, "the simulation watches only what is there");
        self.submit(terms, Op::Exists, path, Reply::Stat(sink));
    }

    fn set(&self, terms: Terms, path: &str, data: &[u8], version: i32, sink: Sink<Stat>) {
        self.submit(terms, Op::Set { data: data.into(), version }, path, Reply::Stat(sink));
    }

    fn get_acl(&self, _: Terms, _: &str, _: Sink<(Vec<Acl>, Stat)>) {
        unasked();
    }

    fn reconfigure(&self, _: Terms, _: [Option<String>; 3], _: i64, _: Sink<(Vec<u8>, Stat)>) {
        unasked();
    }

    fn set_acl(&self, _: Terms, _: &str, _: &[Acl], _: i32, _: Sink<()>) {
        unasked();
    }

    /// Servers take it ahead of all requests of a connection.
    fn add_auth(&self, _: Option<Instant>, _: &Credentials, sink: Sink<()>) {
        act(&self.world, |world| world.calls.push(Box::new(|| sink(Ok(())))));
    }

    fn multi(&self, terms: Terms, ops: &[RawOp<'_>], sink: Sink<Vec<RawOpResult>>) {
        if self.state() == Some(HandleState::CONNECTING) {
            let unsent = || sink(Err(Code::NOT_CONNECTED));
            return act(&self.world, |world| world.calls.push(Box::new(unsent)));
        }
        let [RawOp::Set { path, .. }, RawOp::Delete { path: deleted, .. }] = ops else {
            let new = |op: &RawOp<'_>| match op {
                RawOp::Create { path, data, acl, mode: EPHEMERAL_SEQUENTIAL } => {
                    ((*path).to_owned(), self.znode(data, acl, CreateMode::EphemeralSequential))
                }
                _ => unasked(),
            };
            let (path, op) = match ops {
                [RawOp::Create { path, .. }, RawOp::Set { .. }, _] => (*path, Op::Forbidden),
                [RawOp::Create { path, .. }, ..] => {
                    (*path, Op::CreateAll(ops.iter().map(new).collect()))
                }
                _ => unasked(),
            };
            return self.transact(terms, op, path, ops.len(), sink);
        };
        assert_eq!(path, deleted, "the simulation knows no other transactions");
        let sink: Sink<()> = Box::new(move |reply| {
            sink(match reply {
                Ok(()) => Ok(vec![result(Code::OK), result(Code::OK)]),
                Err(code) if code.is_server_decision() => {
                    Ok(vec![result(code), result(Code::RUNTIME_INCONSISTENCY)])
                }
                Err(code) => Err(code),
            });
        });
        self.delete_as(terms, path, true, sink);
    }
}

impl Handle for SimulatedHandle {
    fn is_adopted(&self) -> bool {
        false
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn can_be_waited_for(&self) -> bool {
        true
    }

    fn watch_session_events(&self, _: Box<dyn FnOnce() + Send>) {}

    fn state(&self) -> Option<HandleState> {
        self.with(|client| match client.connection {
            _ if client.over => HandleState::EXPIRED,
            Connection::Up | Connection::Broken => HandleState::CONNECTED,
            Connection::Down => HandleState::CONNECTING,
        })
    }

    fn while_open(&self, body: &mut dyn FnMut(*mut crate::raw::zhandle_t)) {
        if self.with(|_| ()).is_some() {
            body(std::ptr::null_mut());
        }
    }

    fn session(&self) -> Option<SessionKey> {
        self.with(|client| SessionKey::new(client.session, [0; 16]))
    }

    fn session_timeout(&self) -> Option<Duration> {
        self.with(|_| SESSION_TIMEOUT)
    }

    fn server(&self) -> Option<SocketAddr> {
        None
    }

    fn cycle_next_server(&self, _: &[SocketAddr]) {}

    fn is_any_late(&self, now: Instant) -> bool {
        self.with(|client| client.requests().any(|request| request.is_late(now))).unwrap_or(false)
    }

    fn expire(&self, now: Instant) {
        act(&self.world, |world| {
            if world.clients[self.client].link == self.link {
                world.give_up(self.client, Code::OPERATION_TIMEOUT, |request| request.is_late(now));
            }
        });
    }

    fn close_for(&self, _: Option<HandleState>) {
        act(&self.world, |world| world.close_handle(self.client, self.link));
    }
}

impl Drop for SimulatedHandle {
    fn drop(&mut self) {
        self.close();
    }
}
