//! How much of what was written to a socket is still on its way.
//!
//! A reset throws away what the peer has not yet confirmed. A burst of small replies can be held back for a moment
//! even on loopback, so whoever resets after "everything before this has arrived" must ask first.

#![allow(unsafe_code, reason = "the ioctl has no safe form")]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Bytes written to `socket` that its peer's system has not confirmed.
pub(super) fn unconfirmed(socket: &TcpStream) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int to where its argument points: to `bytes`, which outlives the call, as does the
    // descriptor, which `socket` owns.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if outcome == 0 { Ok(bytes.try_into().unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn what_was_read_is_confirmed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        writer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(length) = writer.write(&[0; 65536]) {
            written += length;
        }
        assert!(unconfirmed(&writer).unwrap() > 0, "a full socket holds something back");
        reader.read_exact(&mut vec![0; written]).unwrap();
        while unconfirmed(&writer).unwrap() > 0 {
            std::thread::yield_now();
        }
    }
}
