//! Several operations, all or none.

use test_support::{Bench, TIMEOUT, alone, options, session_id, shared, states_until};
use zklock::Code;
use zklock::zookeeper::{CreateMode, Op, OpResult, SessionState};
use zklock_testing::{Rule, wire};

#[test]
fn a_transaction_of_all_kinds_gives_a_result_for_each() {
    let (client, path) = alone();
    let at = |name: &str| format!("{path}/{name}");
    client.create(&at("old"), b"", CreateMode::Persistent).wait().unwrap();
    let ops = [
        Op::check(&path),
        Op::create(at("new"), "data", CreateMode::Persistent),
        Op::create(at("seq-"), "", CreateMode::EphemeralSequential),
        Op::set(at("new"), "more data"),
        Op::delete(at("old")),
        Op::Check { path: at("new"), version: Some(1) },
    ];
    let results = client.multi(&ops).wait().unwrap();
    let sequential = at("seq-0000000002");
    assert_eq!(results[0], OpResult::Checked);
    assert_eq!(results[1], OpResult::Created(at("new")));
    assert_eq!(results[2], OpResult::Created(sequential.clone()));
    let OpResult::Set(stat) = results[3] else { panic!("{:?}", results[3]) };
    assert_eq!(results[4..], [OpResult::Deleted, OpResult::Checked]);
    let znode = client.get(&at("new")).wait().unwrap();
    assert_eq!((znode.data, znode.stat), (b"more data".to_vec(), stat));
    let owner = client.exists(&sequential).wait().unwrap().unwrap().ephemeral_owner;
    assert_eq!(owner, session_id(&client));
}

#[test]
fn a_refused_transaction_names_the_culprit_and_does_nothing() {
    let (client, path) = alone();
    let fine = Op::create(format!("{path}/fine"), "", CreateMode::Persistent);
    let none = format!("{path}/none");
    let cases = [
        (Op::delete(&none), Code::NO_NODE),
        (Op::set(&none, "x"), Code::NO_NODE),
        (Op::check(&none), Code::NO_NODE),
        (Op::create(&path, "", CreateMode::Persistent), Code::NODE_EXISTS),
        (Op::Set { path: path.clone(), data: vec![], version: Some(9) }, Code::BAD_VERSION),
        (Op::Check { path: path.clone(), version: Some(9) }, Code::BAD_VERSION),
    ];
    for (culprit, code) in cases {
        for at in 0..3 {
            let mut ops = vec![fine.clone(), Op::check(&path)];
            ops.insert(at, culprit.clone());
            let error = client.multi(&ops).wait().unwrap_err();
            assert_eq!((error.code(), error.path()), (code, culprit.path()), "{culprit:?}");
            assert_eq!(error.failed_op_index(), Some(at));
            let place = format!("operation {} of 3", at + 1);
            assert!(error.to_string().contains(&place), "{error}");
        }
    }
    assert_eq!(client.children(&path).wait().unwrap().names, Vec::<String>::new());
}

#[test]
fn what_the_c_client_can_not_carry_in_a_transaction_is_refused_with_the_reason() {
    let (client, path) = alone();
    let session = session_id(&client);
    let node = format!("{path}/node");
    let hour = std::time::Duration::from_secs(3_600);
    for mode in [
        CreateMode::Container,
        CreateMode::PersistentWithTtl(hour),
        CreateMode::PersistentSequentialWithTtl(hour),
    ] {
        let ops = [Op::create(&node, "", mode), Op::check(&path)];
        let error = client.multi(&ops).wait().unwrap_err();
        assert_eq!(error.code(), Code::BAD_ARGUMENTS);
        assert!(error.to_string().contains("containers"), "{error}");
    }
    for bad in ["", "x", "/x/", "/a//b", "/..", "/nul\0", "/\u{1}"] {
        for op in [
            Op::create(bad, "", CreateMode::Persistent),
            Op::delete(bad),
            Op::set(bad, ""),
            Op::check(bad),
        ] {
            for at in 0..2 {
                let mut ops = vec![Op::check(&path)];
                ops.insert(at, op.clone());
                let error = client.multi(&ops).wait().unwrap_err();
                assert_eq!(error.code(), Code::BAD_ARGUMENTS, "{op:?}");
            }
        }
    }
    let acl = vec![];
    let op = Op::Create { path: node, data: vec![], acl, mode: CreateMode::Persistent };
    assert_eq!(client.multi(&[op]).wait().unwrap_err().code(), Code::INVALID_ACL);
    assert_eq!(session_id(&client), session);
    assert!(client.exists(&path).wait().is_ok());
}

#[test]
fn an_empty_transaction_does_nothing_and_a_huge_one_is_refused() {
    let (client, path) = alone();
    assert_eq!(client.multi(&[]).wait().unwrap(), []);
    let ops = vec![Op::set(&path, vec![0; 600_000]); 2];
    let error = client.multi(&ops).wait().unwrap_err();
    assert_eq!(error.code(), Code::BAD_ARGUMENTS);
    let many = vec![Op::check(&path); 2_000];
    assert_eq!(client.multi(&many).wait().unwrap().len(), 2_000);
}

#[test]
fn in_a_chroot_a_transaction_tells_paths_as_they_were_given() {
    let (_client, path) = alone();
    let hosts = format!("{}{path}", shared().hosts());
    let inside = options().connect(&hosts).wait().unwrap();
    let ops = [
        Op::create("/a", "", CreateMode::Persistent),
        Op::create("/s-", "", CreateMode::PersistentSequential),
    ];
    let results = inside.multi(&ops).wait().unwrap();
    let created = |path: &str| OpResult::Created(path.to_owned());
    assert_eq!(results, [created("/a"), created("/s-0000000001")]);
}

/// The C client frees memory that is not its own if the session ends while it takes a transaction. So it gets none
/// while it is connecting: this is how the end comes.
#[test]
fn a_transaction_is_only_sent_while_the_client_is_connected() {
    let bench = Bench::untouched();
    let client = options().connect(&bench.proxy.hosts()).wait().unwrap();
    let mut states = client.states();
    let handshake = bench.proxy.hold(Rule::reply(wire::Op::Connect));
    bench.proxy.reset_all();
    states_until(&mut states, SessionState::Suspended);
    handshake.wait_reached(TIMEOUT).unwrap();
    let read = client.get("/");
    let created = Op::create("/a", "", CreateMode::Persistent);
    let error = client.multi(&[created]).wait().unwrap_err();
    assert_eq!(error.code(), Code::NOT_CONNECTED);
    assert!(error.code().is_retryable() && !error.is_outcome_unknown());
    handshake.release();
    // What was sent while it was connecting is answered with the handshake, not by its failure.
    read.wait().unwrap();
    assert!(client.exists("/a").wait().unwrap().is_none());
}
