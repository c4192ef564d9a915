//! A lock of any store: what the face of locks promises holds in each.

use std::time::Duration;

use parking_lot::Mutex;
use test_support::{eventually, session_id, unused_path};
use zklock::{
    Client, Contender, LocalStore, Lock, LockError, LostReason, ReadWriteLock, Semaphore,
    StoreOptions, Strategy,
};

use crate::bench::Bench;

/// Runs a contract once for every store, and there for every strategy that makes a difference.
macro_rules! each_store {
    ($($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {
        $crate::place::each! { every [poll: Poll, watch: Watch, queue: Queue]
            $($(#[$note])* fn $name($place) $body)+
        }
    };
}
pub(crate) use each_store;

/// Runs a contract once for every store, where only fair queues can keep it.
macro_rules! each_queue {
    ($($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {
        $crate::place::each! { every [queue: Queue] $($(#[$note])* fn $name($place) $body)+ }
    };
}
pub(crate) use each_queue;

/// Runs a contract once for every store whose readers can become writers.
macro_rules! each_that_upgrades {
    ($($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {
        $crate::place::each! { upgrading [queue: Queue] $($(#[$note])* fn $name($place) $body)+ }
    };
}
pub(crate) use each_that_upgrades;

/// Runs contracts with these strategies, within the process, and in each other of those stores that is built in.
macro_rules! each {
    ($stores:ident $strategies:tt $($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {$(
        $(#[$note])*
        mod $name {
            #[allow(unused_imports, reason = "not every contract needs all of them")]
            use super::*;
            use crate::place::Place;

            fn contract($place: &Place) $body

            $crate::place::tests! { $strategies }

            #[test]
            fn local() {
                contract(&Place::local());
            }

            $crate::place::others! { $stores }
        }
    )+};
}
pub(crate) use each;

macro_rules! others {
    (upgrading) => {};
    (every) => {
        #[cfg(feature = "mysql")]
        #[test]
        fn mysql() {
            contract(&Place::at(crate::mysql::Server::shared()));
        }

        #[cfg(feature = "postgres")]
        #[test]
        fn postgres() {
            contract(&Place::at(crate::postgres::Server::shared()));
        }

        #[cfg(feature = "redis")]
        #[test]
        fn redis() {
            contract(&Place::at(crate::redis::Server::new()));
        }

        #[cfg(feature = "sqlite")]
        #[test]
        fn sqlite() {
            contract(&Place::at(crate::sqlite::File::new()));
        }
    };
}
pub(crate) use others;

macro_rules! tests {
    ([$($test:ident: $strategy:ident),+]) => {$(
        #[test]
        fn $test() {
            contract(&Place::in_zookeeper(zklock::Strategy::$strategy));
        }
    )+};
}
pub(crate) use tests;

/// Where a lock is kept.
pub struct Place {
    pub path: String,
    store: Store,
}

enum Store {
    ZooKeeper {
        bench: Box<Bench>,
        strategy: Strategy,
        clients: Mutex<Vec<Client>>,
    },
    Local(LocalStore),
    /// With a store object for each lock, as each process has one.
    Elsewhere {
        at: Box<dyn Elsewhere>,
        stores: Mutex<Vec<zklock::Store>>,
    },
}

/// Options to connect with however busy the machine is.
#[allow(dead_code, reason = "not every build has such a store")]
pub fn patient(session_timeout: Duration) -> StoreOptions {
    StoreOptions::new().session_timeout(session_timeout).connect_timeout(test_support::TIMEOUT)
}

/// A store that is reached by its address.
pub trait Elsewhere {
    fn address(&self) -> String;

    fn session_timeout(&self) -> Duration;

    fn connect(&self) -> zklock::Store {
        patient(self.session_timeout()).connect(&self.address()).wait().unwrap()
    }

    /// Has the session end that holds the lock.
    fn lose(&self, path: &str);
}

impl Place {
    pub fn in_zookeeper(strategy: Strategy) -> Place {
        let bench = Box::new(Bench::shared());
        let path = bench.path.clone();
        Place { path, store: Store::ZooKeeper { bench, strategy, clients: Mutex::default() } }
    }

    pub fn local() -> Place {
        Place { path: "/locks/contract".to_owned(), store: Store::Local(LocalStore::new()) }
    }

    #[allow(dead_code, reason = "not every build has such a store")]
    pub fn at(at: impl Elsewhere + 'static) -> Place {
        let store = Store::Elsewhere { at: Box::new(at), stores: Mutex::default() };
        // Others may work at the same place.
        Place { path: format!("/locks/contract{}", unused_path()), store }
    }

    pub fn is_in_zookeeper(&self) -> bool {
        matches!(self.store, Store::ZooKeeper { .. })
    }

    pub fn is_local(&self) -> bool {
        matches!(self.store, Store::Local(_))
    }

    /// The lock, of a client of its own where the store has clients.
    pub fn lock(&self) -> Lock {
        self.lock_at(&self.path)
    }

    pub fn lock_at(&self, path: &str) -> Lock {
        match &self.store {
            Store::ZooKeeper { bench, strategy, clients } => {
                let client = bench.direct();
                let lock = client.lock(path).strategy(*strategy);
                clients.lock().push(client);
                lock
            }
            Store::Local(store) => store.lock(path),
            Store::Elsewhere { at, stores } => {
                let store = at.connect();
                let lock = store.lock(path);
                stores.lock().push(store);
                lock
            }
        }
    }

    /// The lock, and others beside it: of one client where the store has clients.
    pub fn locks(&self, number: usize) -> Vec<Lock> {
        let first = self.lock();
        let beside = |number| match &self.store {
            Store::ZooKeeper { strategy, clients, .. } => {
                let clients = clients.lock();
                clients.last().unwrap().lock(&self.beside(number)).strategy(*strategy)
            }
            Store::Local(store) => store.lock(&self.beside(number)),
            Store::Elsewhere { stores, .. } => {
                stores.lock().last().unwrap().lock(&self.beside(number))
            }
        };
        let mut locks: Vec<Lock> = (1..number).map(beside).collect();
        locks.insert(0, first);
        locks
    }

    fn beside(&self, number: usize) -> String {
        format!("{}-{number}", self.path)
    }

    /// Nobody has one of them, and nothing is left behind.
    pub fn expect_all_free(&self, locks: &[Lock]) {
        for lock in locks {
            eventually("nobody has it", || lock.contenders().wait().unwrap().is_empty());
        }
    }

    /// A read/write lock on the same path, of a client of its own where the store has clients.
    pub fn read_write(&self) -> ReadWriteLock {
        match &self.store {
            Store::ZooKeeper { bench, clients, .. } => {
                let client = bench.direct();
                let lock = client.read_write(&self.path);
                clients.lock().push(client);
                lock
            }
            Store::Local(store) => store.read_write(&self.path),
            Store::Elsewhere { at, stores } => {
                let store = at.connect();
                let lock = store.read_write(&self.path);
                stores.lock().push(store);
                lock
            }
        }
    }

    /// A semaphore on the same path, of a client of its own where the store has clients.
    pub fn semaphore(&self, permits: u32) -> Semaphore {
        match &self.store {
            Store::ZooKeeper { bench, clients, .. } => {
                let client = bench.direct();
                let semaphore = client.semaphore(&self.path, permits);
                clients.lock().push(client);
                semaphore
            }
            Store::Local(store) => store.semaphore(&self.path, permits),
            Store::Elsewhere { at, stores } => {
                let store = at.connect();
                let semaphore = store.semaphore(&self.path, permits);
                stores.lock().push(store);
                semaphore
            }
        }
    }

    /// The same lock of the same client, made anew.
    pub fn again(&self, lock: &Lock) -> Lock {
        match &self.store {
            Store::ZooKeeper { strategy, clients, .. } => {
                let clients = clients.lock();
                clients.last().unwrap().lock(lock.path()).strategy(*strategy)
            }
            Store::Local(store) => store.lock(lock.path()),
            Store::Elsewhere { stores, .. } => stores.lock().last().unwrap().lock(lock.path()),
        }
    }

    /// Whether who comes first is served first, and those who wait can be seen.
    pub fn is_a_queue(&self) -> bool {
        !matches!(self.store, Store::ZooKeeper { strategy: Strategy::Poll | Strategy::Watch, .. })
    }

    /// Who holds it loses it.
    pub fn lose(&self) {
        match &self.store {
            Store::ZooKeeper { bench, strategy, clients } => {
                let holder = bench.claims(*strategy).first().expect("somebody holds it").session;
                let clients = clients.lock();
                let holder = clients.iter().find(|client| session_id(client) == holder);
                bench.expire(holder.expect("a client of this place holds it"));
            }
            Store::Local(store) => assert!(store.lose(&self.path), "nobody holds it"),
            Store::Elsewhere { at, .. } => at.lose(&self.path),
        }
    }

    /// Whether a guard may be lost for that reason after [`lose`](Place::lose). The event that its znode is gone may arrive
    /// before the end of its session is known.
    pub fn is_its_loss(&self, reason: LostReason) -> bool {
        reason == LostReason::Session || self.is_in_zookeeper() && reason == LostReason::Deleted
    }

    /// Ends all that is under way, the first client's first. A holder's client comes last: its end lets a waiter acquire.
    pub fn close(&self) {
        match &self.store {
            Store::ZooKeeper { clients, .. } => {
                clients.lock().iter().for_each(|client| client.close().wait().unwrap());
            }
            Store::Local(store) => store.close(),
            Store::Elsewhere { stores, .. } => {
                stores.lock().iter().for_each(|store| store.close().wait().unwrap());
            }
        }
    }

    /// Nobody has it, and nothing is left behind.
    pub fn expect_free(&self) {
        match &self.store {
            Store::ZooKeeper { bench, strategy, .. } => bench.expect_free(*strategy),
            Store::Local(store) => {
                eventually("nobody has it", || {
                    store.lock(&self.path).contenders().wait().unwrap().is_empty()
                });
            }
            Store::Elsewhere { at, .. } => {
                let lock = at.connect().lock(&self.path);
                eventually("nobody has it", || lock.contenders().wait().unwrap().is_empty());
            }
        }
    }
}

/// The error of an acquire that ends at its limit, and who was ahead of it. A store that a busy machine keeps waiting
/// can't say in time who that is: then the limit is longer.
#[track_caller]
pub fn late(acquire: impl Fn(Duration) -> LockError) -> (LockError, Contender) {
    for limit in [200, 2_000, 20_000].map(Duration::from_millis) {
        let error = acquire(limit);
        match &error {
            LockError::TimedOut { ahead: None, .. } => {}
            LockError::TimedOut { ahead: Some(ahead), .. } => {
                return (error.clone(), Contender::clone(ahead));
            }
            _ => panic!("{error:?}"),
        }
    }
    panic!("nobody can say who is ahead");
}
