//! The thread that hears when others have changed something. Whoever waits looks by itself as well, so nothing depends on
//! it: a pooler that lends connections for a transaction brings no word.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future;
use tokio_postgres::{AsyncMessage, Config, Error, NoTls};

use crate::panics::catch_panic;

/// How often it finds out whether anybody wants to know yet, and tries to connect again.
const PAUSE: Duration = Duration::from_millis(500);

/// Calls that at each change, until it gives `false`.
pub(super) fn start(config: Config, changed: Box<dyn Fn() -> bool + Send>) {
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let Ok(runtime) = { runtime }.enable_all().build() else { return };
        while changed() {
            let _ = runtime.block_on(hear(&config, &changed));
            std::thread::sleep(PAUSE);
        }
    };
    // Where there is no thread to be had, waiters look by themselves.
    let thread = std::thread::Builder::new().name("zklock-listen".into());
    let _ = thread.spawn(|| catch_panic(listen));
}

async fn hear(config: &Config, changed: &dyn Fn() -> bool) -> Result<(), Error> {
    let connected = tokio::time::timeout(PAUSE, config.connect(NoTls)).await;
    let Ok(connected) = connected else { return Ok(()) };
    let (client, mut connection) = connected?;
    let messages = async {
        loop {
            let message = poll_fn(|context| connection.poll_message(context));
            match tokio::time::timeout(PAUSE, message).await {
                Ok(Some(Ok(AsyncMessage::Notification(_)))) | Err(_) => {
                    if !changed() {
                        return Ok(());
                    }
                }
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(error),
                Ok(None) => return Ok(()),
            }
        }
    };
    let mut messages = pin!(messages);
    let listen = async {
        client.batch_execute("LISTEN zklock").await?;
        future::pending().await
    };
    future::or(&mut messages, listen).await
}
