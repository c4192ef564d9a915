//! A server's directory: its configuration, data and log, removed when the server is dropped.
//!
//! It lies in memory where the system offers that (`/dev/shm`), so that a commit costs no disk. A process that is
//! killed leaves its directories behind; the next one to start a server removes them. The directory of a server of
//! another process stays.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::scratch::Scratch;

#[derive(Debug)]
pub(crate) enum DataDir {
    Own(Scratch),
    OfAnotherProcess(PathBuf),
}

impl DataDir {
    pub(crate) fn create() -> io::Result<DataDir> {
        let scratch = Scratch::new(&base(), "zklock-testing-")?;
        let directory = DataDir::Own(scratch);
        fs::create_dir(directory.data())?;
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            DataDir::Own(scratch) => scratch.path(),
            DataDir::OfAnotherProcess(path) => path,
        }
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
