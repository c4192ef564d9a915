//! The deletion of two znodes in one transaction, which must happen as that of one (`guaranteed_delete.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Link;
use super::lease::Proof;
use crate::error::{Code, Error};
use crate::raw::{RawOp, RawOpResult, Sink, Turn};
use crate::runtime::{BootInstant, Pending, wake};

/// What came of the transaction.
enum Ended {
    Done,
    /// It was refused, or nobody knows: each of them is deleted by itself now.
    Apart(Box<[Pending<bool>; 2]>),
    Failed(Error),
}

impl Link {
    /// Deletes two znodes for certain, which one transaction `czxid` of this session has created, as
    /// [`guaranteed_delete`](Link::guaranteed_delete) deletes one: submitted now, in one transaction. Where that
    /// is refused (one of them is gone, say), or its outcome is unknown, each is deleted by itself. With `look`,
    /// each is from the beginning. Gives `false` if one was gone before.
    pub(crate) fn guaranteed_delete_of_both(
        self: &Arc<Self>,
        paths: [&Arc<str>; 2],
        czxid: i64,
        look: bool,
        gone: Arc<AtomicBool>,
    ) -> Pending<bool> {
        let path = Arc::clone(paths[0]);
        if look {
            let each = paths.map(|path| self.guaranteed_delete(path, czxid, true, gone.clone()));
            return both_gone(path, async move { Ended::Apart(Box::new(each)) });
        }
        let Some(handle) = self.handle.get() else {
            return Pending::ready(Err(Error::new("delete", &path, Code::INVALID_STATE)));
        };
        let (send, ended) = oneshot::async_channel();
        let (link, duty) = (Arc::downgrade(self), self.duties.begin());
        let (submitted, both) = (BootInstant::now(), paths.map(Arc::clone));
        let sink: Sink<Vec<RawOpResult>> = Box::new(move |reply| {
            let link = link.upgrade();
            if let Some(link) = &link {
                link.learn(&reply, submitted, Proof::Write);
            }
            let is_done = reply.as_ref().is_ok_and(|ops| ops.iter().all(|op| op.code == Code::OK));
            let end = match (is_done, link) {
                (true, _) => {
                    gone.store(true, Ordering::Release);
                    Ended::Done
                }
                (false, Some(link)) => {
                    // After a transaction that may have been executed, a znode that is gone was deleted by it.
                    let may_be_done = reply.is_err_and(may_be_done);
                    Ended::Apart(Box::new(both.map(|path| {
                        link.delete_after_all(&path, czxid, !may_be_done, gone.clone())
                    })))
                }
                (false, None) => Ended::Failed(Error::new("delete", &both[0], Code::CLOSING)),
            };
            wake::send(send, end);
            drop(duty);
        });
        let ops = paths.map(|path| RawOp::Delete { path, version: -1 });
        handle.multi(self.terms(Turn::InOrderAlways), &ops, sink);
        let unanswered = Error::new("delete", &path, Code::CLOSING);
        both_gone(path, async move { ended.await.unwrap_or(Ended::Failed(unanswered)) })
    }
}

fn both_gone(path: Arc<str>, ended: impl Future<Output = Ended> + Send + 'static) -> Pending<bool> {
    Pending::run("delete", &path, async move {
        match ended.await {
            Ended::Done => Ok(true),
            Ended::Failed(error) => Err(error),
            Ended::Apart(each) => {
                let [one, other] = *each;
                let (one, other) = (one.await, other.await);
                Ok(one? & other?)
            }
        }
    })
}

/// Whether what ended so may have been executed: also a reply that can't be read is one.
fn may_be_done(code: Code) -> bool {
    code.is_outcome_unknown() || code == Code::MARSHALLING_ERROR
}
