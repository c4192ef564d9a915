//! A server's snapshot with one number changed: how many children a znode has ever had.
//!
//! Two thousand million creates would take weeks. So a server makes a directory and is stopped; in the
//! snapshot that it wrote, the directory's `cversion`, from which the numbers of sequential children are
//! taken, is set as those creates would have left it, and the checksum made anew; the server starts from
//! that. Everything after it is the real server's own doing.

use std::fs;
use std::path::{Path, PathBuf};

use zklock_testing::Server;

/// Sets `cversion` of the znodes at `paths` on a server, which is stopped and started again.
pub fn set_cversion(server: &Server, counters: &[(&str, i32)]) {
    // At its start a server writes a snapshot of what it has read.
    server.restart().unwrap();
    server.stop().unwrap();
    let data = server.data_dir().join("version-2");
    let newest = newest_snapshot(&data);
    let mut bytes = fs::read(&newest).unwrap();
    for (path, cversion) in counters {
        Reader::new(&bytes).find(path).patch(&mut bytes, *cversion);
    }
    fs::write(&newest, bytes).unwrap();
    server.start_again().unwrap();
}

fn newest_snapshot(directory: &Path) -> PathBuf {
    let zxid = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        i64::from_str_radix(name.strip_prefix("snapshot.")?, 16).ok()
    };
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter_map(|path| Some((zxid(&path)?, path))).max().expect("a snapshot").1
}

/// Where things are in a snapshot.
struct Places {
    cversion: usize,
    /// Each checksum covers everything before it.
    checksums: Vec<usize>,
}

impl Places {
    fn patch(&self, bytes: &mut [u8], cversion: i32) {
        bytes[self.cversion..self.cversion + 4].copy_from_slice(&cversion.to_be_bytes());
        for &at in &self.checksums {
            let sum = i64::from(adler2::adler32_slice(&bytes[..at]));
            bytes[at..at + 8].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        self.at += length;
        &self.bytes[self.at - length..self.at]
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    /// A string or a buffer; no length is minus one.
    fn text(&mut self) -> &'a [u8] {
        let length = self.int();
        self.take(length.max(0) as usize)
    }

    /// Reads the whole file: header, sessions, access control lists, znodes, checksum, and what newer
    /// servers add: a digest with a checksum of its own.
    fn find(mut self, path: &str) -> Places {
        const LONG: usize = 8;
        assert_eq!(self.take(4), b"ZKSN");
        let _version_and_database = self.take(4 + LONG);
        for _ in 0..self.int() {
            let _session_and_timeout = self.take(LONG + 4);
        }
        for _ in 0..self.int() {
            let _list = self.take(LONG);
            for _ in 0..self.int() {
                let _permissions = self.int();
                let (_scheme, _id) = (self.text(), self.text());
            }
        }
        let mut cversion = None;
        loop {
            let name = self.text();
            if name == b"/" {
                break;
            }
            let _data = self.text();
            let _list = self.take(LONG);
            let _czxid_mzxid_ctime_mtime = self.take(4 * LONG);
            let _version = self.int();
            if name == path.as_bytes() {
                cversion = Some(self.at);
            }
            let (_cversion, _aversion) = (self.int(), self.int());
            let _owner_and_pzxid = self.take(2 * LONG);
        }
        let mut checksums = vec![self.at];
        let _checksum = (self.take(LONG), self.text());
        if self.at < self.bytes.len() {
            let _zxid_version_digest = self.take(LONG + 4 + LONG);
            checksums.push(self.at);
            let _checksum = (self.take(LONG), self.text());
        }
        assert_eq!(self.at, self.bytes.len(), "the snapshot is read to its end");
        Places { cversion: cversion.expect("the znode is in the snapshot"), checksums }
    }
}
