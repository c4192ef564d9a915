//! Where servers are, as clients are told: `host:port,host:port/chroot`.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::{Error, Result};

/// The servers' addresses, one at least. The chroot is the client's own affair.
pub(crate) fn resolve(hosts: &str) -> Result<Vec<SocketAddr>> {
    let without_chroot = hosts.split('/').next().unwrap_or_default();
    let mut addrs = Vec::new();
    for host in without_chroot.split(',').map(str::trim) {
        let resolved = host.to_socket_addrs().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => {
                Error::bad_argument(format!("{host:?} is no server's address, host:port"))
            }
            _ => Error::io(format!("resolve {host:?}"))(error),
        })?;
        addrs.extend(resolved);
    }
    if addrs.is_empty() {
        return Err(Error::bad_argument(format!("{hosts:?} has no address")));
    }
    Ok(addrs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_string_is_read_as_clients_read_it() {
        let addrs = resolve("127.0.0.1:1, 127.0.0.1:2,[::1]:3/app/a").unwrap();
        assert_eq!(addrs.iter().map(SocketAddr::port).collect::<Vec<_>>(), [1, 2, 3]);
        for unreadable in ["", "/app", "127.0.0.1", "127.0.0.1:1,", "127.0.0.1:port"] {
            let error = resolve(unreadable).unwrap_err();
            assert!(matches!(error, Error::BadArgument { .. }), "{unreadable}: {error}");
        }
    }
}
