//! What the servers' answers mean for locks.

use std::time::Duration;

use super::finding::Finding;
use super::server::ServerSays;

/// More watches than that are more than locks need.
const MANY_WATCHES: f64 = 1_000_000.0;
/// A share of the descriptors that a server may have.
const NEARLY_ALL: f64 = 0.8;

/// What all of them are together.
/// So many do not answer.
pub fn of_ensemble(servers: &[ServerSays], silent: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    let leaders = servers.iter().filter(|server| server.is("leader")).count();
    let alone = servers.iter().filter(|server| server.is("standalone")).count();
    let known = servers.iter().filter(|server| server.mode.is_some()).count();
    if alone > 0 && servers.len() + silent > 1 {
        found.push(Finding::bad(
            "ensemble",
            "a standalone server among several: each has locks of its own, so two clients can hold one lock",
            "name the members of one ensemble in --hosts; see server.N in each zoo.cfg",
        ));
    } else if leaders > 1 {
        found.push(Finding::bad(
            "ensemble",
            format!("{leaders} leaders: the hosts are of several ensembles, so two clients can hold one lock"),
            "name the members of one ensemble in --hosts",
        ));
    } else if leaders == 0 && alone == 0 && known == servers.len() && silent == 0 && known > 0 {
        found.push(Finding::warning(
            "ensemble",
            "no leader among these hosts: an election is under way, or the leader is not named",
            "name all members in --hosts, so that clients can move to each of them",
        ));
    } else if alone == 1 {
        found.push(Finding::warning(
            "ensemble",
            "one standalone server: while it is down nobody gets a lock",
            "three servers or more survive the loss of one",
        ));
    } else if silent > 0
        && leaders + servers.iter().filter(|server| server.is("follower")).count() > 0
    {
        found.push(Finding::warning(
            "ensemble",
            format!("{known} of {} servers serve: they have a quorum", known + silent),
            "bring the others back: each one that is down leaves less to lose",
        ));
    } else if leaders == 1 {
        found.push(Finding::fine("ensemble", format!("{known} servers, one of them the leader")));
    }
    found.extend(of_versions(servers));
    found
}

fn of_versions(servers: &[ServerSays]) -> Option<Finding> {
    let mut versions: Vec<Vec<u32>> = servers.iter().map(ServerSays::version_numbers).collect();
    versions.retain(|version| !version.is_empty());
    versions.sort();
    versions.dedup();
    let text = |version: &[u32]| version.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    let all: Vec<String> = versions.iter().map(|version| text(version)).collect();
    let is_ensemble = servers.len() > 1 || servers.iter().any(|server| !server.is("standalone"));
    let (oldest, is_mixed) = (versions.first()?, versions.len() > 1);
    Some(if *oldest < vec![3, 5] {
        Finding::bad(
            "version",
            format!("ZooKeeper {}: no lock can be acquired on servers before 3.5", text(oldest)),
            "a server of 3.5 or later",
        )
    } else if is_ensemble && versions.contains(&vec![3, 8, 0]) {
        Finding::bad(
            "version",
            "ZooKeeper 3.8.0: ensembles lose acknowledged writes, and with them locks, when elections are interrupted \
             (ZOOKEEPER-4643, 4646, 4685, 4785)",
            "a release in which these are mended; until then -Dzookeeper.forceSnapshotSync=true on each server",
        )
    } else if is_mixed {
        Finding::warning(
            "version",
            format!("versions {} in one ensemble", all.join(", ")),
            "that is for the time of an upgrade only",
        )
    } else {
        Finding::fine("version", format!("ZooKeeper {}", all.join(", ")))
    })
}

/// Whether a server of this version has CVE-2026-24281.
fn trusts_reverse_dns(version: &[u32]) -> bool {
    match version {
        [3, 9, patch, ..] => *patch < 5,
        [3, minor, patch, ..] => (*minor, *patch) < (8, 6),
        _ => false,
    }
}

/// What one of them says of itself.
pub fn of_server(server: &ServerSays, tick_said: Option<Duration>) -> Vec<Finding> {
    let mut found = Vec::new();
    let name = &server.name;
    if server.mode.is_none() {
        found.push(Finding::warning(
            "server",
            format!("{name} answers, but may not say how it is"),
            "4lw.commands.whitelist=srvr,conf,mntr in its zoo.cfg",
        ));
    }
    if let (Some(tick), Some(shortest)) = (server.tick, server.shortest_session) {
        if tick_said.is_some_and(|said| said < tick) {
            found.push(Finding::bad(
                "sessions",
                format!("{name}: its tickTime is {tick:?}, more than the tick-time that is configured here"),
                "tick-time says how soon a lost lock is noticed: name the servers' own, or none",
            ));
        } else if shortest < tick * 2 && tick_said.is_none() {
            found.push(Finding::bad(
                "sessions",
                format!("{name}: grants sessions of {shortest:?}, less than two ticks of {tick:?}: guards trust them for too long"),
                "raise minSessionTimeout to two ticks, or write tick-time into the configuration of all clients",
            ));
        }
    }
    if server.has_tls && trusts_reverse_dns(&server.version_numbers()) {
        let version = server.version.as_deref().unwrap_or_default();
        found.push(Finding::warning(
            "version",
            format!("{name}: ZooKeeper {version} also accepts a TLS certificate for a name that reverse DNS gives (CVE-2026-24281)"),
            "upgrade to 3.8.6, 3.9.5 or later",
        ));
    }
    let number = |key: &str| server.numbers.get(key).copied();
    if let Some(watches) = number("zk_watch_count").filter(|count| *count > MANY_WATCHES) {
        found.push(Finding::warning(
            "watches",
            format!("{name}: {watches} watches: some client leaves them behind"),
            "`echo wchs | nc HOST PORT`, and wchc by session, where they are allowed",
        ));
    }
    let descriptors =
        number("zk_open_file_descriptor_count").zip(number("zk_max_file_descriptor_count"));
    if let Some((open, most)) = descriptors.filter(|(open, most)| *open > most * NEARLY_ALL) {
        found.push(Finding::warning(
            "server",
            format!("{name}: {open} of {most} descriptors are open: soon nobody can connect"),
            "raise the limit, or find out who connects so often (`cons`)",
        ));
    }
    if let Some(slow) = number("zk_fsync_threshold_exceed_count").filter(|count| *count > 0.0) {
        found.push(Finding::warning(
            "server",
            format!("{name}: its disk was too slow for {slow} writes since its start: sessions end early when it is"),
            "dataLogDir on a disk of its own",
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn server(version: &str, mode: &str) -> ServerSays {
        let (version, mode) = (Some(version.to_owned()), Some(mode.to_owned()));
        ServerSays { name: "a:1".to_owned(), version, mode, ..ServerSays::default() }
    }

    fn worst(found: &[Finding]) -> (Level, &'static str) {
        let worst = found.iter().max_by_key(|finding| finding.level).expect("something");
        (worst.level, worst.check)
    }

    #[test]
    fn an_ensemble_has_one_leader_and_a_version_that_keeps_what_it_says() {
        let of = |servers: &[(&str, &str)]| {
            let servers: Vec<_> = servers.iter().map(|(v, m)| server(v, m)).collect();
            worst(&of_ensemble(&servers, 0))
        };
        let (leader, follower) = (("3.9.4", "leader"), ("3.9.4", "follower"));
        assert_eq!(of(&[leader, follower, follower]).0, Level::Fine);
        assert_eq!(of(&[leader, follower, leader]), (Level::Bad, "ensemble"));
        assert_eq!(
            of(&[("3.9.4", "standalone"), ("3.9.4", "standalone")]),
            (Level::Bad, "ensemble")
        );
        assert_eq!(of(&[follower, follower]), (Level::Warning, "ensemble"));
        assert_eq!(of(&[("3.8.0", "standalone")]), (Level::Warning, "ensemble"));
        assert_eq!(of(&[("3.8.0", "leader"), follower]), (Level::Bad, "version"));
        assert_eq!(of(&[("3.4.14", "leader")]), (Level::Bad, "version"));
        assert_eq!(of(&[leader, ("3.9.3", "follower")]), (Level::Warning, "version"));
    }

    #[test]
    fn sessions_of_less_than_two_ticks_are_trusted_for_too_long() {
        let seconds = Duration::from_secs;
        let mut sick = server("3.9.4", "leader");
        (sick.tick, sick.shortest_session) = (Some(seconds(2)), Some(seconds(1)));
        assert_eq!(worst(&of_server(&sick, None)), (Level::Bad, "sessions"));
        assert!(of_server(&sick, Some(seconds(2))).is_empty());
        assert_eq!(worst(&of_server(&sick, Some(seconds(1)))), (Level::Bad, "sessions"));
        sick.shortest_session = Some(seconds(4));
        assert!(of_server(&sick, None).is_empty());
    }

    #[test]
    fn a_server_with_tls_that_trusts_reverse_dns_is_named() {
        let warns = |version: &str, has_tls: bool| {
            let server = ServerSays { has_tls, ..server(version, "leader") };
            !of_server(&server, None).is_empty()
        };
        let versions = ["3.6.4", "3.8.5", "3.8.6", "3.8.10", "3.9.4", "3.9.5", "3.10.0", "?"];
        let named: Vec<_> = versions.into_iter().filter(|version| warns(version, true)).collect();
        assert_eq!(named, ["3.6.4", "3.8.5", "3.9.4"]);
        assert!(!warns("3.9.4", false));
    }

    #[test]
    fn what_runs_full_is_said_before_it_is() {
        let mut sick = server("3.9.4", "leader");
        for (key, number) in [
            ("zk_watch_count", 2e6),
            ("zk_open_file_descriptor_count", 900.0),
            ("zk_max_file_descriptor_count", 1000.0),
            ("zk_fsync_threshold_exceed_count", 3.0),
        ] {
            sick.numbers.insert(key.to_owned(), number);
        }
        assert_eq!(of_server(&sick, None).len(), 3);
    }
}
