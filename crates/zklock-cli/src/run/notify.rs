//! Notifies systemd, of a service of Type=notify.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::failure::Failure;

/// Says that the service is ready; nothing where nobody wants to know.
///
/// # Errors
/// The socket that was named does not take it.
pub fn ready() -> Result<(), Failure> {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let send = || -> io::Result<()> {
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&name)?,
        };
        UnixDatagram::unbound()?.send_to_addr(b"READY=1\n", &address)?;
        Ok(())
    };
    send().map_err(|error| Failure::new(format!("--notify: NOTIFY_SOCKET: {error}")))
}
