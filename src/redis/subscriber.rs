//! The thread to which the server announces changes. Whoever waits looks by itself as well, so nothing depends on it.

use std::time::Duration;

use redis::Client;

use crate::panics::catch_panic;
use crate::threads;

/// How often it finds out whether anybody wants to know yet, and tries to connect again.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls that at each message on a channel, until it gives `false`.
pub(super) fn start(client: Client, channel: String, changed: Box<dyn Fn() -> bool + Send>) {
    let listen = move || {
        while changed() {
            let _ = subscribe(&client, &channel, &changed);
            std::thread::sleep(PAUSE / 10);
        }
    };
    // Where there is no thread to be had, waiters look by themselves.
    let _ = threads::spawn("zklock-redis", || {
        catch_panic(listen);
    });
}

fn subscribe(client: &Client, channel: &str, changed: &dyn Fn() -> bool) -> redis::RedisResult<()> {
    let mut connection = client.get_connection_with_timeout(PAUSE)?;
    connection.set_read_timeout(Some(PAUSE))?;
    let mut messages = connection.as_pubsub();
    messages.subscribe(channel)?;
    loop {
        match messages.get_message() {
            Ok(_) => {}
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error),
        }
        if !changed() {
            return Ok(());
        }
    }
}
