//! zklock as its users have it: the default strategy, default options.

use std::time::Duration;

use zklock::{Client, ClientOptions, LocalHandoff, Lock};

use super::meter::{Recorder, Since};
use super::{Meter, Task};
use crate::Trouble;

const SESSION: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Release {
    InBackground,
    Awaited,
}

pub fn options() -> ClientOptions {
    Client::options().session_timeout(SESSION)
}

pub fn connect(hosts: &str) -> Result<Client, Trouble> {
    options().connect(hosts).wait().map_err(text)
}

pub fn text(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

fn cycles(lock: &Lock, release: Release, recorder: &mut Recorder) -> Result<(), Trouble> {
    while !recorder.is_over() {
        let asked = recorder.wait_to_ask();
        let guard = lock.acquire().wait().map_err(text)?;
        recorder.got(asked);
        recorder.releases();
        match release {
            Release::InBackground => drop(guard),
            Release::Awaited => guard.release().wait().map_err(text)?,
        }
    }
    Ok(())
}

/// A client each.
pub fn contend(task: &Task, options: &ClientOptions, release: Release) -> Result<(), Trouble> {
    let clients = (0..task.n).map(|_| options.connect(&task.hosts).wait().map_err(text));
    let clients: Vec<Client> = clients.collect::<Result<_, Trouble>>()?;
    let kind = std::env::var("BENCH_KIND");
    let lock = |client: &Client| match kind.as_deref() {
        Ok("write") => client.read_write(&task.path).write(),
        Ok("permit") => client.semaphore(&task.path, 1).permit(),
        _ => client.lock(&task.path),
    };
    let locks: Vec<Lock> = clients.iter().map(lock).collect();
    let since = if task.n == 1 { Since::Asked } else { Since::Released };
    Meter::with_threads(task, since, locks, |lock, recorder| cycles(&lock, release, recorder))
}

/// A lock each, over one session.
pub fn many(task: &Task) -> Result<(), Trouble> {
    let client = connect(&task.hosts)?;
    let locks = (0..task.n).map(|n| client.lock(&format!("{}/{n}", task.path))).collect();
    Meter::with_threads(task, Since::Asked, locks, |lock: Lock, recorder| {
        cycles(&lock, Release::InBackground, recorder)
    })
}

/// One client, one lock, handed over among the threads.
pub fn local(task: &Task) -> Result<(), Trouble> {
    let lock = connect(&task.hosts)?.lock(&task.path).local_handoff(LocalHandoff::new());
    let locks = vec![lock; task.n];
    Meter::with_threads(task, Since::Released, locks, |lock, recorder| {
        cycles(&lock, Release::InBackground, recorder)
    })
}
