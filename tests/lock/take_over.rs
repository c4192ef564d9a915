//! Sessions that a client takes up from another, which is gone.

use test_support::{TIMEOUT, acquire_in_background, eventually, options, session_id};
use zklock::{Client, Strategy};

use crate::bench::{Bench, each_strategy};

/// A client that takes up the session of another, as a program does that was started again.
fn restarted(bench: &Bench, before: &Client) -> Client {
    let session = before.session().unwrap();
    options().session(session).connect(&bench.server.hosts()).wait().unwrap()
}

each_strategy! {
    fn a_claim_of_the_client_before_is_in_nobodys_way(strategy) {
        let bench = Bench::shared();
        let before = bench.client();
        let guard = bench.lock(&before, strategy).acquire().wait().unwrap();
        // It crashes: nobody will ever release what it held.
        bench.proxy.cut();
        let after = restarted(&bench, &before);
        assert_eq!(session_id(&after), session_id(&before));
        let lock = bench.lock(&after, strategy);
        let others = lock.try_acquire().wait().unwrap().expect("nobody holds it");
        assert!(others.fencing_token() > guard.fencing_token());
        others.release().wait().unwrap();
        let again = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert_eq!(bench.claims(strategy).len(), 1);
        again.release().wait().unwrap();
        // What is left of the first must not reach the server any more.
        after.close().wait().unwrap();
        bench.proxy.heal();
        drop(guard);
    }

    fn claims_of_one_client_that_took_its_session_up_wait_for_each_other(strategy) {
        let bench = Bench::shared();
        let before = bench.client();
        bench.proxy.cut();
        let after = restarted(&bench, &before);
        let lock = bench.lock(&after, strategy);
        let guard = lock.acquire().within(TIMEOUT).wait().unwrap();
        assert!(lock.try_acquire().wait().unwrap().is_none());
        let waiting = acquire_in_background(&lock);
        if strategy != Strategy::Poll {
            let session = session_id(&after);
            eventually("it watches", || bench.watches_of(session) >= 1);
        }
        assert!(!waiting.is_finished());
        guard.release().wait().unwrap();
        waiting.join().unwrap().unwrap().release().wait().unwrap();
        after.close().wait().unwrap();
        bench.proxy.heal();
    }
}
