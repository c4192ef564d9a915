//! A server dies with its program, even if that is killed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use zklock_testing::Server;

/// Tells the program that runs the tests from the one that it runs to be killed.
const VICTIM: &str = "ZKLOCK_TESTING_VICTIM";

#[test]
fn a_killed_program_leaves_no_server_behind() {
    if std::env::var_os(VICTIM).is_some() {
        let server = Server::start().unwrap();
        println!("server={}={}", server.pid().unwrap(), server.directory().display());
        loop {
            std::thread::park();
        }
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_program_leaves_no_server_behind", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap());
    let (server, directory) = output
        .lines()
        .find_map(|line| {
            let line = line.unwrap();
            let (pid, directory) = line.split_once("server=")?.1.split_once('=')?;
            Some((pid.to_owned(), PathBuf::from(directory)))
        })
        .unwrap();
    let process = PathBuf::from(format!("/proc/{server}"));
    assert!(process.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(&process) {
        assert!(Instant::now() < deadline, "the server is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The next program to start a server would remove it, but not within the first minute.
    std::fs::remove_dir_all(directory).unwrap();
}

/// An orphan that nobody has reaped yet is dead all the same.
fn is_alive(process: &std::path::Path) -> bool {
    std::fs::read_to_string(process.join("stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}
