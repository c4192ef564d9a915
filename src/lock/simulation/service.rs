//! The two traits that the acquire loop is written against, on the simulated world.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use oneshot::Sender;
use parking_lot::Mutex;

use super::client::Connection;
use super::guaranteed_delete::GuaranteedDelete;
use super::request::{Op, Reply, WatchedData};
use super::server::Kind;
use super::world::{Timer, World};
use crate::client::{Created, Hold, Pending, WatchFor};
use crate::error::Result;
use crate::lock::service::{BoxFuture, Service, Session};
use crate::znode::{Acl, CreateMode, Stat};

/// The world, shared by the code that runs in it.
pub(super) type Shared = Arc<Mutex<World>>;

/// A client, as its code sees it.
pub(super) struct SimulatedService {
    pub(super) world: Shared,
    pub(super) client: usize,
}

/// One session of a client in one period of trust.
struct SimulatedSession {
    world: Shared,
    client: usize,
    link: usize,
    period: usize,
    id: i64,
}

impl Service for SimulatedService {
    fn session(&self) -> BoxFuture<Result<Arc<dyn Session>>> {
        let (world, client) = (Arc::clone(&self.world), self.client);
        Box::pin(std::future::poll_fn(move |context| {
            let mut locked = world.lock();
            let state = &mut locked.clients[client];
            if !state.is_usable() {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            let (link, period, id) = (state.link, state.period, state.session);
            let world = Arc::clone(&world);
            Poll::Ready(Ok(Arc::new(SimulatedSession { world, client, link, period, id }) as _))
        }))
    }

    fn id(&self) -> u64 {
        self.client as u64
    }

    fn is_connected(&self) -> bool {
        self.world.lock().clients[self.client].connection == Connection::Up
    }

    fn now(&self) -> Instant {
        self.world.lock().now
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<()> {
        let world = Arc::clone(&self.world);
        Box::pin(Sleep { world, client: self.client, at, timer: None })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.world.lock().spawned.push((self.client, task));
    }
}

struct Sleep {
    world: Shared,
    client: usize,
    at: Instant,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = Arc::clone(&self.world);
        let mut world = world.lock();
        let Some(id) = self.timer else {
            let id = world.next_timer;
            world.next_timer += 1;
            self.timer = Some(id);
            let waker = context.waker().clone();
            world.timers.push(Timer { id, client: self.client, at: self.at, fired: false, waker });
            return Poll::Pending;
        };
        match world.timers.iter_mut().find(|timer| timer.id == id) {
            Some(timer) if !timer.fired => {
                timer.waker.clone_from(context.waker());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.timer {
            self.world.lock().timers.retain(|timer| timer.id != id);
        }
    }
}

impl SimulatedSession {
    fn request<T>(
        &self,
        op: Op,
        path: &str,
        reply: impl FnOnce(Sender<Result<T>>) -> Reply,
    ) -> Pending<T> {
        let (send, receive) = oneshot::async_channel();
        self.world.lock().submit(self.client, self.link, op, path, reply(send));
        Pending::reply("simulated", path.into(), receive)
    }

    fn wait_until(&self, what: fn(&SimulatedSession, &World) -> bool) -> BoxFuture<()> {
        let session = SimulatedSession { world: Arc::clone(&self.world), ..*self };
        Box::pin(std::future::poll_fn(move |context| {
            let mut world = session.world.lock();
            if what(&session, &world) {
                return Poll::Ready(());
            }
            world.clients[session.client].waiting.push(context.waker().clone());
            Poll::Pending
        }))
    }

    fn is_lost(&self, world: &World) -> bool {
        let client = &world.clients[self.client];
        client.link != self.link || client.period != self.period || client.lost
    }
}

impl Session for SimulatedSession {
    fn id(&self) -> i64 {
        self.id
    }

    fn is_trusted(&self) -> bool {
        !self.is_lost(&self.world.lock())
    }

    fn was_taken_up(&self) -> bool {
        false
    }

    fn is_ours_alone(&self) -> bool {
        true
    }

    fn hold(&self) -> Option<Hold> {
        let world = self.world.lock();
        let may = !self.is_lost(&world) && world.clients[self.client].proven;
        may.then(Hold::simulated)
    }

    fn proven(&self) -> BoxFuture<()> {
        self.wait_until(|session, world| {
            session.is_lost(world) || world.clients[session.client].proven
        })
    }

    fn lost(&self) -> BoxFuture<()> {
        self.wait_until(SimulatedSession::is_lost)
    }

    fn create(&self, path: &str, data: &[u8], _: &[Acl], mode: CreateMode) -> Pending<Created> {
        let (kind, sequential) = match mode {
            CreateMode::Ephemeral => (Kind::Ephemeral(self.id), false),
            CreateMode::EphemeralSequential => (Kind::Ephemeral(self.id), true),
            CreateMode::Container => (Kind::Container, false),
            _ => (Kind::Persistent, false),
        };
        self.request(Op::Create { sequential, kind, data: data.into() }, path, Reply::Created)
    }

    fn children(&self, path: &str) -> Pending<(Vec<String>, Stat)> {
        self.request(Op::Children, path, Reply::Children)
    }

    fn get(&self, path: &str) -> Pending<(Vec<u8>, Stat)> {
        self.request(Op::Get { watch: false }, path, Reply::Data)
    }

    fn get_and_watch(&self, path: &str) -> Pending<WatchedData> {
        self.request(Op::Get { watch: true }, path, Reply::WatchedData)
    }

    fn has_room_to_watch(&self, _: &str, purpose: WatchFor) -> bool {
        // Some of those who wait far back go without, too.
        purpose != WatchFor::Later || self.id % 2 == 0
    }

    fn sync(&self, path: &str) -> Pending<()> {
        self.request(Op::Sync, path, Reply::Done)
    }

    fn guaranteed_delete(
        &self,
        path: &str,
        czxid: i64,
        look: bool,
        kept: Arc<()>,
    ) -> Pending<bool> {
        let (done, receive) = oneshot::async_channel();
        let path_of = path.to_owned();
        let delete =
            GuaranteedDelete { path: path_of, czxid, look, first: true, done, _kept: kept };
        self.world.lock().attempt_delete(self.client, self.link, delete);
        Pending::reply("delete", path.into(), receive)
    }

    fn create_parents(&self, path: &str, acl: &[Acl]) -> BoxFuture<Result<()>> {
        let session = SimulatedSession { world: Arc::clone(&self.world), ..*self };
        let (path, acl) = (path.to_owned(), acl.to_vec());
        Box::pin(async move {
            let above = |path: &str| path.rsplit_once('/').map(|(above, _)| above.to_owned());
            let make = async |path: &str| match session
                .create(path, b"", &acl, CreateMode::Container)
                .await
            {
                Err(error) if error.is_node_exists() => Ok(()),
                made => made.map(drop),
            };
            let mut missing = Vec::new();
            let mut at = above(&path);
            while let Some(path) = at.filter(|path| !path.is_empty()) {
                match make(&path).await {
                    Ok(()) => break,
                    Err(error) if error.is_no_node() => {
                        at = above(&path);
                        missing.push(path);
                    }
                    Err(error) => return Err(error),
                }
            }
            for path in missing.into_iter().rev() {
                make(&path).await?;
            }
            Ok(())
        })
    }
}
