//! ZooKeeper's four-letter words: a question of four bytes, an answer of text, on a connection of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::deadline;
use crate::error::{Error, Result};

/// Asks the server at `addr` the four-letter `word` and returns its answer: `four_letter(addr, "ruok", timeout)`.
///
/// `timeout`: how long to wait in all. A server that is starting, or frozen, accepts the connection and says nothing.
///
/// # Errors
/// [`Error::Timeout`] when no whole answer came in time, [`Error::BadArgument`] when `word` is not four lower-case
/// letters, else [`Error::Io`] with what the connection said. A server that does not allow the word says so in its
/// answer; [servers](crate::Server) of this crate allow all.
pub fn four_letter(addr: SocketAddr, word: &str, timeout: Duration) -> Result<String> {
    if word.len() != 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Err(Error::bad_argument(format!("{word:?} is not a four-letter word")));
    }
    let answer = ask(addr, word, deadline::after(timeout));
    answer.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => {
            Error::Timeout { what: format!("{word} at {addr}"), waited: timeout }
        }
        _ => Error::io(format!("{word} at {addr}"))(error),
    })
}

fn ask(addr: SocketAddr, word: &str, deadline: Instant) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&addr, left_until(deadline)?)?;
    stream.set_nodelay(true)?;
    stream.write_all(word.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&chunk[..length]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            // A server that closes before it has read all of ours resets; the answer is complete all the same.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The time left, which is some; `TimedOut` otherwise.
fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
