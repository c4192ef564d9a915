//! A transaction that is executed exactly once, or certainly not, as long as its session lives.

use std::sync::Arc;

use super::receipt::{self, Receipt, Word};
use super::retry_budget::RetryBudget;
use crate::client::{Client, ClientInner, Link, Op, OpResult, packet};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::retry;
use crate::runtime::{Pending, Timer};
use crate::znode::Acl;

/// A transaction in flight. Wherever it is dropped, its receipt is put back or deleted in the background.
struct Try {
    client: Arc<ClientInner>,
    link: Arc<Link>,
    /// `None` where there can be none, or no room for it.
    receipt: Option<Receipt>,
    /// The reply that is to come, to what was sent last with the receipt.
    reply: Option<Pending<Vec<OpResult>>>,
    /// It was sent, and whether it was executed is not known.
    in_doubt: bool,
    /// The last transaction was of the receipt alone.
    is_alone: bool,
    /// That was sent before, and it may be what was executed.
    alone_in_doubt: bool,
    /// Nobody waits for it any more.
    is_abandoned: bool,
}

/// The znode that a transaction is meant for: others may delete it, and make one of the same name.
pub(super) struct Target<'a> {
    pub(super) path: &'a str,
    pub(super) czxid: i64,
}

/// Executes `ops`, all or none. After a lost reply it finds out how it ended (see `receipt.rs`).
/// `op` and `path` are for errors. Where there is a `target`, the transaction is not sent again once
/// another znode is in its place.
///
/// # Errors
/// - `CONNECTION_LOSS`, and only this code: the outcome is unknown. The session ended first, no server could be reached
///   in time, the servers forbid receipts, or a request had no room for one.
/// - `BAD_ARGUMENTS`: nothing was done; among others, because the servers close the connection on it.
/// - `OPERATION_TIMEOUT`: no connection in time; nothing was done.
/// - `BAD_VERSION`: nothing was done; among others, because of the `target`.
/// - Any other: nothing was done, and why.
pub(super) async fn execute_once(
    client: &Client,
    op: &'static str,
    path: &str,
    ops: &[Op],
    target: Option<Target<'_>>,
) -> Result<()> {
    let mut budget = RetryBudget::new(client, op, path);
    let mut present: Option<Try> = None;
    // Why it is not to be executed any more: all that is left is to find out whether it was, by a
    // transaction of the receipt alone.
    let mut given_up: Option<Error> = None;
    let mut losses = 0;
    loop {
        let in_doubt = present.as_ref().is_some_and(|present| present.in_doubt);
        let link = match budget.session().await {
            Ok(session) => session.link,
            Err(error) if in_doubt => return Err(unknown(op, path, ops, &error)),
            Err(error) => return Err(error),
        };
        let sent_before = present.is_some();
        let mut this = match present.take() {
            Some(this) if Arc::ptr_eq(&this.link, &link) => this,
            Some(_) if in_doubt => {
                let error = Error::new(op, path, Code::SESSION_EXPIRED);
                return Err(unknown(op, path, ops, &error));
            }
            _ => {
                let receipt = if has_room(ops) { receipt::take(&link) } else { None };
                let client = Arc::clone(client.inner());
                Try::new(client, link, receipt)
            }
        };
        if let Some(target) = target.as_ref().filter(|_| sent_before && given_up.is_none()) {
            match target.is_there(&this.link).await {
                Ok(true) => {}
                Ok(false) => {
                    let detail = "another znode has taken its place";
                    given_up = Some(Error::with_detail(op, path, Code::BAD_VERSION, detail));
                }
                // Asked again, once there is a connection.
                Err(_) => {
                    present = Some(this);
                    budget.pause().await;
                    continue;
                }
            }
        }
        let ops_now = if given_up.is_some() { &[] } else { ops };
        match this.go(ops_now).await {
            Ok(Done::Before) => return Ok(()),
            Ok(Done::Now) => return given_up.map_or(Ok(()), Err),
            Err(Setback::Final(error)) => return Err(named(op, path, &error)),
            Err(Setback::Unknown(error)) => return Err(unknown(op, path, ops, &error)),
            Err(Setback::Again) => present = Some(this),
            Err(Setback::Anew) => {}
            Err(Setback::Doubt) => {
                losses += 1;
                if losses == LOSSES_OF_LARGE && is_large(ops) {
                    given_up.get_or_insert_with(|| too_large(op, path, ops));
                }
                present = Some(this);
                budget.pause().await;
            }
            Err(Setback::Pause) => {
                present = Some(this);
                budget.pause().await;
            }
        }
    }
}

impl Target<'_> {
    /// Whether it is this znode that a request would find now.
    async fn is_there(&self, link: &Link) -> Result<bool> {
        let (sync, look) = (link.sync(self.path), link.exists(self.path));
        sync.await?;
        Ok(look.await?.is_some_and(|stat| stat.czxid == self.czxid))
    }
}

/// How often the connection is lost to a large transaction before it is taken to be the reason.
const LOSSES_OF_LARGE: u32 = 3;
/// No server is known to refuse so little.
const LARGE: usize = 64 * 1024;

fn is_large(ops: &[Op]) -> bool {
    packet::together(ops) >= LARGE
}

/// The C client puts the handle's chroot before each path, and tells nobody how long it is. Longer
/// ones than this are not reckoned with.
const CHROOT: usize = 256;

/// Whether there is room for a receipt. There is none if it would make the request too large for servers with default
/// settings. A request that is larger anyway relies on other settings, so it also has room for a receipt.
fn has_room(ops: &[Op]) -> bool {
    let without = match ops {
        [op] => packet::alone(op),
        ops => packet::together(ops),
    };
    let with = packet::together(ops) + receipt::len() + (ops.len() + 1) * CHROOT;
    with <= packet::USUAL_MOST || without > packet::USUAL_MOST
}

fn too_large(op: &'static str, path: &str, ops: &[Op]) -> Error {
    let size = packet::together(ops) + receipt::len();
    let detail = format!(
        "the connection is lost again and again on a request of {size} bytes: is it more than the servers' jute.maxbuffer?"
    );
    Error::with_detail(op, path, Code::BAD_ARGUMENTS, detail)
}

/// When a transaction was executed.
enum Done {
    /// By this request.
    Now,
    /// By an earlier one. Its reply was lost.
    Before,
}

/// Why a transaction is not done yet, or never will be.
enum Setback {
    /// Nothing was done.
    Final(Error),
    /// It can't be found out any more what was done.
    Unknown(Error),
    /// To be sent again as it is.
    Again,
    /// To be sent again with another receipt.
    Anew,
    /// To be sent again after a pause; nothing was done yet that was not in doubt before.
    Pause,
    /// To be sent again after a pause; it may have been executed.
    Doubt,
}

impl Try {
    fn new(client: Arc<ClientInner>, link: Arc<Link>, receipt: Option<Receipt>) -> Try {
        let (in_doubt, is_alone, alone_in_doubt, is_abandoned) = (false, false, false, false);
        Try { client, link, receipt, reply: None, in_doubt, is_alone, alone_in_doubt, is_abandoned }
    }

    async fn go(&mut self, ops: &[Op]) -> std::result::Result<Done, Setback> {
        let Some(receipt) = &mut self.receipt else { return self.go_without(ops).await };
        let reply = self.reply.get_or_insert_with(|| {
            self.is_alone = ops.is_empty();
            let receipt = receipt.op(self.is_alone);
            let with_receipt: Vec<Op> = [receipt].into_iter().chain(ops.iter().cloned()).collect();
            self.link.multi(&with_receipt)
        });
        // Awaited in place: should this be dropped, the reply to come says what became of the receipt.
        let replied = reply.await;
        self.reply = None;
        let Err(error) = replied else {
            self.done(self.is_alone);
            return Ok(Done::Now);
        };
        match receipt.word(&error) {
            Some(Word::Used) if self.in_doubt => {
                self.done(false);
                if self.alone_in_doubt { Err(Setback::Unknown(error)) } else { Ok(Done::Before) }
            }
            Some(Word::NoDirectory) => Err(self.make_directory().await),
            Some(Word::Used | Word::Deleted) if !self.in_doubt => {
                receipt.is_not_ours();
                self.discard();
                Err(Setback::Anew)
            }
            Some(Word::Forbidden) if !self.in_doubt => Err(self.do_without()),
            // Somebody has meddled with the receipt while it was needed.
            Some(_) => {
                self.receipt = None;
                Err(Setback::Unknown(error))
            }
            // The receipt was in order, so no earlier copy was executed either.
            None if is_certain(&error) => {
                if !self.in_doubt {
                    self.put_back();
                }
                Err(Setback::Final(error))
            }
            None if is_unsent(&error) => Err(Setback::Pause),
            None => {
                receipt.doubt();
                (self.in_doubt, self.alone_in_doubt) = (true, self.alone_in_doubt || self.is_alone);
                Err(Setback::Doubt)
            }
        }
    }

    async fn go_without(&mut self, ops: &[Op]) -> std::result::Result<Done, Setback> {
        let result = match ops {
            // Alone it is shorter, and the largest elements fit into nothing else.
            [Op::Create { path, data, acl, mode }] => {
                self.link.create(path, data, acl, *mode).await.map(drop)
            }
            ops => self.link.multi(ops).await.map(drop),
        };
        match result {
            Ok(()) => Ok(Done::Now),
            Err(error) if is_certain(&error) => {
                if error.code() == Code::NO_AUTH {
                    // What it takes to get further may bring receipts too.
                    receipt::forget_refusals(&self.link);
                }
                Err(Setback::Final(error))
            }
            Err(error) if is_unsent(&error) => Err(Setback::Pause),
            Err(error) => Err(Setback::Unknown(error)),
        }
    }

    async fn make_directory(&mut self) -> Setback {
        let Some(receipt) = &self.receipt else { return Setback::Again };
        match self.link.create_parents(receipt.path(), &Acl::open()).await {
            Ok(_) => Setback::Again,
            Err(error) if error.is_transient() => Setback::Pause,
            // The handle's chroot is missing: then so is everything that a transaction could be about.
            Err(error) if error.is_no_node() && !self.in_doubt => Setback::Final(error),
            Err(error) if self.in_doubt => Setback::Unknown(error),
            Err(_) => self.do_without(),
        }
    }

    /// The servers allow no receipt now.
    fn do_without(&mut self) -> Setback {
        log!(DEBUG, "no receipts: {} can't be written", receipt::DIRECTORY);
        receipt::refused(&self.link);
        self.receipt = None;
        Setback::Again
    }

    fn done(&mut self, was_alone: bool) {
        if let Some(receipt) = &mut self.receipt {
            receipt.stamp(was_alone);
        }
        self.put_back();
    }

    fn put_back(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            self.receipt = receipt.put_back(&self.link);
            self.discard();
        }
    }

    /// Deletes the receipt, which is of no use any more.
    fn discard(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            let (client, link) = (Arc::clone(&self.client), Arc::clone(&self.link));
            self.client.spawn_duty(delete(client, link, receipt));
        }
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        if !self.in_doubt && self.reply.is_none() {
            if self.receipt.as_ref().is_some_and(Receipt::exists) {
                self.put_back();
            }
        } else if self.receipt.is_some() && !self.is_abandoned {
            let (client, link) = (Arc::clone(&self.client), Arc::clone(&self.link));
            let mut this = Try::new(client, link, self.receipt.take());
            (this.reply, this.in_doubt) = (self.reply.take(), self.in_doubt);
            (this.is_alone, this.is_abandoned) = (self.is_alone, true);
            self.client.spawn_duty(settle(this));
        }
    }
}

/// Puts the receipt of an abandoned transaction back once no copy of that can be executed any more: after its reply, or
/// after a transaction of the receipt alone.
async fn settle(mut this: Try) {
    let mut is_alone = this.reply.is_none();
    loop {
        match this.go(&[]).await {
            Err(Setback::Doubt | Setback::Pause | Setback::Again) if this.in_doubt => {}
            // It was not executed so far, but an earlier copy may be in flight.
            Err(Setback::Final(_)) if this.in_doubt && !is_alone => {}
            _ => return,
        }
        is_alone = true;
        if !connected_again(&this.client, &this.link).await {
            return;
        }
    }
}

/// Deletes a receipt that is of no use any more.
async fn delete(client: Arc<ClientInner>, link: Arc<Link>, receipt: Receipt) {
    while let Err(error) = link.delete(receipt.path(), None).await {
        if !error.is_transient() {
            if !error.is_no_node() {
                receipt.keep(&link);
            }
            return;
        }
        if !connected_again(&client, &link).await {
            return;
        }
    }
}

/// Waits after trouble until the session of that link is connected. `false`: it is over, and its receipts with it.
async fn connected_again(client: &ClientInner, link: &Arc<Link>) -> bool {
    Timer::after(retry::SOON).await;
    client.trusted_session().await.is_ok_and(|session| Arc::ptr_eq(&session.link, link))
}

/// Whether the request was refused, by the servers or before it was sent.
fn is_certain(error: &Error) -> bool {
    let code = error.code();
    // The servers' own codes, but for those that another server may answer otherwise.
    let by_server = code < Code::API_ERROR && !error.is_transient() && code != REQUEST_TIMEOUT;
    by_server
        || matches!(
            code,
            Code::BAD_ARGUMENTS | Code::INVALID_ACL | Code::UNIMPLEMENTED | Code::NOT_READ_ONLY
        )
}

/// A server answers this if it has stopped work on a request.
const REQUEST_TIMEOUT: Code = Code::from_raw(-122);

/// Whether the request was certainly not executed, but may be another time.
fn is_unsent(error: &Error) -> bool {
    let code = error.code();
    code.is_retryable() || code.is_session_over() && !code.is_outcome_unknown()
}

/// An error of a request, as one of the operation that it was a part of.
pub(super) fn named(op: &'static str, path: &str, error: &Error) -> Error {
    Error::with_detail(op, path, error.code(), error.to_string())
}

fn unknown(op: &'static str, path: &str, ops: &[Op], why: &Error) -> Error {
    let at = ops.last().map_or("", Op::path).escape_debug();
    let detail = format!("whether it was done is unknown ({at}): {}", why.code());
    Error::with_detail(op, path, Code::CONNECTION_LOSS, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_certainly_not_executed_is_sent_again() {
        let is_unsent = |code| is_unsent(&Error::new("multi", "/a", code));
        assert!(
            [Code::THROTTLED_OP, Code::SESSION_EXPIRED, Code::NOT_CONNECTED].map(is_unsent)
                == [true; 3]
        );
        assert!([Code::CLOSING, Code::CONNECTION_LOSS, Code::NO_NODE].map(is_unsent) == [false; 3]);
    }
}
