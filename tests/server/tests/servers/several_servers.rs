//! One proxy before several servers.

use crate::common::{SESSION, TIMEOUT};
use zklock_testing::wire::RawClient;
use zklock_testing::{Action, Ops, Proxy, Rule, Server};

#[test]
fn connections_take_turns_at_the_servers_and_rules_count_over_all() {
    // Two that know nothing of each other, to tell which one a client is at.
    let servers = [Server::start().unwrap(), Server::start().unwrap()];
    let hosts = servers.each_ref().map(Server::hosts).join(",");
    let proxy = Proxy::start(hosts).unwrap();
    let through = || RawClient::connect(proxy.addr(), SESSION).unwrap();
    let lost = proxy.on(Rule::reply(Ops::creates()).path("/a").nth(2), Action::Drop);
    let mut first = through();
    first.create("/a", b"").unwrap();
    assert!(through().create("/a", b"").unwrap_err().is_connection_loss());
    lost.wait_hits(1, TIMEOUT).unwrap();
    assert!(
        RawClient::connect(servers[1].addr(), SESSION).unwrap().exists("/a").unwrap().is_some()
    );

    servers[0].kill();
    let mut third = through();
    third.create("/at-the-second", b"").unwrap();
    servers[1].kill();
    assert!(RawClient::connect(proxy.addr(), SESSION).is_err());
}
