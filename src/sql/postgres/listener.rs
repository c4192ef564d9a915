//! The thread that receives notifications of changes. Waiters also poll, so nothing depends on it. Through a pooler
//! that lends connections per transaction, no notifications arrive.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_lite::{StreamExt as _, future};
use parking_lot::Mutex;
use tokio_postgres::{AsyncMessage, Error};

use super::hosts::Place;
use crate::panics::catch_panic;
use crate::threads;

/// How often it finds out whether anybody wants to know yet, and tries to connect again.
const PAUSE: Duration = Duration::from_millis(500);

/// The notifications that the thread has received.
#[derive(Default)]
pub(super) struct Heard {
    /// The session that waits here.
    session: Mutex<String>,
    /// Whether the server sends notifications.
    is_heard: AtomicBool,
    has_word: AtomicBool,
}

impl Heard {
    pub(super) fn listens_for(&self, session: &str) {
        let mut known = self.session.lock();
        if *known != session {
            session.clone_into(&mut known);
        }
    }

    pub(super) fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Acquire)
    }

    /// Whether there was word since this was asked last.
    pub(super) fn take_word(&self) -> bool {
        self.has_word.swap(false, Ordering::AcqRel)
    }

    /// Whether that concerns who waits here.
    fn concerns(&self, whom: &str) -> bool {
        let concerns = whom.is_empty() || *self.session.lock() == whom;
        self.has_word.fetch_or(concerns, Ordering::AcqRel);
        concerns
    }
}

/// Calls that at each change that concerns who waits here, until it gives `false`.
pub(super) fn start(place: Place, heard: Arc<Heard>, changed: Box<dyn Fn() -> bool + Send>) {
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        while changed() {
            let _ = runtime.block_on(hear(&place, &heard, &changed));
            heard.is_heard.store(false, Ordering::Release);
            std::thread::sleep(PAUSE);
        }
    };
    // Where there is no thread to be had, waiters look by themselves.
    let _ = threads::spawn("zklock-listen", || {
        catch_panic(listen);
    });
}

async fn hear(place: &Place, heard: &Heard, changed: &dyn Fn() -> bool) -> Result<(), Error> {
    let Ok((client, mut told)) = place.connect(PAUSE).await else { return Ok(()) };
    let messages = async {
        loop {
            match tokio::time::timeout(PAUSE, told.next()).await {
                Ok(Some(Ok(AsyncMessage::Notification(word)))) => {
                    if heard.concerns(word.payload()) && !changed() {
                        return Ok(());
                    }
                }
                Err(_) if !changed() => return Ok(()),
                Err(_) => {}
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(error),
                Ok(None) => return Ok(()),
            }
        }
    };
    let mut messages = pin!(messages);
    let listen = async {
        client.batch_execute("LISTEN zklock").await?;
        heard.is_heard.store(true, Ordering::Release);
        // What changed before that was not heard.
        heard.concerns("");
        changed();
        future::pending().await
    };
    future::or(&mut messages, listen).await
}
