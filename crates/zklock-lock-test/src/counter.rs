//! The counter file: one decimal integer that nothing but the lock protects.
//!
//! An increment is a plain read and a plain write, so that two holders at once lose one of theirs.
//! Any program, in any language, can take part.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trouble::Trouble;

/// No integer is longer. A file that is was not meant to be a counter.
const LONGEST: u64 = 64;

/// A counter file, and what we have written to it so far.
pub struct Counter {
    path: PathBuf,
    /// Whether it is a temporary file that nobody else knows.
    is_ours: bool,
    last_written: AtomicU64,
}

impl Counter {
    /// The file that was named, or else a temporary one that goes when this value does.
    pub fn open(path: Option<&Path>) -> Result<Counter, Trouble> {
        let counter = match path {
            Some(path) => Counter::at(path.to_owned(), false),
            None => Counter::temporary()?,
        };
        // Makes it if it is missing. An empty one counts as 0, and is not written to here: another
        // program may be at it already.
        let touch = OpenOptions::new().read(true).append(true).create(true).open(&counter.path);
        touch.map_err(|error| error.to_string()).and_then(|_| counter.read()).map_err(|why| {
            Trouble::Usage(format!("--counter {}: {why}", counter.path.display()))
        })?;
        Ok(counter)
    }

    fn at(path: PathBuf, is_ours: bool) -> Counter {
        Counter { path, is_ours, last_written: AtomicU64::new(0) }
    }

    fn temporary() -> Result<Counter, Trouble> {
        loop {
            let name = format!("lock_test-{}-{:08x}", std::process::id(), fastrand::u32(..));
            let path = std::env::temp_dir().join(name);
            match File::create_new(&path) {
                Ok(_) => return Ok(Counter::at(path, true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let message = format!("make a counter file {}: {error}", path.display());
                    return Err(Trouble::Cannot(message));
                }
            }
        }
    }

    /// The file's integer.
    pub fn read(&self) -> Result<u64, String> {
        let mut text = Vec::new();
        File::open(&self.path)
            .and_then(|file| file.take(LONGEST).read_to_end(&mut text))
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text);
        match text.trim() {
            "" => Ok(0),
            digits => digits.parse().map_err(|_| format!("it holds no decimal integer: {text:?}")),
        }
    }

    /// Whether nobody but us has incremented it since we did.
    pub fn is_last_of_ours(&self, value: u64) -> bool {
        value == self.last_written.load(Ordering::SeqCst)
    }

    /// A value that was read inside the lock must have all our increments in it.
    pub fn check_read(&self, value: u64) -> Result<(), String> {
        match self.last_written.load(Ordering::SeqCst) {
            last if value < last => {
                Err(format!("it holds {value} after {last} had been written: an increment is lost"))
            }
            _ => Ok(()),
        }
    }

    /// Writes a value that was read inside the lock, plus one.
    pub fn write_next(&self, read: u64) -> Result<(), String> {
        let next = read.checked_add(1).ok_or("it is as large as it can be")?;
        write_in_place(&self.path, next).map_err(|error| error.to_string())?;
        let before = self.last_written.fetch_max(next, Ordering::SeqCst);
        if before >= next {
            return Err(format!("{next} was written after {before}: an increment is lost"));
        }
        Ok(())
    }

    /// At the end of a run there must be as much more in it as we have incremented it.
    pub fn check_growth(&self, start: u64, increments: u64) -> Result<(), String> {
        let end = self.read()?;
        let grown = end.saturating_sub(start);
        if grown < increments || (self.is_ours && grown > increments) {
            return Err(format!("it went from {start} to {end} by {increments} increments"));
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Not truncated first: a reader that should not be there would see an empty file, which looks
/// like a new one.
fn write_in_place(path: &Path, value: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let text = format!("{value}\n");
    file.write_all(text.as_bytes())?;
    let end = file.stream_position()?;
    if file.metadata()?.len() > end { file.set_len(end) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> Counter {
        Counter::open(None).expect("a temporary counter")
    }

    fn increment(counter: &Counter) -> Result<(), String> {
        let value = counter.read()?;
        counter.check_read(value)?;
        counter.write_next(value)
    }

    #[test]
    fn increments_add_up() {
        let counter = counter();
        for n in 0..20 {
            assert_eq!(counter.read(), Ok(n));
            assert_eq!(increment(&counter), Ok(()));
        }
        assert_eq!(counter.check_growth(0, 20), Ok(()));
    }

    #[test]
    fn two_holders_that_write_the_same_value_are_caught() {
        let counter = counter();
        let (one, other) = (counter.read().unwrap(), counter.read().unwrap());
        assert_eq!(counter.write_next(one), Ok(()));
        assert!(counter.write_next(other).unwrap_err().contains("lost"));
        assert!(counter.check_growth(0, 2).unwrap_err().contains("from 0 to 1 by 2"));
    }

    #[test]
    fn an_increment_that_somebody_else_undoes_is_caught() {
        let counter = counter();
        (0..3).for_each(|_| increment(&counter).unwrap());
        write_in_place(&counter.path, 1).unwrap();
        let value = counter.read().unwrap();
        assert!(counter.check_read(value).unwrap_err().contains("it holds 1 after 3"));
    }

    #[test]
    fn a_file_of_ours_must_not_grow_by_others() {
        let counter = counter();
        write_in_place(&counter.path, 5).unwrap();
        assert!(counter.check_growth(0, 4).is_err());
        assert_eq!(counter.check_growth(0, 5), Ok(()));
    }

    #[test]
    fn a_shared_file_may_grow_by_others_but_not_by_less_than_ours() {
        let mut counter = counter();
        counter.is_ours = false;
        write_in_place(&counter.path, 5).unwrap();
        assert_eq!(counter.check_growth(0, 4), Ok(()));
        assert!(counter.check_growth(0, 6).is_err());
        counter.is_ours = true;
    }

    #[test]
    fn a_file_that_is_no_counter_is_refused_and_kept() {
        let counter = counter();
        for text in ["seven", "-1", "1 2", "99999999999999999999999", "\u{fffd}"] {
            std::fs::write(&counter.path, text).unwrap();
            let refused = Counter::open(Some(&counter.path)).err().expect(text);
            assert_eq!(refused.exit_code(), 2);
            assert!(refused.message().unwrap().starts_with("--counter"));
            assert_eq!(std::fs::read_to_string(&counter.path).unwrap(), text);
        }
        for (text, value) in [("", 0), ("7", 7), (" 12\n", 12), ("0000009", 9)] {
            std::fs::write(&counter.path, text).unwrap();
            let shared = Counter::open(Some(&counter.path)).expect(text);
            assert_eq!(shared.read(), Ok(value));
        }
        assert_eq!(increment(&counter), Ok(()));
        assert_eq!(std::fs::read_to_string(&counter.path).unwrap(), "10\n");
    }
}
