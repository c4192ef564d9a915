//! Holders that are frozen or killed as a whole process.

use std::time::Duration;

use test_support::{Process, TIMEOUT, acquire_in_background, child_about, options, say};
use zklock::Strategy;

use crate::bench::{Bench, each_strategy};

/// What a child process does; nothing in any other.
#[test]
fn in_a_child_process_a_lock_is_held_and_looked_at() {
    let Some(about) = child_about() else { return };
    let words: Vec<&str> = about.split(' ').collect();
    // Long enough that it is there yet when somebody looks right after the kill.
    let options = options().session_timeout(Duration::from_secs(5));
    let client = options.connect(words[0]).wait().unwrap();
    let lock = client.lock(words[1]).strategy(words[2].parse().unwrap());
    let guard = lock.acquire().wait().unwrap();
    say(guard.fencing_token());
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
        say(format_args!("{:?} {:?}", guard.state(), guard.lost().get()));
    }
}

/// A process that holds a lock, and looks at it when told to; and its fencing token.
fn holder(bench: &Bench, strategy: Strategy) -> (Process, i64) {
    let about = format!("{} {} {strategy}", bench.server.hosts(), bench.path);
    let test = "processes::in_a_child_process_a_lock_is_held_and_looked_at";
    let mut holder = Process::start_test(test, &about);
    let token = holder.hear().unwrap().parse().unwrap();
    (holder, token)
}

each_strategy! {
    fn a_process_that_was_frozen_past_its_session_sees_the_loss_at_its_first_look(strategy) {
        let bench = Bench::shared();
        let (mut holder, token) = holder(&bench, strategy);
        let other = bench.direct();
        let waiting = acquire_in_background(&bench.lock(&other, strategy));
        holder.running.freeze();
        let guard = waiting.join().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        // It is the first thing that waits for it.
        holder.tell("look");
        holder.running.thaw();
        // That its znode is gone is what it reads first, and not why the lock is lost.
        holder.expect("Lost Some(Session)");
        drop(holder);
        assert_eq!(bench.claims(strategy)[0].czxid, guard.fencing_token());
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn a_holder_that_is_killed_is_followed_when_its_session_is_over_and_not_before(strategy) {
        let bench = Bench::shared();
        let (holder, token) = holder(&bench, strategy);
        let session = bench.claims(strategy)[0].session;
        let other = bench.direct();
        let lock = bench.lock(&other, strategy);
        // Kills it.
        drop(holder);
        // The server has noticed nothing but a closed connection.
        assert!(lock.try_acquire().wait().unwrap().is_none());
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert!(guard.fencing_token() > token);
        assert!(!bench.server.sessions().unwrap().contains(&session));
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }
}
