//! The session that a C client and its locks work on at present: an adopted client can go on with another.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::capi::boundary::Failure;
use crate::capi::zkl::options::{Contending, Sharing};
use crate::capi::zkl::shared::Shared;
use crate::client::{ClientInner, ClientOptions};
use crate::lock::{Lock, Semaphore};
use crate::raw::Adopted;
use crate::stores::Store;

/// The state that a client and its locks share.
pub(super) struct Present {
    sessions: RwLock<Sessions>,
    /// The options for adopting handles; `None` if the client opens its sessions itself.
    adopting: Option<ClientOptions>,
}

struct Sessions {
    present: Arc<Shared>,
    /// Those before that are not over: something is made on them, or their handles are still being given back.
    before: Vec<Arc<ClientInner>>,
}

impl Present {
    pub(super) fn new(store: Store, adopting: Option<ClientOptions>) -> Arc<Present> {
        let present = Shared::new(store, Arc::default());
        let sessions = RwLock::new(Sessions { present, before: Vec::new() });
        Arc::new(Present { sessions, adopting })
    }

    pub(super) fn is_adopted(&self) -> bool {
        self.adopting.is_some()
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.sessions.read().present)
    }

    /// Lets go of all handles: the present one, and those before it.
    pub(super) fn detach(&self) {
        let (present, before) = {
            let sessions = self.sessions.read();
            (Arc::clone(&sessions.present), sessions.before.clone())
        };
        before.iter().for_each(|client| client.detach());
        if let Some(client) = present.store.client() {
            client.inner().detach();
        }
    }

    /// Continues on another handle. Objects made on the previous handle stay there.
    pub(super) fn follow(&self, function: &'static str, next: Adopted) -> Result<(), Failure> {
        let Some(adopting) = &self.adopting else {
            let why = "the client has sessions of its own, and opens the next one by itself";
            return Err(Failure::bad_argument(function, why));
        };
        let client = adopting.adopt(next)?;
        let before = {
            let mut sessions = self.sessions.write();
            let callbacks = Arc::clone(&sessions.present.callbacks);
            let present = Shared::new(client.into(), callbacks);
            let before = std::mem::replace(&mut sessions.present, present);
            sessions.before.retain(|client| !client.is_over());
            sessions.before.extend(before.store.client().map(|client| Arc::clone(client.inner())));
            before
        };
        before.drop_without_waiting();
        Ok(())
    }
}

/// A lock that goes where its client goes.
pub(super) struct PresentLock {
    pub(super) sessions: Arc<Present>,
    path: String,
    how: Contending,
}

/// A lock on one session.
pub(super) struct OnASession {
    pub(super) lock: Lock,
    /// Of which it takes permits.
    pub(super) semaphore: Option<Semaphore>,
    pub(super) shared: Arc<Shared>,
}

impl PresentLock {
    pub(super) fn new(sessions: &Arc<Present>, path: &str, how: Contending) -> PresentLock {
        PresentLock { sessions: Arc::clone(sessions), path: path.to_owned(), how }
    }

    /// The lock on that session.
    pub(super) fn on(&self, session: Arc<Shared>) -> OnASession {
        contending(session, &self.path, &self.how)
    }

    /// The lock on the present session. It is kept nowhere: a lock that nobody uses keeps no session.
    pub(super) fn at_present(&self) -> OnASession {
        self.on(self.sessions.shared())
    }
}

fn contending(shared: Arc<Shared>, path: &str, how: &Contending) -> OnASession {
    let store = &shared.store;
    let mut semaphore = None;
    let lock = match how.sharing {
        Sharing::OfKey(ref key) => store.locks(path).lock(key),
        Sharing::Exclusive => store.lock(path).strategy(how.strategy).interoperate(how.interop),
        Sharing::Read => store.read_write(path).read(),
        Sharing::Upgradeable => store.read_write(path).upgradeable(),
        Sharing::Write => store.read_write(path).write(),
        Sharing::Permits { permits, limit } => {
            semaphore.insert(store.semaphore(path, limit)).permits(permits)
        }
    };
    let mut lock = lock.label(how.label.as_str());
    if let Some(acl) = &how.acl {
        lock = lock.acl(acl.clone());
    }
    OnASession { lock, semaphore, shared }
}
