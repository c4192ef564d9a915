//! The addresses behind a host string.

use std::net::{SocketAddr, ToSocketAddrs};

/// One host of the string, and its addresses or why there are none.
pub struct Host {
    pub name: String,
    pub addresses: Result<Vec<SocketAddr>, String>,
}

/// The hosts of `host[:port],...[/chroot]`.
pub fn of(hosts: &str) -> Vec<Host> {
    let servers = hosts.split('/').next().unwrap_or_default();
    let names = servers.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| Host { name: shown(name).to_owned(), addresses: resolve(name) }).collect()
}

/// The name, unless it may be a part of another store's address: that may have a password.
fn shown(name: &str) -> &str {
    let is_host = |c: char| c.is_alphanumeric() || ".-_:[]%".contains(c);
    match name.rsplit_once(':') {
        _ if !name.chars().all(is_host) => "a host with a user, a password or options",
        Some((host, port)) if port.parse::<u16>().is_err() && !host.contains(':') => host,
        _ => name,
    }
}

fn resolve(name: &str) -> Result<Vec<SocketAddr>, String> {
    // Without a port it is no address, so it is tried with the usual one.
    let alone = name.trim_start_matches('[').trim_end_matches(']');
    let found = name.to_socket_addrs().or_else(|_| (alone, 2181).to_socket_addrs());
    let found: Vec<SocketAddr> = found.map_err(|error| error.to_string())?.collect();
    if found.is_empty() { Err("has no address".to_owned()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_may_have_ports_and_a_chroot() {
        let hosts = of("127.0.0.1:7, 127.0.0.2,[::1]/a/b");
        let addresses: Vec<_> = hosts.iter().map(|host| host.addresses.clone().unwrap()).collect();
        assert_eq!(addresses[0], ["127.0.0.1:7".parse().unwrap()]);
        assert_eq!(addresses[1], ["127.0.0.2:2181".parse().unwrap()]);
        assert_eq!(addresses[2], ["[::1]:2181".parse().unwrap()]);
    }
}
