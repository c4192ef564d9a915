//! The service: an account whose balance is the data of a znode. Nothing in here knows of tests.

use std::thread;
use std::time::Duration;

use zklock::zookeeper::{CreateMode, Op};
use zklock::{Client, Code, Error, Result};

/// How often a deposit is tried, and how long it pauses before it is tried again.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// An account at this znode, with the receipts of its payments below it.
pub struct Account<'a> {
    zk: &'a Client,
    path: String,
}

impl<'a> Account<'a> {
    /// Opens an empty account.
    pub fn open(zk: &'a Client, path: &str) -> Result<Account<'a>> {
        zk.create(path, b"0", CreateMode::Persistent).wait()?;
        Ok(Account { zk, path: path.to_owned() })
    }

    /// What is in the account, and the version of that.
    pub fn balance(&self) -> Result<(i64, i32)> {
        let account = self.zk.get(&self.path).wait()?;
        let text = String::from_utf8_lossy(&account.data);
        Ok((text.parse().expect("a balance is a number"), account.stat.version))
    }

    /// Adds to the balance, and looks safe: it writes only over the version that it has read, so of two depositors one
    /// starts over. But the one whose reply was lost starts over as well, and finds its own deposit there.
    pub fn deposit_naively(&self, amount: i64) -> Result<()> {
        persist(|| {
            let (balance, version) = self.balance()?;
            let data = (balance + amount).to_string();
            self.zk.set(&self.path, data.as_bytes(), Some(version)).wait().map(drop)
        })
    }

    /// Adds to the balance once, however often it is called for one payment: the same transaction leaves a receipt, and
    /// where there is a receipt the servers refuse the deposit.
    pub fn deposit(&self, payment: &str, amount: i64) -> Result<()> {
        let receipt = format!("{}/{payment}", self.path);
        persist(|| {
            let (balance, version) = self.balance()?;
            let data = (balance + amount).to_string().into_bytes();
            let transaction = [
                Op::create(&receipt, amount.to_string(), CreateMode::Persistent),
                Op::Set { path: self.path.clone(), data, version: Some(version) },
            ];
            match self.zk.multi(&transaction).wait() {
                // An earlier attempt was done after all.
                Err(error) if error.is_node_exists() => Ok(()),
                outcome => outcome.map(drop),
            }
        })
    }
}

/// Tries again when somebody else was faster, and when nobody knows whether it was done.
fn persist(attempt: impl Fn() -> Result<()>) -> Result<()> {
    let again = |error: &Error| error.is_outcome_unknown() || error.code() == Code::BAD_VERSION;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if again(&error) => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    attempt()
}
