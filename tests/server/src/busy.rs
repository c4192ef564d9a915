//! A background client that commits now and then: see [`Ensemble::keep_busy`](crate::Ensemble::keep_busy).

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::wire::{NODE_EXISTS, RawClient};

const INTERVAL: Duration = Duration::from_millis(50);
const SESSION: Duration = Duration::from_secs(10);
/// The stall that this client is there to end may hit it first: then it goes on elsewhere.
const REPLY: Duration = Duration::from_secs(1);
const NODE: &str = "/zklock-keep-busy";

/// Commits in the background until it is dropped, which waits for its thread's end: a moment, or up to ten seconds
/// when the member it is at stands still.
#[derive(Debug)]
#[must_use = "it works until it is dropped"]
pub struct KeepBusy {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KeepBusy {
    pub(crate) fn start(addrs: Vec<SocketAddr>) -> Result<KeepBusy> {
        let (stop, stopped) = channel::<()>();
        let thread = thread::Builder::new()
            .name("zklock-keep-busy".into())
            .spawn(move || {
                let pause = || stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout);
                for addr in addrs.into_iter().cycle() {
                    // A member that is down or frozen is no news here: on to the next one.
                    let _ = commit_until(addr, &pause);
                    if !pause() {
                        return;
                    }
                }
            })
            .map_err(Error::io("start a background client"))?;
        Ok(KeepBusy { stop: Some(stop), thread: Some(thread) })
    }
}

/// Commits at one member until `pause` says no more, or the member fails.
fn commit_until(addr: SocketAddr, pause: &dyn Fn() -> bool) -> Result<()> {
    let mut client = RawClient::connect(addr, SESSION)?;
    client.set_reply_timeout(REPLY);
    match client.create(NODE, b"") {
        Err(error) if error.code() != Some(NODE_EXISTS) => return Err(error),
        _ => {}
    }
    while pause() {
        client.set_data(NODE, b"busy")?;
    }
    client.close_session()
}

impl Drop for KeepBusy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
