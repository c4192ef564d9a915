//! zklock as its users have it: the default strategy, default options.

use std::time::{Duration, Instant};

use zklock::{Client, LocalHandoff, Lock};

use super::meter::{Recorder, Since};
use super::{Meter, Task};
use crate::Trouble;

const SESSION: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Release {
    InBackground,
    Awaited,
}

pub fn connect(hosts: &str) -> Result<Client, Trouble> {
    Client::options().session_timeout(SESSION).connect(hosts).wait().map_err(text)
}

pub fn text(error: impl std::fmt::Display) -> Trouble {
    error.to_string()
}

fn cycles(lock: &Lock, release: Release, recorder: &mut Recorder) -> Result<(), Trouble> {
    while !recorder.is_over() {
        let asked = Instant::now();
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
pub fn contend(task: &Task, release: Release) -> Result<(), Trouble> {
    let clients: Result<Vec<Client>, Trouble> = (0..task.n).map(|_| connect(&task.hosts)).collect();
    let locks: Vec<Lock> = clients?.iter().map(|client| client.lock(&task.path)).collect();
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
