//! What held locks and idle clients take of memory, as the kernel counts it.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::json;
use zklock::{Client, Guard};

use super::ours::{self, text};
use super::{Task, meter, zookeeper_client};
use crate::Trouble;

/// So many locks for each idle client.
const LOCKS_PER_CLIENT: usize = 20;
/// So many are acquired at the same time.
const AT_ONCE: usize = 500;

/// `n` locks on one session, and a twentieth as many clients.
pub fn of_zklock(task: &Task) -> Result<(), Trouble> {
    let client = ours::connect(&task.hosts)?;
    let before = resident()?;
    let mut guards: Vec<Guard> = Vec::with_capacity(task.n);
    while guards.len() < task.n {
        let range = guards.len()..task.n.min(guards.len() + AT_ONCE);
        let acquires: Vec<_> =
            range.map(|n| client.lock(&format!("{}/{n}", task.path)).acquire()).collect();
        for acquire in acquires {
            guards.push(acquire.wait().map_err(text)?);
        }
    }
    let locked = resident()?;
    let clients: Result<Vec<Client>, Trouble> =
        (0..task.n / LOCKS_PER_CLIENT).map(|_| ours::connect(&task.hosts)).collect();
    report(task, before, locked, clients?.len())
}

/// The same of zookeeper-client.
pub fn of_zookeeper_client(task: &Task) -> Result<(), Trouble> {
    zookeeper_client::runtime()?.block_on(async {
        let client = zookeeper_client::connect(&task.hosts).await?;
        let before = resident()?;
        let acquire = |n| {
            let client = &client;
            async move { zookeeper_client::acquire(client, &format!("{}/{n}", task.path)).await }
        };
        let locks: Vec<_> =
            stream::iter(0..task.n).map(acquire).buffer_unordered(AT_ONCE).collect().await;
        let locked = resident()?;
        let mut clients = Vec::new();
        for _ in 0..task.n / LOCKS_PER_CLIENT {
            clients.push(zookeeper_client::connect(&task.hosts).await?);
        }
        report(task, before, locked, clients.len())?;
        locks.into_iter().try_for_each(|lock| lock.map(drop))
    })
}

fn report(task: &Task, before: usize, locked: usize, clients: usize) -> Result<(), Trouble> {
    let now = resident()?;
    let each = |from: usize, until: usize, of: usize| until.saturating_sub(from) / of.max(1);
    let line = json!({
        "bytes_per_lock": each(before, locked, task.n),
        "bytes_per_client": each(locked, now, clients),
    });
    meter::say(&line.to_string());
    Ok(())
}

/// In bytes.
fn resident() -> Result<usize, Trouble> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(text)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    Ok(kibibytes.ok_or("/proc/self/status has no VmRSS")? << 10)
}
