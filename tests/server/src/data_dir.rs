//! A server's directory: its configuration, data and log, removed when the server is dropped.
//!
//! It lies in memory where the system offers that (`/dev/shm`), so that a commit costs no disk. A process that is
//! killed leaves its directories behind; the next one to start a server removes them. A directory in use is told
//! from one left behind by a file lock, which ends with its process whatever way that ends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const PREFIX: &str = "zklock-testing-";
const LOCK: &str = "in-use";
/// A younger directory may not have its lock yet.
const SETTLED: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct DataDir {
    directory: TempDir,
    _in_use: File,
}

impl DataDir {
    pub(crate) fn create() -> io::Result<DataDir> {
        static SWEPT: Once = Once::new();
        let base = base();
        SWEPT.call_once(|| sweep(&base));
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&base)?;
        let in_use = File::create(directory.path().join(LOCK))?;
        flock(&in_use, FlockOperation::NonBlockingLockExclusive)?;
        fs::create_dir(directory.path().join("data"))?;
        Ok(DataDir { directory, _in_use: in_use })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }
}

fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if tempfile::tempfile_in(memory).is_ok() { memory.to_path_buf() } else { std::env::temp_dir() }
}

/// Removes what killed processes left behind. What cannot be removed stays: it is not ours to complain about.
fn sweep(base: &Path) {
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified + SETTLED < SystemTime::now());
        if old && name.to_string_lossy().starts_with(PREFIX) && is_left_behind(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left_behind(directory: &Path) -> bool {
    match File::open(directory.join(LOCK)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_is_not_taken_for_one_left_behind() {
        let directory = DataDir::create().unwrap();
        assert!(!is_left_behind(directory.path()));
        let path = directory.path().to_path_buf();
        drop(directory);
        assert!(!path.exists());
    }
}
