//! The program `server`, as a user runs it.
#![cfg(feature = "program")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use zklock::Client;

fn start(port: u16) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_server"))
        .args(["--port", &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut hosts = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut hosts).unwrap();
    (child, hosts.trim_end().to_owned())
}

#[test]
fn it_serves_at_its_port_until_it_is_interrupted() {
    // One that nobody listens on, and that the kernel gives to nobody soon.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (mut child, hosts) = start(port);
    assert_eq!(hosts, format!("127.0.0.1:{port}"));
    let client = Client::connect(&hosts).wait().unwrap();
    client.lock("/locks/a").acquire().wait().unwrap().release().wait().unwrap();
    client.close().wait().unwrap();

    let (second, nothing) = start(port);
    assert_eq!(nothing, "");
    let output = second.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains(&format!("port {port}")), "{words}");

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(
        Client::options()
            .connect_timeout(std::time::Duration::from_secs(1))
            .connect(&hosts)
            .wait()
            .is_err()
    );
}
