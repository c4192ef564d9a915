//! The thread that receives the server's messages for this client: a claim came to hold, another client wants one to end,
//! or the session was ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::place::Place;
use crate::leased::database::Changes;
use crate::panics::catch_panic;
use crate::threads;
use parking_lot::Mutex;

/// How often it finds out whether the store is still there, and has it look.
pub(super) const PAUSE: Duration = Duration::from_millis(500);
/// More locks than this are looked at like all others.
const MOST: usize = 256;

/// The messages that were not looked at yet. Each message has a number: a gap means that one was lost.
#[derive(Default)]
pub(super) struct Inbox {
    is_open: AtomicBool,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    session: String,
    /// The number of the last message.
    count: u64,
    locks: Vec<Arc<str>>,
    /// Anything may have changed.
    is_any: bool,
}

impl Inbox {
    /// Whether messages arrive.
    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// A session has begun. Its messages are numbered from the start.
    pub(super) fn begin(&self, session: &str) {
        *self.told.lock() = Told { session: session.to_owned(), ..Told::default() };
    }

    /// Takes what was told; `None` if nothing was.
    pub(super) fn take(&self) -> Option<Changes> {
        let mut told = self.told.lock();
        let locks = std::mem::take(&mut told.locks);
        if std::mem::take(&mut told.is_any) {
            return Some(Changes::Any);
        }
        (!locks.is_empty()).then_some(Changes::Locks(locks))
    }

    /// The server has counted so many messages: whether one of them was not received.
    pub(super) fn counted(&self, count: u64) -> bool {
        std::mem::replace(&mut self.told.lock().count, count) != count
    }

    /// A message: the session, its number, and the lock to look at, if it is about one.
    fn receive(&self, message: &str) {
        let mut told = self.told.lock();
        let mut parts = message.splitn(3, ' ');
        let (session, count, lock) = (parts.next(), parts.next(), parts.next());
        if session != Some(&told.session) {
            return;
        }
        let count = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        let is_next = count == told.count + 1;
        told.count = count;
        match lock.filter(|lock| is_next && !lock.is_empty() && told.locks.len() < MOST) {
            Some(lock) => told.locks.push(lock.into()),
            None => told.is_any = true,
        }
    }

    /// Messages arrive from now on; those before it were lost.
    fn open(&self) {
        self.told.lock().is_any = true;
        self.is_open.store(true, Ordering::Release);
    }
}

/// Receives the messages of a channel, and calls `changed` at each, until it gives `false`.
pub(super) fn start(
    place: Place,
    channel: String,
    inbox: Arc<Inbox>,
    changed: Box<dyn Fn() -> bool + Send>,
) {
    let listen = move || {
        while changed() {
            let _ = subscribe(&place, &channel, &inbox, &changed);
            inbox.is_open.store(false, Ordering::Release);
            std::thread::sleep(PAUSE / 10);
        }
    };
    // Where there is no thread to be had, waiters look by themselves.
    let _ = threads::spawn("zklock-redis", || {
        catch_panic(listen);
    });
}

fn subscribe(
    place: &Place,
    channel: &str,
    inbox: &Inbox,
    changed: &dyn Fn() -> bool,
) -> redis::RedisResult<()> {
    let mut connection = place.connect(PAUSE)?;
    connection.set_read_timeout(Some(PAUSE))?;
    let mut messages = connection.as_pubsub();
    messages.subscribe(channel)?;
    inbox.open();
    while changed() {
        match messages.get_message() {
            Ok(message) => inbox.receive(&message.get_payload::<String>()?),
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
