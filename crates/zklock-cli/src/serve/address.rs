//! By which names it may be called.

use std::net::IpAddr;

/// A page of another site can have its own name lead to this machine, and read here in a browser's name what only this
/// machine is to see. So on a loopback address only those names count that no site has.
#[derive(Clone, Copy)]
pub struct Hosts {
    are_checked: bool,
}

impl Hosts {
    pub fn of(listening: IpAddr) -> Hosts {
        Hosts { are_checked: listening.is_loopback() }
    }

    pub fn allows(self, host: Option<&str>) -> bool {
        // Browsers always name one.
        let Some(host) = host.filter(|_| self.are_checked) else { return true };
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = without_port.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok() || without_port.eq_ignore_ascii_case("localhost")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_loopback_only_names_count_that_no_site_has() {
        let hosts = Hosts::of("127.0.0.1".parse().unwrap());
        for good in
            ["127.0.0.1:8218", "localhost:8218", "LocalHost", "[::1]:8218", "[::1]", "10.0.0.1"]
        {
            assert!(hosts.allows(Some(good)), "{good}");
        }
        for bad in ["evil.example:8218", "localhost.evil.example", "", "127.0.0.1.evil.example:80"]
        {
            assert!(!hosts.allows(Some(bad)), "{bad}");
        }
        assert!(hosts.allows(None));
        assert!(Hosts::of("10.0.0.1".parse().unwrap()).allows(Some("locks.example")));
    }
}
