//! Reads host strings. The C client's own parser spins, bricks or waits for ever on some of them,
//! so it only ever sees what was checked here.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use crate::path;

const DEFAULT_PORT: u16 = 2181;
/// More would be a mistake; the C client resolves them one after the other.
const MAX_HOSTS: usize = 256;

/// A fault in a host string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostsError {
    #[error("no host: write host[:port][,host[:port]...][/chroot]")]
    Empty,
    #[error(
        "the text is a URL: write host:port, as in zk1.example.net:2181; a store is connected to by its address \
             with zklock::connect, in C with zkl_store_connect"
    )]
    Url,
    #[error(
        "a host has no user, no password and no options: write host:port, as in zk1.example.net:2181"
    )]
    Options,
    #[error("an empty host between commas")]
    EmptyHost,
    #[error("more than {MAX_HOSTS} hosts")]
    TooMany,
    #[error("host {0:?}: only letters, digits, '.', '-' and '_' make a name")]
    BadName(String),
    #[error("host {0:?}: the port takes 1 to 65535")]
    BadPort(String),
    #[error("write an IPv6 address in brackets, as in [::1]:2181")]
    BareIpv6,
    #[error("host {0:?}: not an IPv6 address in the brackets")]
    BadIpv6(String),
    #[error("chroot {0:?}: {1}")]
    BadChroot(String, &'static str),
}

/// The addresses of a host in the C client's form. Blocks for as long as its name takes to resolve.
pub(super) fn resolve(host: &str) -> io::Result<Vec<SocketAddr>> {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let port = port.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok((name, port).to_socket_addrs()?.collect())
}

/// Gives the string in the C client's form: every port named, IPv6 without its brackets. No error shows what may be a
/// password: the string may be the address of another store.
pub(super) fn parse(hosts: &str) -> Result<String, HostsError> {
    let hosts = hosts.strip_prefix("zookeeper://").unwrap_or(hosts);
    if hosts.contains("://") {
        return Err(HostsError::Url);
    }
    let (list, chroot) = match hosts.find('/') {
        Some(at) => hosts.split_at(at),
        None => (hosts, ""),
    };
    if list.trim().is_empty() {
        return Err(HostsError::Empty);
    }
    if list.contains(['@', '=', ';', '?', '#']) {
        return Err(HostsError::Options);
    }
    let parsed: Vec<String> =
        list.split(',').map(|host| host_and_port(host.trim())).collect::<Result<_, _>>()?;
    if parsed.len() > MAX_HOSTS {
        return Err(HostsError::TooMany);
    }
    let chroot = chroot.trim_end();
    let chroot = if chroot == "/" { "" } else { chroot };
    if !chroot.is_empty() {
        path::validate(chroot).map_err(|why| HostsError::BadChroot(excerpt(chroot), why))?;
    }
    Ok(parsed.join(",") + chroot)
}

/// Enough of a text to recognise it by.
fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

fn host_and_port(text: &str) -> Result<String, HostsError> {
    if text.is_empty() {
        return Err(HostsError::EmptyHost);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let bad = || HostsError::BadIpv6(excerpt(text));
        let (address, after) = rest.split_once(']').ok_or_else(bad)?;
        let address: Ipv6Addr = address.parse().map_err(|_| bad())?;
        let port = match after.strip_prefix(':') {
            Some(port) => read_port(&address.to_string(), port)?,
            None if after.is_empty() => DEFAULT_PORT,
            None => return Err(HostsError::BareIpv6),
        };
        return Ok(format!("{address}:{port}"));
    }
    let (name, port) = match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => {
            return Err(HostsError::BareIpv6);
        }
        Some((name, port)) => (name, read_port(name, port)?),
        None => (text, DEFAULT_PORT),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > 253 || !name.chars().all(fits) {
        return Err(HostsError::BadName(excerpt(text)));
    }
    Ok(format!("{name}:{port}"))
}

fn read_port(host: &str, port: &str) -> Result<u16, HostsError> {
    let bad = || HostsError::BadPort(excerpt(host));
    // parse() alone would take a sign.
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    port.parse().ok().filter(|port| *port != 0).ok_or_else(bad)
}

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/properties/hosts.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_strings_come_out_in_the_c_clients_form() {
        for (text, c) in [
            ("localhost", "localhost:2181"),
            ("127.0.0.1:2182", "127.0.0.1:2182"),
            (" a:1 , b ", "a:1,b:2181"),
            ("[::1]", "::1:2181"),
            ("[2001:db8::7]:9/app/x", "2001:db8::7:9/app/x"),
            ("zk-1.example_net:2181/", "zk-1.example_net:2181"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(c), "{text}");
        }
    }

    #[test]
    fn hostile_strings_are_refused() {
        for text in [
            "",
            " ",
            ",",
            "a,",
            ",a",
            "a,,b",
            "/",
            "/foo",
            " /foo",
            "a:",
            "a:0",
            "a:99999",
            "a:+1",
            "a:-1",
            "a:x",
            "a:1 2",
            ":2181",
            "::1:2181",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[::1]:0",
            "[1.2.3.4]:1",
            "a b:1",
            "a\0:1",
            "a\n:1",
            "a:1/..",
            "a:1//x",
            "a:1/x/",
            "a:1/x\0",
            "a@b:1",
            "ä:1",
            "a:65536",
        ] {
            assert!(parse(text).is_err(), "{text:?} was taken as {:?}", parse(text));
        }
        assert_eq!(parse(&"a,".repeat(1_000)), Err(HostsError::EmptyHost));
        assert!(parse(&vec!["a"; 256].join(",")).is_ok());
        assert_eq!(parse(&vec!["a"; 257].join(",")), Err(HostsError::TooMany));
        assert!(parse(&"a".repeat(1_000_000)).is_err());
    }

    #[test]
    fn an_error_says_what_to_write_instead() {
        let text = parse("::1:2181").unwrap_err().to_string();
        assert!(text.contains("[::1]:2181"), "{text}");
        for url in ["http://zk:2181", "a:1,zookeeper://b:2", "a:1,tcp://b:2"] {
            let text = parse(url).unwrap_err().to_string();
            assert!(text.contains("URL") && text.contains("write host:port"), "{text}");
        }
    }
}
