//! Replicas of a service, as in a container each: the one that leads is the one that answers.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use test_support::{Bench, Running, shared};
use zklock_testing::{Port, eventually};

use super::program::start;
use super::scene::rounds;

/// Answers each caller on a port with its fencing token.
const SERVICE: &str = r#"
    my $door = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 8, ReuseAddr => 1) or die;
    while (my $caller = $door->accept) { print $caller $ENV{ZKLOCK_TOKEN} }"#;

struct Replica {
    port: Port,
    run: Running,
}

impl Replica {
    fn start(path: &str) -> Replica {
        let port = Port::reserve().unwrap();
        let run = Replica::run(path, &port);
        Replica { port, run }
    }

    fn run(path: &str, port: &Port) -> Running {
        let (hosts, port) = (shared().hosts(), port.number().to_string());
        let run = ["run", "--restart", "--hosts", &hosts, "--session-timeout", "4s", path, "--"];
        let service = ["perl", "-MIO::Socket::INET", "-e", SERVICE, &port];
        start(&[&run[..], &service[..]].concat())
    }

    /// The token of the replica, if it answers: asks as a readiness probe does.
    fn ready(&self) -> Option<i64> {
        let mut stream = TcpStream::connect(self.port.addr()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut token = String::new();
        stream.read_to_string(&mut token).ok()?;
        token.parse().ok()
    }
}

#[test]
fn one_replica_is_ready_at_a_time_however_often_the_leader_is_killed() {
    let path = Bench::shared().path;
    let mut replicas = [(); 2].map(|()| Replica::start(&path));
    let mut last = 0;
    for round in 0..=rounds() {
        let mut leader = None;
        eventually("a replica is ready", || {
            for (index, replica) in replicas.iter().enumerate() {
                let other = &replicas[1 - index];
                let Some(token) = replica.ready() else { continue };
                if let Some(others) = other.ready() {
                    let again = replica.ready();
                    assert_ne!(again, Some(token), "ready with {others} too, in round {round}");
                }
                // The last leader may answer until its command is killed.
                if token != last {
                    leader = Some((index, token));
                }
            }
            leader.is_some()
        });
        let (index, token) = leader.unwrap();
        assert!(token > last, "{token} after {last} in round {round}");
        last = token;
        let replica = &mut replicas[index];
        replica.run.signal(Signal::KILL);
        // As a container is started again.
        replica.run = Replica::run(&path, &replica.port);
    }
}
