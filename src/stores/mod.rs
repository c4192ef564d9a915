//! One face over all stores: an address says which one keeps the locks.

mod address;
mod capabilities;
#[cfg(all(test, feature = "_leases"))]
#[path = "../../tests/inside/faults/mod.rs"]
mod faults;

use std::time::Duration;

use address::Address;
pub use capabilities::Capabilities;

use crate::LocalStore;
use crate::client::{Client, ClientOptions};
use crate::error::{Code, Error};
#[cfg(feature = "_leases")]
use crate::leased;
use crate::lock::{KeyedLocks, Lock, ReadWriteLock, Semaphore};
use crate::runtime::Pending;
use crate::sync::per_process;
use crate::tls::Tls;

/// How long a lock outlives the crash of who holds it, unless something else is wanted.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server is tried to be reached, unless something else is wanted.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
const SERVER: Option<Duration> = Some(Duration::from_secs(3));

/// Which session timeouts a store of leases takes.
const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);

per_process! {
    /// The store at `local:`.
    static LOCAL: LocalStore = LocalStore::new();
}

/// Connects to the store with that address. All stores `local:` of a process are one.
///
/// # Errors
/// No error shows a password.
/// - `BAD_ARGUMENTS`: the address is invalid, or the feature of the store is not built in. The error says which.
/// - ZooKeeper: as [`ClientOptions::connect`](crate::ClientOptions::connect).
/// - A file: `BAD_ARGUMENTS` if it is no database, or another machine uses it, or its file system lacks SQLite's shared
///   memory. Also if this process was forked by one that has used SQLite. `NO_AUTH` if it is not writable.
/// - Redis, PostgreSQL or MariaDB: `NO_AUTH` if the server refuses the user or the password, or the user lacks a right.
///   `API_ERROR` if the server cannot be reached, or accepts no writes, for 3 s or another
///   [time](StoreOptions::connect_timeout). `BAD_ARGUMENTS` if the database does not exist, or has tables of another
///   version.
///
/// # On connection loss
/// With ZooKeeper it retries until a server accepts the session or the time has passed. For a file that others have
/// locked it waits: limit that with [`within`](Pending::within) or [`StoreOptions::connect_timeout`].
///
/// # Cancel safety
/// Dropping it leaves nothing behind but empty tables.
pub fn connect(address: &str) -> Pending<Store> {
    StoreOptions::new().connect(address)
}

/// Options to connect to a store with.
#[derive(Clone, Debug)]
#[must_use]
pub struct StoreOptions {
    session_timeout: Duration,
    connect_timeout: Option<Duration>,
    tokens_above: Option<i64>,
    tls: Option<Tls>,
    zookeeper: ClientOptions,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions::new()
    }
}

impl StoreOptions {
    /// The defaults.
    pub fn new() -> StoreOptions {
        StoreOptions {
            session_timeout: SESSION_TIMEOUT,
            connect_timeout: None,
            tokens_above: None,
            tls: None,
            zookeeper: Client::options(),
        }
    }

    /// TLS to the servers, and nothing without it: a server that has no TLS, or no certificate for its name in the
    /// address, is not connected to. The files are read for each connection, so you can replace them at any time.
    ///
    /// ZooKeeper takes what [`ClientOptions::tls`] takes. The other servers need a feature (`redis-tls`, `postgres-tls`,
    /// `mysql-tls`), and take files in PEM form alone: no revocation lists, no key with a password, no certificate
    /// without the server's name. With it, `redis://` means `rediss://`. MariaDB and MySQL servers are also accepted with
    /// a certificate for their name from an authority on the web: the driver knows those as well.
    pub fn tls(mut self, tls: Tls) -> StoreOptions {
        self.tls = Some(tls);
        self
    }

    /// Options for ZooKeeper alone: identities, SASL, announced releases and others. The session timeout is still that
    /// of [`session_timeout`](StoreOptions::session_timeout).
    pub fn zookeeper(mut self, options: ClientOptions) -> StoreOptions {
        self.zookeeper = options;
        self
    }

    /// How long locks in the store outlive a crash of their holder, at most. A holder that cannot renew them loses them
    /// one twentieth earlier. ZooKeeper's servers may grant another time; `local:` has none. The default is 10 s. A
    /// file takes from 100 ms to a day.
    pub fn session_timeout(mut self, timeout: Duration) -> StoreOptions {
        self.session_timeout = timeout;
        self
    }

    /// How long connecting is tried while the store can't be reached, accepts no writes or is locked. The default is that
    /// of [`ClientOptions::connect_timeout`] for ZooKeeper, 3 s for other servers, and no limit for a file.
    pub fn connect_timeout(mut self, timeout: Duration) -> StoreOptions {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Makes the store's tokens larger than `token` from now on, for all its clients. Stores count from different
    /// numbers. When a program moves to another store, pass the largest token of the old one. Otherwise a resource that
    /// compares tokens may refuse all writes. Connecting raises the store's counter, and never lowers it. A store that
    /// loses its memory loses this as well, until the next client connects with the option.
    ///
    /// Redis takes tokens up to 2^52, the databases up to 2^62. ZooKeeper's tokens are transaction numbers, which cannot
    /// be raised: connecting fails with `BAD_ARGUMENTS`.
    pub fn tokens_above(mut self, token: i64) -> StoreOptions {
        self.tokens_above = Some(token);
        self
    }

    /// As [`connect`].
    ///
    /// # Errors
    /// As [`connect`]; `BAD_ARGUMENTS` for a session timeout, [tokens](StoreOptions::tokens_above), or [TLS](StoreOptions::tls)
    /// that the store does not take, and for files of TLS that cannot be used.
    pub fn connect(&self, address: &str) -> Pending<Store> {
        let refuse = |shown: &str, why: String| {
            Pending::ready(Err(Error::with_detail("connect", shown, Code::BAD_ARGUMENTS, why)))
        };
        let address = match Address::parse(address) {
            Ok(address) => address,
            Err(why) => return refuse("", why),
        };
        let shown = address.shown();
        if let Err(why) = self.check(&address) {
            return refuse(&shown, why);
        }
        match address {
            Address::ZooKeeper(hosts) => {
                let mut options = self.zookeeper.clone().session_timeout(self.session_timeout);
                if let Some(timeout) = self.connect_timeout {
                    options = options.connect_timeout(timeout);
                }
                if let Some(tls) = &self.tls {
                    options = options.tls(tls.clone());
                }
                options.connect(&hosts).map(|client| Ok(Store { kept: Kept::ZooKeeper(client?) }))
            }
            Address::Local => {
                LOCAL.raise_tokens(self.tokens_above.unwrap_or(0));
                Pending::ready(Ok(Store { kept: Kept::Process(LocalStore::clone(&LOCAL)) }))
            }
            #[cfg(feature = "sqlite")]
            Address::Sqlite(file) => {
                let connect = move |is_given_up: &dyn Fn(&str) -> bool| {
                    crate::sql::sqlite::Sqlite::open(&file, is_given_up)
                };
                open(&shown, self, None, Capabilities::SQLITE, connect)
            }
            #[cfg(feature = "redis")]
            Address::Redis(address) => {
                let (lease, tls) = (self.session_timeout, self.tls.clone());
                let connect = move |is_given_up: &dyn Fn(&str) -> bool| {
                    crate::redis::Redis::open(&address, tls.as_ref(), lease, is_given_up)
                };
                open(&shown, self, SERVER, Capabilities::REDIS, connect)
            }
            #[cfg(feature = "postgres")]
            Address::Postgres(address) => {
                let (lease, tls) = (self.session_timeout, self.tls.clone());
                let connect = move |is_given_up: &dyn Fn(&str) -> bool| {
                    crate::sql::postgres::Postgres::open(&address, tls.as_ref(), lease, is_given_up)
                };
                open(&shown, self, SERVER, Capabilities::POSTGRES, connect)
            }
            #[cfg(feature = "mysql")]
            Address::MySql(address) => {
                let (lease, tls) = (self.session_timeout, self.tls.clone());
                let connect = move |is_given_up: &dyn Fn(&str) -> bool| {
                    crate::sql::mysql::MySql::open(&address, tls.as_ref(), lease, is_given_up)
                };
                open(&shown, self, SERVER, Capabilities::MYSQL, connect)
            }
            #[allow(unreachable_patterns, reason = "not every build lacks one")]
            other => {
                let feature = other.feature();
                let why = format!("zklock was built without it: enable the feature `{feature}`");
                refuse(&shown, why)
            }
        }
    }

    /// Whether a store at that address can have these options, or why not.
    fn check(&self, address: &Address) -> Result<(), String> {
        if let Some(above) = self.tokens_above.filter(|above| *above > address.largest_token()) {
            return Err(format!(
                "its tokens can't be raised above {above}: put the number of the move before each token, and compare \
                 that first"
            ));
        }
        let keeps_leases = !matches!(address, Address::ZooKeeper(_) | Address::Local);
        if keeps_leases && !LEASES.contains(&self.session_timeout) {
            return Err("a session timeout is from 100 ms to a day".to_owned());
        }
        match address {
            Address::ZooKeeper(_) => Ok(()),
            Address::Sqlite(_) | Address::Local if self.tls.is_some() => {
                Err("there is no server, so there is no TLS to it".to_owned())
            }
            _ if self.tls.is_none() && !address.names_tls() => Ok(()),
            _ if !address.has_tls_built_in() => {
                let feature = address.feature();
                Err(format!(
                    "zklock was built without TLS to it: enable the feature `{feature}-tls`"
                ))
            }
            #[cfg(feature = "_tls")]
            _ => self.tls.as_ref().map_or(Ok(()), |tls| leased::tls::config(tls).map(drop)),
            #[cfg(not(feature = "_tls"))]
            _ => Ok(()),
        }
    }
}

/// Opens a store that keeps leases, within a limit unless the options have another.
#[cfg(feature = "_leases")]
fn open<D: leased::database::Database>(
    shown: &str,
    options: &StoreOptions,
    limit: Option<Duration>,
    capabilities: Capabilities,
    open: impl FnOnce(&dyn Fn(&str) -> bool) -> Result<D, leased::database::StepError> + Send + 'static,
) -> Pending<Store> {
    let (above, limit) = (options.tokens_above, options.connect_timeout.or(limit));
    let open = move |is_given_up: &dyn Fn(&str) -> bool| {
        let mut database = open(is_given_up)?;
        if let Some(above) = above {
            leased::attempts::first(is_given_up, || database.raise_tokens(above))?;
        }
        Ok(database)
    };
    let opened = leased::Store::open(shown, options.session_timeout, limit, open);
    opened.map(move |store| Ok(Store { kept: Kept::Leased(store?, capabilities) }))
}

/// A store of locks. Clones are the same store.
///
/// It stays open as long as one of its clones, locks or guards exists. An address says where it is:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // "zookeeper://10.0.0.1:2181,10.0.0.2:2181/chroot", "sqlite:/var/lib/app/locks.db", or for tests:
/// let store = zklock::connect("local:").wait()?;
/// let lock = store.lock("/locks/invoices");
/// let guard = lock.acquire().wait()?;
/// println!("mine; my writes carry the token {}", guard.fencing_token());
/// guard.release().wait()?;
/// # Ok(()) }
/// ```
///
/// | address | keeps locks | for |
/// |---|---|---|
/// | `zookeeper://HOST:PORT,.../CHROOT` | on ZooKeeper servers | all machines that reach them |
/// | `redis://USER:PASSWORD@HOST:PORT/DATABASE` | on a server of Redis, with the feature `redis` | all machines that reach it |
/// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | in a database of PostgreSQL, with the feature `postgres` | all machines that reach it |
/// | `mysql://USER:PASSWORD@HOST:PORT/DATABASE` | in a database of MariaDB or MySQL, with the feature `mysql` | all machines that reach it |
/// | `sqlite:FILE` | in a database file, with the feature `sqlite` | the processes of one machine |
/// | `local:` | in this process | its threads and tasks, and tests |
///
/// [`Capabilities`] and `docs/stores.md` say what each promises. Locks at different addresses do not exclude each
/// other, and their tokens count from different numbers. When a program moves to another address, set
/// [`StoreOptions::tokens_above`].
#[derive(Clone)]
pub struct Store {
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    ZooKeeper(Client),
    Local(LocalStore),
    /// That of the process, which is never closed.
    Process(LocalStore),
    #[cfg(feature = "_leases")]
    Leased(leased::Store, Capabilities),
}

impl Store {
    /// A lock on a path. In all stores, the rules for paths are those of ZooKeeper.
    pub fn lock(&self, path: &str) -> Lock {
        match &self.kept {
            Kept::ZooKeeper(client) => client.lock(path),
            Kept::Local(store) | Kept::Process(store) => store.lock(path),
            #[cfg(feature = "_leases")]
            Kept::Leased(store, _) => store.lock(path),
        }
    }

    /// A read/write lock on a path.
    pub fn read_write(&self, path: &str) -> ReadWriteLock {
        ReadWriteLock::new(self.lock(path))
    }

    /// A semaphore on a path. It has this number of permits, unless the store has another number.
    pub fn semaphore(&self, path: &str, permits: u32) -> Semaphore {
        Semaphore::new(self.lock(path), permits)
    }

    /// Locks by key below a path: for short-lived locks on many things.
    pub fn locks(&self, path: &str) -> KeyedLocks {
        KeyedLocks::below(self.lock(path))
    }

    /// The abilities and promises of the store.
    pub fn capabilities(&self) -> Capabilities {
        match &self.kept {
            Kept::ZooKeeper(_) => Capabilities::ZOOKEEPER,
            Kept::Local(_) | Kept::Process(_) => Capabilities::LOCAL,
            #[cfg(feature = "_leases")]
            Kept::Leased(_, capabilities) => *capabilities,
        }
    }

    /// How long its locks outlive a crash of their holder, at most. `None` if they do not, or if no server has granted
    /// a session yet.
    pub fn session_timeout(&self) -> Option<Duration> {
        match &self.kept {
            Kept::ZooKeeper(client) => client.session_timeout(),
            Kept::Local(_) | Kept::Process(_) => None,
            #[cfg(feature = "_leases")]
            Kept::Leased(store, _) => Some(store.lease()),
        }
    }

    /// The client, if the store is ZooKeeper: for everything that only ZooKeeper has.
    pub fn client(&self) -> Option<&Client> {
        match &self.kept {
            Kept::ZooKeeper(client) => Some(client),
            _ => None,
        }
    }

    /// Whether it was closed, or can't go on.
    #[cfg(feature = "capi")]
    pub(crate) fn is_closed(&self) -> bool {
        match &self.kept {
            Kept::ZooKeeper(client) => client.state() == crate::client::SessionState::Closed,
            Kept::Local(store) | Kept::Process(store) => store.is_closed(),
            #[cfg(feature = "_leases")]
            Kept::Leased(store, _) => store.is_closed(),
        }
    }

    /// Closes the store for all clones. Its guards are lost, and operations in flight and later ones fail with
    /// [`Closed`](crate::LockError::Closed). Its locks are released if the store can be reached. `local:` is never
    /// closed, because the whole process shares it.
    ///
    /// Success means that nothing it held is left: the store has confirmed that, or the lease has run out.
    ///
    /// # Errors
    /// In ZooKeeper as [`Client::close`]. The other stores give none.
    ///
    /// # Cancel safety
    /// The store closes even if the [`Pending`] is dropped. Only the confirmation is lost.
    pub fn close(&self) -> Pending<()> {
        match &self.kept {
            Kept::ZooKeeper(client) => client.close(),
            Kept::Local(store) => {
                store.close();
                Pending::ready(Ok(()))
            }
            Kept::Process(_) => Pending::ready(Ok(())),
            #[cfg(feature = "_leases")]
            Kept::Leased(store, _) => store.close(),
        }
    }
}

/// A store on the client's connection, which may have its own options (TLS, for example).
impl From<Client> for Store {
    fn from(client: Client) -> Store {
        Store { kept: Kept::ZooKeeper(client) }
    }
}

/// One of several within this process.
impl From<LocalStore> for Store {
    fn from(store: LocalStore) -> Store {
        Store { kept: Kept::Local(store) }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("kind", &self.capabilities().store).finish_non_exhaustive()
    }
}
