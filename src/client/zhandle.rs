//! The C client's own handle, for what it can do and `Client` can't.

use super::Client;
use crate::raw::zhandle_t;

impl Client {
    /// Runs `body` with the C client's handle, for functions of `zookeeper.h` that have no counterpart here.
    /// [`zookeeper_sys`](crate::zookeeper_sys) binds them. If there is no handle at the moment, it gives `None` and
    /// does not run `body`: before the first session, between two sessions, after the end, or in a child made by
    /// `fork`.
    ///
    /// ```no_run
    /// # fn main() -> zklock::Result<()> {
    /// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
    /// use zklock::zookeeper_sys::zoo_recv_timeout;
    ///
    /// // SAFETY: the handle is open, and the function only reads.
    /// let millis = zk.with_zhandle(|zh| unsafe { zoo_recv_timeout(zh) });
    /// # Ok(()) }
    /// ```
    ///
    /// # What it is for, and what not
    /// The handle stays open while `body` runs; closing it, and the next session, wait for `body`. So let `body` submit
    /// or read, and return. These rules also hold for a handle that a C program owns:
    /// - Keep no pointer. The next session has another handle, and this one is freed.
    /// - Do not wait for an answer. Call no function of the synchronous interface, and wait for nothing that a
    ///   completion does. After a connection loss that can block for ever.
    /// - Do not close the client or the handle. Do not set its watcher (`zoo_set_watcher`), context (`zoo_set_context`)
    ///   or hosts (`zoo_set_servers`), and do not call `zoo_remove_all_watches`. Those belong to this client.
    /// - Identities added here (`zoo_add_auth`) belong to this session only: see [`add_auth`](Client::add_auth).
    /// - Your completions and watchers run on a thread of the C client. A completion runs at most once, a watcher any
    ///   number of times. During the close they may run with `ZCLOSING`, or never. They must not block or unwind. Their
    ///   context must live for as long as they may run.
    /// - Requests submitted here do not count as requests of this client. They have no deadline and do not prove the
    ///   session.
    #[cfg(feature = "raw")]
    #[cfg_attr(docsrs, doc(cfg(feature = "raw")))]
    pub fn with_zhandle<T>(&self, body: impl FnOnce(*mut zhandle_t) -> T) -> Option<T> {
        self.while_open(body)
    }

    /// Gives `body` the handle, if there is one, and keeps it open meanwhile.
    pub(crate) fn while_open<T>(&self, body: impl FnOnce(*mut zhandle_t) -> T) -> Option<T> {
        let (mut body, mut result) = (Some(body), None);
        let link = self.inner().status().link?;
        link.handle.while_open(&mut |zh| result = body.take().map(|body| body(zh)));
        result
    }
}
