//! Requests to give way, which stand in the claim's own znode.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use zklock::{Client, Guard};

use super::events::Event;
use crate::request;

/// The pause before a look that has failed is repeated.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

/// Tells of the first request, on a thread of its own that ends with the guard.
pub fn listen(client: Client, guard: &Guard, tell: Sender<Event>) {
    let (path, token, lost) = (guard.path().to_owned(), guard.fencing_token(), guard.lost());
    let listen = move || {
        while lost.get().is_none() {
            match client.get_and_watch(&path).wait() {
                Ok(read) if read.value.stat.czxid == token => {
                    if let Some(reason) = request::find(&read.value.data) {
                        let _ = tell.send(Event::Asked { token, reason });
                        return;
                    }
                    // Also ended by the release, and by the end of the session.
                    if read.watch.wait().is_err() {
                        thread::sleep(AFTER_TROUBLE);
                    }
                }
                Ok(_) => return,
                Err(error) if error.is_no_node() || error.is_session_over() => return,
                Err(_) => thread::sleep(AFTER_TROUBLE),
            }
        }
    };
    // Without it, nobody can ask.
    let _ = thread::Builder::new().name("requests".to_owned()).spawn(listen);
}
