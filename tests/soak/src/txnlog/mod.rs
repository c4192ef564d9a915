//! The servers' transaction logs: what the ensemble did, in the order in which it did it.

mod archive;
mod file;
mod merge;
#[cfg(test)]
mod tests;
mod tree;
mod txn;

use std::io;
use std::path::PathBuf;

pub use file::files;
pub use merge::Agreed;
pub use txn::{Change, Txn};

/// Reads the `version-2` directories of all members of an ensemble.
///
/// # Errors
/// Those of reading files; a file that is no log, or holds what this does not understand.
pub fn read_ensemble(directories: &[PathBuf]) -> io::Result<Agreed> {
    let mut logs = Vec::new();
    for directory in directories {
        let mut log = Vec::new();
        for file in file::files(directory)? {
            log.extend(file::read(&file)?);
        }
        logs.push(log);
    }
    Ok(merge::merge(logs))
}
