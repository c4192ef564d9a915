//! What the error of a lock says: whether something is left, whether the outcome is known, who was ahead.

use std::error::Error as _;
use std::time::Duration;

use crate::place::late;
use zklock::zookeeper::Acl;
use zklock::{Code, LockError};
use zklock_testing::wire::Op;
use zklock_testing::{Action, Rule};

use test_support::{TIMEOUT, eventually, options, session_id};

use crate::bench::{Bench, each_strategy};

const SOON: Duration = Duration::from_millis(200);

each_strategy! {
    fn a_clean_timeout_says_who_was_ahead_and_is_no_unknown_outcome(strategy) {
        let bench = Bench::shared();
        let (holder, client) = (bench.direct(), bench.direct());
        let guard = bench.lock(&holder, strategy).label("night run").acquire().wait().unwrap();
        let lock = bench.lock(&client, strategy);
        let (error, ahead) = late(|limit| lock.acquire().within(limit).wait().unwrap_err());
        assert!(error.is_timeout() && !error.is_outcome_unknown() && !error.is_lost());
        assert_eq!((error.path(), error.code()), (bench.path.as_str(), Code::OPERATION_TIMEOUT));
        assert_eq!((ahead.path.as_str(), ahead.token), (&*guard.claim_path(), guard.fencing_token()));
        assert_eq!((ahead.session, ahead.label.as_str()), (session_id(&holder), "night run"));
        let line = error.to_string();
        assert!(line.starts_with(&format!("acquire {}: not acquired in time: behind ", bench.path)));
        assert!(line.contains("night run"), "{line}");
        eventually("only the holder's claim is left", || bench.claims(strategy).len() == 1);
        guard.release().wait().unwrap();
        bench.expect_free(strategy);
    }

    fn silent_servers_are_a_clean_timeout_and_nobody_ahead(strategy) {
        let bench = Bench::shared();
        let client = options().operation_timeout(SOON).connect(&bench.proxy.hosts()).wait().unwrap();
        bench.proxy.refuse();
        let lock = bench.lock(&client, strategy);
        for error in [
            lock.try_acquire().wait().unwrap_err(),
            lock.acquire().within(SOON).wait().unwrap_err(),
        ] {
            assert!(matches!(error, LockError::TimedOut { ahead: None, .. }), "{error:?}");
            assert!(error.is_timeout() && !error.is_outcome_unknown(), "{error}");
        }
        // A look that nobody answers has changed nothing.
        for error in [
            lock.holder().wait().unwrap_err(),
            lock.is_locked().wait().unwrap_err(),
            lock.contenders().within(Duration::ZERO).wait().unwrap_err(),
        ] {
            let LockError::Store { source, path } = &error else { panic!("{error:?}") };
            assert_eq!((source.code(), path), (Code::OPERATION_TIMEOUT, &bench.path));
            assert!(error.is_timeout() && !error.is_outcome_unknown(), "{error}");
            assert_eq!(error.source().unwrap().to_string(), source.to_string());
        }
    }

    fn a_release_that_is_not_confirmed_in_time_is_an_unknown_outcome_and_goes_on(strategy) {
        let bench = Bench::shared();
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let path = guard.claim_path().to_string();
        let deletion = bench.proxy.hold(Rule::request(Op::Delete).path(&path).once());
        let error = guard.release().within(SOON).wait().unwrap_err();
        assert!(matches!(error, LockError::OutcomeUnknown { source: None, .. }), "{error:?}");
        assert!(error.is_outcome_unknown() && !error.is_timeout() && !error.is_lost());
        assert_eq!((error.path(), error.code()), (&*bench.path, Code::OUTCOME_UNKNOWN));
        assert!(error.to_string().contains("goes on in the background"), "{error}");
        assert_eq!(bench.claims(strategy).len(), 1);
        deletion.wait_reached(TIMEOUT).unwrap();
        deletion.release();
        bench.expect_free(strategy);
    }

    fn a_guarded_write_whose_answer_is_lost_is_an_unknown_outcome(strategy) {
        let bench = Bench::shared();
        let client = bench.client();
        let guard = bench.lock(&client, strategy).acquire().wait().unwrap();
        let store = format!("{}-store", bench.path);
        let create = zklock::zookeeper::Op::create(&store, b"written", zklock::zookeeper::CreateMode::Persistent);
        let lost = bench.proxy.on(Rule::reply(Op::Multi).once(), Action::Drop);
        let error = guard.multi(&[create]).wait().unwrap_err();
        lost.wait_hits(1, TIMEOUT).unwrap();
        let LockError::OutcomeUnknown { source: Some(source), .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(error.code(), Code::OUTCOME_UNKNOWN);
        assert!(error.is_outcome_unknown() && source.is_outcome_unknown());
        assert!(!error.is_timeout() && !error.is_lost());
        assert!(client.exists(&store).wait().unwrap().is_some(), "it was written");
        assert!(error.source().is_some());
        guard.release().wait().unwrap();
    }

    fn an_acl_that_nobody_can_use_is_refused(strategy) {
        let bench = Bench::shared();
        let client = bench.direct();
        let error = bench.lock(&client, strategy).acl(Vec::<Acl>::new()).acquire().wait().unwrap_err();
        assert!(matches!(error, LockError::Unusable { .. }), "{error:?}");
        assert_eq!((error.path(), error.code()), (bench.path.as_str(), Code::INVALID_ACL));
        assert!(error.to_string().contains("acl"), "{error}");
    }
}

#[test]
fn a_hostile_path_forges_no_line_and_buries_none() {
    let bench = Bench::shared();
    let client = bench.direct();
    for path in ["/a\nacquire /b: ok".to_owned(), "/é".repeat(1_000_000), "a\u{202e}".to_owned()] {
        let error = client.lock(&path).acquire().within(Duration::ZERO).wait().unwrap_err();
        let line = error.to_string();
        assert!(line.len() < 2_000 && !line.contains(char::is_control), "{line}");
        assert!(error.path().chars().count() < 300);
    }
}
