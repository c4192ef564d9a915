//! Holders that are frozen or killed as a whole process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use zklock::Strategy;

use crate::bench::{Bench, PATIENCE, acquire_in_background, each_strategy, options};

const HOSTS: &str = "ZKLOCK_TEST_HOLDER_HOSTS";
const PATH: &str = "ZKLOCK_TEST_HOLDER_PATH";
const STRATEGY: &str = "ZKLOCK_TEST_HOLDER_STRATEGY";
/// Everything that the child says starts so: the test harness talks on the same line.
const MARK: &str = "holder: ";

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_lock_is_held_and_looked_at() {
    let Ok(hosts) = std::env::var(HOSTS) else {
        return;
    };
    let strategy: Strategy = std::env::var(STRATEGY).unwrap().parse().unwrap();
    let client = options().session_timeout(Duration::from_secs(1)).connect(&hosts).wait().unwrap();
    let lock = client.lock(&std::env::var(PATH).unwrap()).strategy(strategy);
    let guard = lock.acquire().wait().unwrap();
    println!("\n{MARK}{}", guard.fencing_token());
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
        println!("\n{MARK}{:?} {:?}", guard.state(), guard.lost().get());
    }
}

/// A process that holds a lock, and looks at it when told to.
struct Holder {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Holder {
    fn start(bench: &Bench, strategy: Strategy) -> (Holder, i64) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::in_a_child_process_a_lock_is_held_and_looked_at"])
            .args(["--nocapture", "--test-threads=1"])
            .env(HOSTS, bench.server.hosts())
            .env(PATH, &bench.path)
            .env(STRATEGY, strategy.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut holder = Holder { child, stdin, stdout };
        let token = holder.hear().parse().unwrap();
        (holder, token)
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            if let Some(said) = line.trim_end().strip_prefix(MARK) {
                return said.to_owned();
            }
            line.clear();
        }
        panic!("the holder has ended");
    }

    fn tell_to_look(&mut self) {
        self.stdin.write_all(b"look\n").unwrap();
        self.stdin.flush().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

each_strategy! {
    fn a_process_that_was_frozen_past_its_session_sees_the_loss_at_its_first_look(strategy) {
        let bench = Bench::shared();
        let (mut holder, token) = Holder::start(&bench, strategy);
        let other = bench.direct();
        let waiting = acquire_in_background(&bench.lock(&other, strategy));
        holder.signal(Signal::STOP);
        let guard = waiting.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        // It is the first thing that waits for it.
        holder.tell_to_look();
        holder.signal(Signal::CONT);
        // That its znode is gone is what it reads first, and not why the lock is lost.
        assert_eq!(holder.hear(), "Lost Some(Session)");
        drop(holder);
        assert_eq!(bench.claims(strategy)[0].czxid, guard.fencing_token());
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_holder_that_is_killed_is_followed_when_its_session_is_over_and_not_before(strategy) {
        let bench = Bench::shared();
        let (holder, token) = Holder::start(&bench, strategy);
        let session = bench.claims(strategy)[0].session;
        let other = bench.direct();
        let lock = bench.lock(&other, strategy);
        holder.signal(Signal::KILL);
        drop(holder);
        // The server has noticed nothing but a closed connection.
        assert!(lock.try_acquire().wait().unwrap().is_none());
        let guard = lock.acquire_within(PATIENCE).wait().unwrap();
        assert!(guard.fencing_token() > token);
        assert!(!bench.server.sessions().unwrap().contains(&session));
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }
}
