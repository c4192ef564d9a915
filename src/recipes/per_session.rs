//! Something that is kept for each session, for as long as the session's link lives.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::client::Link;
use crate::process::PerProcess;

/// One `T` for each session that asked for it.
pub(super) struct PerSession<T: 'static>(PerProcess<Mutex<All<T>>>);

type All<T> = Vec<(Weak<Link>, T)>;

impl<T: Default> PerSession<T> {
    pub(super) const fn new() -> PerSession<T> {
        PerSession(PerProcess::new(Mutex::default))
    }

    /// Runs `with` on the session's own `T`. What belonged to sessions that are over is dropped.
    pub(super) fn with<U>(&self, link: &Arc<Link>, with: impl FnOnce(&mut T) -> U) -> U {
        let mut all = self.0.lock();
        all.retain(|(of, _)| of.strong_count() > 0);
        let at = match all.iter().position(|(of, _)| of.as_ptr() == Arc::as_ptr(link)) {
            Some(at) => at,
            None => {
                all.push((Arc::downgrade(link), T::default()));
                all.len() - 1
            }
        };
        with(&mut all[at].1)
    }
}
