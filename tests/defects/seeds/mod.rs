//! Small ports of faulty locks: their logic as their users and readers described it, in our words, with
//! the defects in. Each keeps the original's steps in their order, so that what it does on the wire and
//! when it looks at what are the original's too; what has nothing to do with the defect is left out.
//!
//! They work on zklock's plain operations, so that a defect shown here is the recipe's, not a client's.

pub mod c_lock_test;
pub mod c_recipe;
pub mod curator_locks;
pub mod java_children;
pub mod java_node;
pub mod leaders;
pub mod monitor;
pub mod peers;
#[cfg(feature = "redis")]
pub mod redis_key;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod rows;
pub mod textbook;
pub mod timed;

use std::time::{Duration, Instant};

use test_support::TIMEOUT;
use zklock::zookeeper::CreateMode;
use zklock::{Client, Result};

/// The children of a directory, sorted as strings.
pub fn sorted_children(zk: &Client, directory: &str) -> Result<Vec<String>> {
    let mut names = zk.children(directory).wait()?.names;
    names.sort();
    Ok(names)
}

/// A numbered child that ends with its session. Returns its name.
pub fn numbered_child(zk: &Client, directory: &str, prefix: &str) -> Result<String> {
    let path = format!("{directory}/{prefix}");
    let created = zk.create(&path, b"", CreateMode::EphemeralSequential).wait()?;
    Ok(created.path[directory.len() + 1..].to_owned())
}

/// What follows the last `-`, as the server numbered it.
pub fn number(name: &str) -> Option<i64> {
    name.rsplit('-').next()?.parse().ok()
}

/// A retry policy: what lost its connection is simply done again.
pub fn retrying<T>(mut act: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match act() {
            Err(error) if error.is_connection_loss() && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}
