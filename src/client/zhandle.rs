//! The C client's own handle, for what it can do and `Client` can't.

use super::Client;
use crate::raw::zhandle_t;

impl Client {
    /// Runs `body` with the C client's handle below this client, for functions of `zookeeper.h` that have no
    /// counterpart here; [`zookeeper_sys`](crate::zookeeper_sys) binds them. `None`, and `body` is not run, where there
    /// is no handle at the moment: before the first, between two sessions, after the end, in a child made by `fork`.
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
    /// The handle is open while `body` runs: whoever closes it waits for the end, and so does the next session. So
    /// `body` submits or reads, and returns.
    /// - It keeps no pointer. The next session has another handle, and this one is freed.
    /// - It does not wait for an answer: it calls no function of the synchronous interface, and waits for nothing that
    ///   a completion does. Where the connection is lost that can take for ever.
    /// - It closes neither this client nor the handle, and does not set its watcher (`zoo_set_watcher`), context (`zoo_set_context`) or
    ///   hosts (`zoo_set_servers`), nor removes watches with `zoo_remove_all_watches`: those are this client's.
    /// - Identities that are added here (`zoo_add_auth`) are those of this session alone: see
    ///   [`add_auth`](Client::add_auth).
    /// - A completion or a watcher of its own runs on a thread of the C client, at most once or any number of
    ///   times, perhaps with `ZCLOSING` while the handle is closed, and perhaps never. It must not block or unwind,
    ///   and what its context points to has to live until then.
    /// - What is submitted here does not count among the requests of this client: it has no deadline, and renews no
    ///   trust in the session.
    ///
    /// On a handle that a C program owns all of that holds, too.
    #[cfg(feature = "raw")]
    #[cfg_attr(docsrs, doc(cfg(feature = "raw")))]
    pub fn with_zhandle<T>(&self, body: impl FnOnce(*mut zhandle_t) -> T) -> Option<T> {
        self.while_open(body)
    }

    /// Gives `body` the handle, if there is one, and keeps it open meanwhile.
    pub(crate) fn while_open<T>(&self, body: impl FnOnce(*mut zhandle_t) -> T) -> Option<T> {
        let (mut body, mut result) = (Some(body), None);
        let link = self.inner().status().link?;
        link.handle.get()?.while_open(&mut |zh| result = body.take().map(|body| body(zh)));
        result
    }
}
