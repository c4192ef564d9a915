//! Contestants written in Rust: `bench` calls itself with one of these roles.

mod memory;
mod meter;
mod ours;
mod zookeeper_client;

use clap::Subcommand;

use crate::Trouble;
use meter::Meter;
use ours::Release;

/// What every contestant is called with.
#[derive(Debug, clap::Args)]
pub struct Task {
    pub hosts: String,
    pub path: String,
    pub n: usize,
    pub seconds: f64,
}

/// Who a process is.
#[derive(Debug, Subcommand)]
#[command(hide = true)]
pub enum Role {
    /// A client for each thread; releases go on in the background
    #[command(hide = true)]
    Zklock(Task),
    /// A client for each thread; who waits asks once more after a release
    #[command(hide = true)]
    ZklockUnannounced(Task),
    /// A client for each thread; each waits for its release
    #[command(hide = true)]
    ZklockAwaited(Task),
    /// As many threads and locks over one session
    #[command(hide = true)]
    ZklockMany(Task),
    /// As many threads that share one client and hand the lock over among themselves
    #[command(hide = true)]
    ZklockLocal(Task),
    /// What locks and clients take of memory
    #[command(hide = true)]
    ZklockMemory(Task),
    /// A client for each task
    #[command(hide = true)]
    ZookeeperClient(Task),
    /// As many tasks and locks over one session
    #[command(hide = true)]
    ZookeeperClientMany(Task),
    /// What locks and clients take of memory
    #[command(hide = true)]
    ZookeeperClientMemory(Task),
}

impl Role {
    pub fn play(&self) -> Result<(), Trouble> {
        match self {
            Role::Zklock(task) => ours::contend(task, &ours::options(), Release::InBackground),
            Role::ZklockAwaited(task) => ours::contend(task, &ours::options(), Release::Awaited),
            Role::ZklockUnannounced(task) => {
                let unannounced = ours::options().announced_releases(false);
                ours::contend(task, &unannounced, Release::InBackground)
            }
            Role::ZklockMany(task) => ours::many(task),
            Role::ZklockLocal(task) => ours::local(task),
            Role::ZklockMemory(task) => memory::of_zklock(task),
            Role::ZookeeperClient(task) => zookeeper_client::contend(task),
            Role::ZookeeperClientMany(task) => zookeeper_client::many(task),
            Role::ZookeeperClientMemory(task) => memory::of_zookeeper_client(task),
        }
    }
}
