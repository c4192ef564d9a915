//! Tests a service under a lost reply: `cargo run -p zklock-testing --example lost_reply`.
//!
//! The service (`account.rs`) deposits money into an account. Its writes are conditional and its retries patient, and
//! with a network that works it passes every test. Here a server carries a deposit out, and its reply is lost.
//!
//! It prints what it found, and fails when that is not what it is here to show. Its tests, at the end, are such as the
//! service itself would have.

mod account;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use account::Account;
use zklock::Client;
use zklock_testing::{Action, Op, Proxy, Rule, Server};

/// How long what is certain to come may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What one deposit adds to an empty account.
const AMOUNT: i64 = 10;

/// What the network does to the first write of a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loses {
    Nothing,
    /// The servers never hear of it.
    Request,
    /// The servers have done it, and the service never hears of that.
    Reply,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Naive,
    WithReceipt,
}

/// Makes one deposit into a new account, and returns the balance after it.
fn balance_after(
    server: &Server,
    service: Service,
    loses: Loses,
) -> Result<i64, Box<dyn Error + Send + Sync>> {
    let proxy = Proxy::start(server.addr())?;
    let zk = Client::connect(&proxy.hosts()).wait()?;
    let account = Account::open(&zk, &format!("/{service:?}-{loses:?}"))?;
    // The naive service writes by a setData, the other one by a transaction.
    let write = [Op::SetData, Op::Multi];
    let lost = match loses {
        Loses::Nothing => None,
        Loses::Request => Some(proxy.on(Rule::request(write).once(), Action::Drop)),
        Loses::Reply => Some(proxy.on(Rule::reply(write).once(), Action::Drop)),
    };
    match service {
        Service::Naive => account.deposit_naively(AMOUNT)?,
        Service::WithReceipt => account.deposit("payment-4711", AMOUNT)?,
    }
    if let Some(lost) = lost {
        // A fault that never came has tested nothing.
        lost.wait_hits(1, TIMEOUT)?;
    }
    Ok(account.balance()?.0)
}

/// The balances of both services under each fault.
struct Found(Vec<(Loses, i64, i64)>);

fn find() -> Result<Found, Box<dyn Error + Send + Sync>> {
    let server = Server::start()?;
    let mut found = Vec::new();
    for loses in [Loses::Nothing, Loses::Request, Loses::Reply] {
        let naive = balance_after(&server, Service::Naive, loses)?;
        found.push((loses, naive, balance_after(&server, Service::WithReceipt, loses)?));
    }
    Ok(Found(found))
}

impl Found {
    /// What this example is here to show.
    fn is_as_promised(&self) -> bool {
        self.0.iter().all(|(loses, naive, with_receipt)| {
            let twice = *loses == Loses::Reply;
            *naive == if twice { 2 * AMOUNT } else { AMOUNT } && *with_receipt == AMOUNT
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{AMOUNT} deposited once into an empty account:\n")?;
        writeln!(formatter, "the network loses    naive    with a receipt")?;
        for (loses, naive, with_receipt) in &self.0 {
            let loses = format!("{loses:?}").to_lowercase();
            writeln!(formatter, "{loses:<17}    {naive:>5}    {with_receipt:>14}")?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let found = find()?;
    println!("{found}");
    if !found.is_as_promised() {
        return Err(
            "only a lost reply makes the naive service deposit twice, and nothing the other".into(),
        );
    }
    println!(
        "The naive service took its own deposit for somebody else's. The receipt tells them apart."
    );
    Ok(())
}

#[test]
fn a_deposit_whose_reply_is_lost_is_made_once() {
    let server = Server::start().unwrap();
    let balance = balance_after(&server, Service::WithReceipt, Loses::Reply).unwrap();
    assert_eq!(balance, AMOUNT);
}

#[test]
fn what_the_example_prints_is_so() {
    let found = find().unwrap();
    assert!(found.is_as_promised(), "{found}");
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&found.to_string()), "README.md shows something else than\n{found}");
}
