//! The log files of one server.
//!
//! A file is a header of 16 bytes (`ZKLG`, a version, a database id), then one entry for each
//! transaction (its Adler-32 in 8 bytes, its length in 4, the transaction, the byte 0x42), then
//! zeros: the server takes room ahead of what it writes. A server that is killed may leave half an
//! entry at the end, which it ignores itself when it comes back.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use adler2::Adler32;

use super::txn::Txn;

const MAGIC: &[u8; 4] = b"ZKLG";
const HEADER: usize = 16;
const END_OF_ENTRY: u8 = 0x42;
/// Far beyond what a server accepts (`jute.maxbuffer`): a length that is none.
const LONGEST: usize = 64 * 1024 * 1024;

/// The log files in a server's `version-2` directory, oldest first.
///
/// # Errors
/// Those of reading the directory.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(first) = name.strip_prefix("log.") {
            if let Ok(first) = u64::from_str_radix(first, 16) {
                files.push((first, path));
            }
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// All transactions of one file, in its order, up to its end or the first torn entry.
///
/// # Errors
/// Those of reading it, and an entry that is whole but can't be understood.
pub fn read(path: &Path) -> io::Result<Vec<Txn>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut header = [0; HEADER];
    let mut txns = Vec::new();
    // A server that is killed right after a roll-over leaves a file without a header.
    if !fill(&mut file, &mut header)? || header.iter().all(|byte| *byte == 0) {
        return Ok(txns);
    }
    if !header.starts_with(MAGIC) {
        return Err(broken(path, "it is no transaction log"));
    }
    while let Some((bytes, checksum)) = entry(&mut file)? {
        txns.push(Txn::decode(&bytes, checksum).map_err(|what| broken(path, &what))?);
    }
    Ok(txns)
}

/// The next whole entry.
fn entry(file: &mut impl Read) -> io::Result<Option<(Vec<u8>, u32)>> {
    let mut head = [0; 12];
    if !fill(file, &mut head)? {
        return Ok(None);
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (expected, length) = (number(&head[..8]), number(&head[8..]) as usize);
    if length == 0 || length > LONGEST {
        return Ok(None);
    }
    let mut bytes = vec![0; length + 1];
    if !fill(file, &mut bytes)? || bytes.pop() != Some(END_OF_ENTRY) {
        return Ok(None);
    }
    let mut checksum = Adler32::new();
    checksum.write_slice(&bytes);
    let checksum = checksum.checksum();
    Ok((u64::from(checksum) == expected).then_some((bytes, checksum)))
}

/// Whether the file had as many bytes.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn broken(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
}
