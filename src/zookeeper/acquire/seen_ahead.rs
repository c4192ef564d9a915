//! The contender ahead of an acquire.

use parking_lot::Mutex;

use crate::client::Znode;
use crate::lock::{Contender, LockError};
use crate::runtime::Late;
use crate::zookeeper::claim::payload;

/// Larger data is read at once and not kept, as many may wait behind one claim.
const LARGE: usize = 4096;

/// The claim that was ahead when that was last seen, for the error of an acquire that has not ended in time.
#[derive(Default)]
pub(crate) struct SeenAhead(Mutex<Option<Seen>>);

enum Seen {
    Claim(String, Znode),
    Contender(Contender),
}

impl SeenAhead {
    pub(crate) fn note(&self, path: String, claim: Znode) {
        let mut seen = Seen::Claim(path, claim);
        if matches!(&seen, Seen::Claim(_, claim) if claim.data.len() > LARGE) {
            seen = Seen::Contender(seen.read());
        }
        *self.0.lock() = Some(seen);
    }

    pub(crate) fn take(&self) -> Option<Contender> {
        let seen = self.0.lock().take();
        seen.map(Seen::read)
    }
}

impl Seen {
    fn read(self) -> Contender {
        match self {
            Seen::Claim(path, claim) => payload::read(path, &claim.data, &claim.stat),
            Seen::Contender(contender) => contender,
        }
    }
}

impl Late<LockError> for SeenAhead {
    fn error(&self, path: &str) -> LockError {
        LockError::timed_out(path, self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::znode::Stat;

    #[test]
    fn large_data_is_not_kept_while_an_acquire_waits() {
        let seen = SeenAhead::default();
        for (len, is_kept) in [(LARGE, true), (LARGE + 1, false)] {
            seen.note(
                "/l/x-1-0000000000".to_owned(),
                Znode { data: vec![b'x'; len], stat: Stat::default() },
            );
            assert_eq!(matches!(*seen.0.lock(), Some(Seen::Claim(..))), is_kept);
            assert_eq!(seen.take().map(|who| who.label), Some("x".repeat(256)));
            assert_eq!(seen.take(), None);
        }
    }
}
