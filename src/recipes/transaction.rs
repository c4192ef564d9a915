//! A transaction that is executed exactly once, or certainly not, as long as its session lives.

use std::sync::Arc;

use super::patience::{Patience, is_passing};
use super::receipt::{self, Receipt, Word};
use crate::client::{Client, Link, Op};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::znode::Acl;

/// A transaction on its way.
struct Try {
    link: Arc<Link>,
    /// `None` where there can be none.
    receipt: Option<Receipt>,
    /// It was sent, and whether it was executed is not known.
    in_doubt: bool,
}

/// Executes `ops`, all or none. After a lost reply it finds out how it ended (see `receipt.rs`).
/// `op` and `path` are for errors.
///
/// # Errors
/// - `CONNECTION_LOSS`, and this code alone: the outcome is unknown. The session ended before it
///   could be found out, no server was reached for long, or the servers forbid receipts.
/// - `OPERATION_TIMEOUT`: no connection in time; nothing was done.
/// - Any other: nothing was done, and why.
pub(super) async fn execute_once(
    client: &Client,
    op: &'static str,
    path: &str,
    ops: &[Op],
) -> Result<()> {
    let mut patience = Patience::new(client, op, path);
    let mut present: Option<Try> = None;
    loop {
        let in_doubt = present.as_ref().is_some_and(|present| present.in_doubt);
        let link = match patience.session().await {
            Ok(session) => session.link,
            Err(error) if in_doubt => return Err(unknown(op, path, ops, &error)),
            Err(error) => return Err(error),
        };
        let mut this = match present.take() {
            Some(this) if Arc::ptr_eq(&this.link, &link) => this,
            Some(_) if in_doubt => {
                let error = Error::new(op, path, Code::SESSION_EXPIRED);
                return Err(unknown(op, path, ops, &error));
            }
            _ => Try { receipt: receipt::take(&link), link, in_doubt: false },
        };
        match this.go(ops).await {
            Ok(()) => return Ok(()),
            Err(Setback::Final(error)) => return Err(named(op, path, &error)),
            Err(Setback::Unknown(error)) => return Err(unknown(op, path, ops, &error)),
            Err(Setback::Again) => present = Some(this),
            Err(Setback::Anew) => {}
            Err(Setback::Doubt) => {
                this.in_doubt = true;
                present = Some(this);
                patience.pause().await;
            }
            Err(Setback::Pause) => {
                present = Some(this);
                patience.pause().await;
            }
        }
    }
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
    async fn go(&mut self, ops: &[Op]) -> std::result::Result<(), Setback> {
        let Some(receipt) = &mut self.receipt else {
            return match self.link.multi(ops).await {
                Ok(_) => Ok(()),
                Err(error) if is_certain(&error) => Err(Setback::Final(error)),
                Err(error) if is_unsent(&error) => Err(Setback::Pause),
                Err(error) => Err(Setback::Unknown(error)),
            };
        };
        let with_receipt: Vec<Op> = [receipt.op()].into_iter().chain(ops.iter().cloned()).collect();
        let Err(error) = self.link.multi(&with_receipt).await.map(drop) else {
            self.done();
            return Ok(());
        };
        match receipt.word(&error) {
            Some(Word::Used) if self.in_doubt => {
                self.done();
                Ok(())
            }
            Some(Word::NoDirectory) => self.make_directory().await,
            Some(Word::Used | Word::Deleted) if !self.in_doubt => Err(Setback::Anew),
            Some(Word::Forbidden) if !self.in_doubt => {
                self.do_without();
                Err(Setback::Again)
            }
            // Somebody has meddled with the receipt while it was needed.
            Some(_) => Err(Setback::Unknown(error)),
            // The receipt was in order, so no earlier copy was executed either.
            None if is_certain(&error) => {
                if !self.in_doubt {
                    self.put_back();
                }
                Err(Setback::Final(error))
            }
            None if is_unsent(&error) => Err(Setback::Pause),
            None => Err(Setback::Doubt),
        }
    }

    async fn make_directory(&mut self) -> std::result::Result<(), Setback> {
        let Some(receipt) = &self.receipt else { return Err(Setback::Again) };
        match self.link.make_parents(receipt.path(), &Acl::open()).await {
            Ok(()) => Err(Setback::Again),
            Err(error) if is_passing(&error) => Err(Setback::Pause),
            Err(_) => {
                self.do_without();
                Err(Setback::Again)
            }
        }
    }

    /// The servers allow no receipts here.
    fn do_without(&mut self) {
        log!(DEBUG, "no receipts: {} can't be written", receipt::DIRECTORY);
        receipt::forbid(&self.link);
        self.receipt = None;
    }

    fn done(&mut self) {
        if let Some(receipt) = &mut self.receipt {
            receipt.stamp();
        }
        self.put_back();
    }

    fn put_back(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            receipt.put_back(&self.link);
        }
    }
}

/// Whether the request was refused, by the servers or before it was sent.
fn is_certain(error: &Error) -> bool {
    let code = error.code();
    // The servers' own codes, but for those that another server may answer otherwise.
    let by_server = code < Code::API_ERROR && !is_passing(error) && code != REQUEST_TIMEOUT;
    by_server
        || matches!(
            code,
            Code::BAD_ARGUMENTS | Code::INVALID_ACL | Code::UNIMPLEMENTED | Code::NOT_READ_ONLY
        )
}

/// What a server answers that gave up on a request itself.
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
    let at = ops.first().map_or("", Op::path).escape_debug();
    let detail = format!("whether it was done is unknown ({at}): {}", why.code());
    Error::with_detail(op, path, Code::CONNECTION_LOSS, detail)
}
