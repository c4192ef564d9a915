//! A lock of any store: what the face of locks promises holds in each.

use parking_lot::Mutex;
use test_support::{eventually, session_id};
use zklock::{Client, Lock, ReadWriteLock, Semaphore, Strategy, local};

use crate::bench::Bench;

/// Runs a contract once for every store, and there for every strategy that makes a difference.
macro_rules! each_store {
    ($($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {
        $crate::place::each! { [poll: Poll, watch: Watch, queue: Queue]
            $($(#[$note])* fn $name($place) $body)+
        }
    };
}
pub(crate) use each_store;

/// Runs a contract once for every store, where only fair queues can keep it.
macro_rules! each_queue {
    ($($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {
        $crate::place::each! { [queue: Queue] $($(#[$note])* fn $name($place) $body)+ }
    };
}
pub(crate) use each_queue;

/// Runs contracts with these strategies, and within the process.
macro_rules! each {
    ($strategies:tt $($(#[$note:meta])* fn $name:ident($place:ident) $body:block)+) => {$(
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
        }
    )+};
}
pub(crate) use each;

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
    ZooKeeper { bench: Box<Bench>, strategy: Strategy, clients: Mutex<Vec<Client>> },
    Local(local::Store),
}

impl Place {
    pub fn in_zookeeper(strategy: Strategy) -> Place {
        let bench = Box::new(Bench::shared());
        let path = bench.path.clone();
        Place { path, store: Store::ZooKeeper { bench, strategy, clients: Mutex::default() } }
    }

    pub fn local() -> Place {
        Place { path: "/locks/contract".to_owned(), store: Store::Local(local::Store::new()) }
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
        }
    }

    /// Ends all that is under way.
    pub fn close(&self) {
        match &self.store {
            Store::ZooKeeper { clients, .. } => {
                clients.lock().iter().for_each(|client| client.close().wait().unwrap());
            }
            Store::Local(store) => store.close(),
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
        }
    }
}
