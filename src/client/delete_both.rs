//! The deletion of two znodes in one transaction, which must happen as that of one (`guaranteed_delete.rs`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::Link;
use super::guaranteed_delete::{How, write};
use crate::error::{Code, Error, Result};
use crate::raw::{RawOp, Turn};
use crate::retry::may_be_done;
use crate::runtime::{Pending, run_in_place, wake};

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
        let (send, done) = oneshot::async_channel();
        let (link, both, duty) = (Arc::downgrade(self), paths.map(Arc::clone), self.duties.begin());
        run_in_place(async move {
            wake::send(send, delete_both(&link, &both, czxid, look, &gone).await);
            drop(duty);
        });
        Pending::reply("delete", Arc::clone(paths[0]), done)
    }
}

async fn delete_both(
    link: &Weak<Link>,
    both: &[Arc<str>; 2],
    czxid: i64,
    look: bool,
    gone: &Arc<AtomicBool>,
) -> Result<bool> {
    let mut how = How { look: true, ..How::default() };
    if !look {
        let reply = write(link, Turn::InOrderAlways, |handle, terms, sink| {
            let ops = both.each_ref().map(|path| RawOp::Delete { path, version: -1 });
            handle.multi(terms, &ops, sink);
        })
        .await;
        if reply.as_ref().is_ok_and(|ops| ops.iter().all(|op| op.code == Code::OK)) {
            gone.store(true, Ordering::Release);
            return Ok(true);
        }
        // After a transaction that may have been executed, a znode that is gone was deleted by it.
        how.first = !reply.is_err_and(may_be_done);
    }
    let link = link.upgrade().ok_or_else(|| Error::new("delete", &both[0], Code::CLOSING))?;
    let each = both.each_ref().map(|path| link.begin_delete(path, czxid, how, Arc::clone(gone)));
    drop(link);
    let [one, other] = each;
    let (one, other) = (one.await, other.await);
    Ok(one? & other?)
}
