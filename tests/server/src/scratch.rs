//! A directory of one process's own, in a place that others use as well.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const LOCK: &str = "in-use";
/// A younger directory may not have its lock yet.
const SETTLED: Duration = Duration::from_secs(60);

/// A directory for one process, which no other of its kind gets: for what tests build, install or write, so that
/// several runs go on side by side.
///
/// It is removed when this is dropped. What a process leaves behind (it was killed, or kept it in a `static`) the
/// next one removes that makes one there: a directory in use is told from one left behind by a file lock, which ends
/// with its process whatever way that ends.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
    _in_use: File,
}

impl Scratch {
    /// Makes one in `base`; its name begins with `prefix`, and nothing else there may be named so.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(base: &Path, prefix: &str) -> io::Result<Scratch> {
        sweep(base, prefix);
        let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(base)?;
        let in_use = File::create(directory.path().join(LOCK))?;
        flock(&in_use, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Scratch { directory, _in_use: in_use })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes what killed processes left behind. What cannot be removed stays: it is not ours to complain about.
fn sweep(base: &Path, prefix: &str) {
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified + SETTLED < SystemTime::now());
        if old && name.to_string_lossy().starts_with(prefix) && is_left_behind(&entry.path()) {
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
        let base = tempfile::tempdir().unwrap();
        let directory = Scratch::new(base.path(), "test-").unwrap();
        assert!(!is_left_behind(directory.path()));
        let path = directory.path().to_path_buf();
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_left_behind_goes_and_what_is_in_use_or_anothers_stays() {
        let base = tempfile::tempdir().unwrap();
        let in_use = Scratch::new(base.path(), "test-").unwrap();
        for name in ["test-left", "other-left"] {
            fs::create_dir(base.path().join(name)).unwrap();
            File::create(base.path().join(name).join(LOCK)).unwrap();
        }
        let long_ago = SystemTime::now() - 2 * SETTLED;
        for path in [in_use.path(), &base.path().join("test-left"), &base.path().join("other-left")]
        {
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        let next = Scratch::new(base.path(), "test-").unwrap();
        assert!(in_use.path().exists() && next.path().exists());
        assert!(!base.path().join("test-left").exists() && base.path().join("other-left").exists());
    }
}
