//! The proxy ends the sessions of clients that do not tell their passwords.

use std::time::Instant;

use crate::common::{Bench, TIMEOUT};
use zklock_testing::wire::{CreateMode, RawClient};
use zklock_testing::{Action, Error, Op, Rule};

#[test]
fn the_sessions_opened_through_a_proxy_end_and_no_others() {
    let bench = Bench::start();
    let (mut one, closed, mut other) =
        (bench.through_proxy(), bench.through_proxy(), bench.direct());
    one.create_with("/mine", b"", CreateMode::Ephemeral).unwrap();
    closed.close_session().unwrap();
    assert_eq!(bench.proxy.expire_sessions().unwrap(), [one.session_id()]);
    assert!(other.exists("/mine").unwrap().is_none());
    one.wait_closed(TIMEOUT).unwrap();
    let (id, password) = (one.session_id(), one.password());
    let back = RawClient::attach(bench.proxy.addr(), crate::common::SESSION, id, &password);
    assert!(matches!(back, Err(Error::SessionExpired { .. })), "{back:?}");
    assert!(bench.proxy.expire_sessions().unwrap().is_empty());
}

#[test]
fn one_session_among_several_ends() {
    let bench = Bench::start();
    let (mut one, mut other, elsewhere) =
        (bench.through_proxy(), bench.through_proxy(), bench.direct());
    bench.proxy.expire_session(one.session_id()).unwrap();
    one.wait_closed(TIMEOUT).unwrap();
    assert!(other.exists("/").unwrap().is_some());
    let unknown = bench.proxy.expire_session(elsewhere.session_id());
    assert!(matches!(unknown, Err(Error::SessionExpired { .. })), "{unknown:?}");
    assert_eq!(bench.server.sessions().unwrap().len(), 2);
}

#[test]
fn a_client_that_always_comes_back_at_once_is_told() {
    let bench = Bench::start();
    for _ in 0..10 {
        let client = bench.through_proxy();
        let (id, password, addr) = (client.session_id(), client.password(), bench.proxy.addr());
        let stubborn = std::thread::spawn(move || {
            let mut client = client;
            let deadline = Instant::now() + TIMEOUT;
            while Instant::now() < deadline {
                // It sends no pings: only the end of its connection can tell it.
                client.wait_closed(TIMEOUT).unwrap();
                match RawClient::attach(addr, crate::common::SESSION, id, &password) {
                    Ok(again) => client = again,
                    Err(Error::SessionExpired { .. }) => return,
                    Err(error) => assert!(error.is_connection_loss(), "{error}"),
                }
            }
            panic!("it comes back again and again");
        });
        assert_eq!(bench.proxy.expire_sessions().unwrap(), [id]);
        stubborn.join().unwrap();
    }
}

#[test]
fn a_session_ends_while_its_client_is_cut_off_or_has_gone_without_a_word() {
    let bench = Bench::start();
    let cut_off = bench.through_proxy().session_id();
    let _silent = bench.through_proxy();
    bench.proxy.cut();
    let ended = bench.proxy.expire_sessions().unwrap();
    assert!(ended.len() == 2 && ended.contains(&cut_off), "{ended:?}");
    assert!(bench.server.sessions().unwrap().is_empty());
}

#[test]
fn a_session_whose_client_never_learned_of_it_ends_as_well() {
    let bench = Bench::start();
    bench.proxy.on(Rule::reply(Op::Connect).once(), Action::Drop);
    assert!(RawClient::connect(bench.proxy.addr(), crate::common::SESSION).is_err());
    assert_eq!(bench.proxy.expire_sessions().unwrap().len(), 1);
}
