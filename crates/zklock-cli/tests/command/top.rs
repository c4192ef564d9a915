//! `top`, on a terminal that can be looked at.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use test_support::{Bench, acquire_in_background};
use zklock::Strategy;
use zklock_testing::eventually;

use super::program::{finish, is_running};
use super::scene::only_child;

/// tmux, with a server of its own.
struct Screen {
    name: String,
}

impl Screen {
    fn of(args: &str) -> Screen {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let screen = Screen { name: format!("zklock-{}-{number}", std::process::id()) };
        let line = format!(
            "HOME=/nonexistent '{}' top {args}; echo status $?; cat",
            env!("CARGO_BIN_EXE_zklock")
        );
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", &line]);
        screen
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let out = command.args(["-L", &self.name]).args(args).env("LC_ALL", "C.UTF-8").output();
        let out = out.expect("tmux");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("text")
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn expect(&self, what: &str) {
        eventually(what, || self.text().contains(what));
    }

    /// The process that draws.
    fn top(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        only_child(shell.trim().parse().expect("its id"))
    }

    /// The locks, in the order they are shown in.
    fn locks(&self) -> Vec<String> {
        let text = self.text();
        let rows = text.lines().skip(2).take_while(|line| line.starts_with('/'));
        rows.map(|row| row.split(' ').next().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.name, "kill-server"]).output();
    }
}

#[test]
fn locks_are_shown_in_the_order_that_was_asked_for_with_the_queue_of_one() {
    let bench = Bench::untouched();
    let client = bench.direct();
    let hold = |path: &str, label: &str| client.lock(path).label(label).acquire().wait().unwrap();
    let first = hold("/locks/b", "the oldest \u{1b}[2J");
    let busy = hold("/locks/c", "has one behind it");
    let single = client.lock("/locks/a").strategy(Strategy::Watch).label("one znode");
    let single = single.acquire().wait().unwrap();
    let other = bench.direct();
    let waiting = acquire_in_background(&other.lock("/locks/c").label("the second"));
    // So the lock with a queue is the first one that `top` shows, and the one selected.
    let claims = || bench.ask(|raw| raw.children("/locks/c")).unwrap().len();
    eventually("the second waits", || claims() == 2);

    let screen = Screen::of(&format!("--hosts {} /locks", bench.server.hosts()));
    screen.expect("3 held  1 waiting");
    screen.expect("the second");
    assert_eq!(screen.locks(), ["/locks/c", "/locks/a", "/locks/b"]);
    // A terminal would have obeyed the label.
    screen.expect("the oldest  [2J (");
    screen.press("p");
    eventually("they are in the order of their paths", || {
        screen.locks() == ["/locks/a", "/locks/b", "/locks/c"]
    });
    screen.press("a");
    eventually("the one held longest is first", || {
        screen.locks() == ["/locks/b", "/locks/c", "/locks/a"]
    });
    // What was selected stays so.
    screen.expect("waits  ");
    screen.press("Enter");
    eventually("the queue is hidden", || !screen.text().contains("the second"));
    screen.press("Enter");
    busy.release().wait().unwrap();
    let second = waiting.join().unwrap().unwrap();
    screen.expect("3 held  0 waiting");
    screen.expect("the second (");
    drop((first, second, single));
    screen.expect("nobody holds a lock there");
    screen.press("q");
    screen.expect("status 0");
}

#[test]
fn it_shows_a_lost_connection_and_an_expired_session_and_goes_on() {
    let bench = Bench::own();
    let client = bench.direct();
    let held = bench.lock(&client).label("before").acquire().wait().unwrap();
    let screen = Screen::of(&format!("--hosts {}", bench.proxy.hosts()));
    screen.expect("before (");
    screen.expect("connected");
    bench.proxy.cut();
    eventually("it shows that, and what it last saw", || {
        let text = screen.text();
        (text.contains("connection lost") || text.contains("session expired"))
            && text.contains("before (")
    });
    held.release().wait().unwrap();
    let held = bench.lock(&client).label("meanwhile").acquire().wait().unwrap();
    bench.proxy.heal();
    screen.expect("meanwhile (");
    bench.proxy.expire_sessions().unwrap();
    held.release().wait().unwrap();
    let held = bench.lock(&client).label("after").acquire().wait().unwrap();
    screen.expect("after (");
    screen.expect("  connected");
    screen.press("C-c");
    screen.expect("status 0");
    drop(held);
}

#[test]
fn what_is_too_wide_is_cut_with_an_ellipsis() {
    let bench = Bench::shared();
    let client = bench.direct();
    let label = "a very long label ".repeat(8);
    let held = bench.lock(&client).label(&label).acquire().wait().unwrap();
    let screen = Screen::of(&format!("--hosts {} {}", bench.server.hosts(), bench.path));
    screen.expect("1 held");
    eventually("both tables are cut", || screen.text().matches('…').count() >= 2);
    drop(screen);
    let line = format!("stty cols 60; '{}' ls", env!("CARGO_BIN_EXE_zklock"));
    let line = format!("{line} --hosts {} {}", bench.server.hosts(), bench.path);
    let out = Command::new("script").args(["-qec", &line, "/dev/null"]).output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    assert!(out.contains('…') && out.lines().all(|line| line.chars().count() <= 60), "{out}");
    drop(held);
}

#[test]
fn it_ends_on_a_signal_and_gives_the_terminal_back() {
    let bench = Bench::shared();
    let screen = Screen::of(&format!("--hosts {} {}", bench.server.hosts(), bench.path));
    screen.expect("connected");
    kill_process(screen.top(), Signal::TERM).unwrap();
    screen.expect("status 0");
}

#[test]
fn it_ends_when_its_terminal_is_closed() {
    let bench = Bench::shared();
    let screen = Screen::of(&format!("--hosts {} {}", bench.server.hosts(), bench.path));
    screen.expect("connected");
    let top = screen.top();
    drop(screen);
    eventually("it has ended", || !is_running(top));
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let bench = Bench::shared();
    let (code, _, err) = finish(&["top", "--hosts", &bench.server.hosts(), "/locks"]);
    assert!(code == Some(125) && err.contains("zklock ls --json /locks"), "{err}");
}
