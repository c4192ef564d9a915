//! ZooKeeper's four-letter words: a question of four bytes, an answer of text, on a connection of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Asks the server at `addr` the four-letter `word` and returns its answer.
///
/// `timeout`: how long to wait in all. A server that is starting, or frozen, accepts the connection and says nothing.
///
/// # Errors
/// `TimedOut` when no whole answer came in time, `InvalidInput` when `word` is not four letters, else what the
/// connection said.
pub fn four_letter(addr: SocketAddr, word: &str, timeout: Duration) -> io::Result<String> {
    if word.len() != 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let message = format!("{word:?} is not a four-letter word");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&addr, timeout)?;
    stream.set_nodelay(true)?;
    stream.write_all(word.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let message = format!("{word} at {addr}: no answer within {timeout:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        stream.set_read_timeout(Some(left))?;
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
