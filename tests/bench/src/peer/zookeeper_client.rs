//! The crate zookeeper-client, on tokio, as its documentation says. It releases in the background alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use zookeeper_client::{Acls, Client, CreateMode, LockClient, LockOptions, LockPrefix};

use super::meter::{Recorder, Since};
use super::ours::text;
use super::{Meter, Task};
use crate::Trouble;

const SESSION: Duration = Duration::from_secs(30);

pub fn runtime() -> Result<Runtime, Trouble> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(text)
}

pub async fn connect(hosts: &str) -> Result<Client, Trouble> {
    Client::connector().with_session_timeout(SESSION).connect(hosts).await.map_err(text)
}

pub async fn acquire<'a>(client: &'a Client, path: &str) -> Result<LockClient<'a>, Trouble> {
    let parents = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents);
    let prefix = LockPrefix::new_curator(path, "lock-").map_err(text)?;
    client.lock(prefix, b"", options.map_err(text)?).await.map_err(text)
}

async fn cycles(client: &Client, path: &str, recorder: &mut Recorder<'_>) -> Result<(), Trouble> {
    while !recorder.is_over() {
        let asked = recorder.asks_at();
        // Its timers come by the millisecond: also one for a time that is over.
        if asked > Instant::now() {
            tokio::time::sleep_until(asked.into()).await;
        }
        let lock = acquire(client, path).await?;
        recorder.got(asked);
        recorder.releases();
        drop(lock);
    }
    Ok(())
}

fn run(
    task: &Task,
    since: Since,
    contenders: Vec<(Client, String)>,
    runtime: &Runtime,
) -> Result<(), Trouble> {
    let meter = Arc::new(Meter::of(task));
    let tasks: Vec<_> = contenders
        .into_iter()
        .map(|(client, path)| {
            let meter = Arc::clone(&meter);
            runtime.spawn(async move { cycles(&client, &path, &mut meter.recorder(since)).await })
        })
        .collect();
    meter.run_beside(task, || {
        tasks.into_iter().try_for_each(|task| runtime.block_on(task).map_err(text)?)
    })
}

/// A client each.
pub fn contend(task: &Task) -> Result<(), Trouble> {
    let runtime = runtime()?;
    let contenders: Result<Vec<_>, Trouble> = (0..task.n)
        .map(|_| Ok((runtime.block_on(connect(&task.hosts))?, task.path.clone())))
        .collect();
    let since = if task.n == 1 { Since::Asked } else { Since::Released };
    run(task, since, contenders?, &runtime)
}

/// A lock each, over one session.
pub fn many(task: &Task) -> Result<(), Trouble> {
    let runtime = runtime()?;
    let client = runtime.block_on(connect(&task.hosts))?;
    let contenders = (0..task.n).map(|n| (client.clone(), format!("{}/{n}", task.path))).collect();
    run(task, Since::Asked, contenders, &runtime)
}
