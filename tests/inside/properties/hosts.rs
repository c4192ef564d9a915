//! Host strings of any kind, and what the C client makes of those that pass.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;
use crate::raw::{self, Zhandle};

/// A host as it is written, and as the C client takes it.
fn host() -> impl Strategy<Value = (String, String)> {
    let plain = "[a-zA-Z0-9._-]{1,30}".prop_map(|name| (name.clone(), name));
    let v4 = any::<u32>().prop_map(|bits| Ipv4Addr::from(bits).to_string());
    let v4 = v4.prop_map(|address| (address.clone(), address));
    let v6 = any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).to_string());
    let v6 = v6.prop_map(|address| (format!("[{address}]"), address));
    let port = prop_oneof![Just(None), (1..=u16::MAX).prop_map(Some)];
    (prop_oneof![plain, v4, v6], port, " {0,2}").prop_map(|((written, name), port, space)| {
        let number = port.unwrap_or(DEFAULT_PORT);
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        (format!("{space}{written}{port}{space}"), format!("{name}:{number}"))
    })
}

fn chroot() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "(/[a-z0-9_é-]{1,8}){1,4}"]
}

proptest! {
    #[test]
    fn a_good_string_comes_out_in_the_c_clients_form(
        hosts in vec(host(), 1..8), chroot in chroot()
    ) {
        let (written, c): (Vec<String>, Vec<String>) = hosts.into_iter().unzip();
        prop_assert_eq!(parse(&(written.join(",") + &chroot)), Ok(c.join(",") + &chroot));
    }

    #[test]
    fn whatever_passes_is_a_list_of_names_with_ports_and_a_path(
        text in ".*|[a-c0-9:,./\\[\\] @-]{0,40}|\\[[0-9a-f:.]{0,20}\\]:?[0-9]{0,6}(/[a.]{0,3}){0,3}"
    ) {
        let Ok(c) = parse(&text) else { return Ok(()) };
        let (list, chroot) = c.split_at(c.find('/').unwrap_or(c.len()));
        prop_assert!(chroot.is_empty() || chroot.len() > 1 && path::validate(chroot).is_ok());
        prop_assert_eq!(list.split(',').count(), text.split('/').next().unwrap().split(',').count());
        for host in list.split(',') {
            let (name, port) = host.rsplit_once(':').unwrap();
            prop_assert!(port.parse::<u16>().is_ok_and(|port| port > 0));
            let fits = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
            prop_assert!(name.parse::<Ipv6Addr>().is_ok() || !name.is_empty() && name.chars().all(fits));
        }
    }

    #[test]
    fn an_error_shows_the_host_that_is_wrong(
        before in vec(host(), 0..3), bad in "[a-zä]{0,8}[ä!][a-z]{0,8}(:[1-9][0-9]{0,3})?", after in vec(host(), 0..3)
    ) {
        let good = |hosts: Vec<(String, String)>| hosts.into_iter().map(|host| host.0);
        let all: Vec<String> = good(before).chain([bad.clone()]).chain(good(after)).collect();
        let error = parse(&all.join(",")).unwrap_err().to_string();
        prop_assert!(error.contains(&format!("{bad:?}")), "{}: {}", bad, error);
    }

    #[test]
    fn an_error_shows_the_chroot_that_is_wrong(
        host in host(), bad in "(/[a-z]{1,5}){0,2}(//|/\\.|/\\.\\.|/\u{1})(/[a-z]{1,5}){1,2}"
    ) {
        let error = parse(&(host.0 + &bad)).unwrap_err();
        prop_assert!(matches!(&error, HostsError::BadChroot(shown, _) if *shown == bad), "{}", error);
    }
}

proptest! {
    // Each opens a handle, which takes two threads.
    #![proptest_config(Config { cases: Config::default().cases.div_ceil(8), ..Config::default() })]

    #[test]
    fn the_c_client_takes_what_passes(
        // Nobody listens there: port 1, on this machine. No names: they may be asked of the network.
        hosts in vec(prop_oneof![(0..=255_u8).prop_map(|n| format!("127.0.0.{n}:1")), Just("[::1]:1".into())], 1..6),
        chroot in chroot(),
    ) {
        let hosts = parse(&(hosts.join(",") + &chroot)).unwrap();
        let config = raw::Config { hosts, in_order: false, session_timeout: Duration::from_secs(1), session: None, tls: None, sasl: None };
        let handle = Zhandle::open(&config, |_| {});
        prop_assert!(handle.is_ok(), "{}: {:?}", config.hosts, handle.err());
    }
}
