//! The abilities and promises of a store.

/// The abilities and promises of a store. A missing ability fails where it is used, with an error that names the
/// alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Capabilities {
    /// The store's name, as in its address.
    pub store: &'static str,
    /// Clients are served in the order in which they come.
    pub fair: bool,
    /// Its [tokens](crate::Guard::fencing_token) grow with every acquire, even after a crash of the holder, the store
    /// or the machine.
    pub lasting_tokens: bool,
    /// It has [read/write locks](crate::ReadWriteLock).
    pub read_write: bool,
    /// Readers of those can become [writers](crate::Guard::upgrade) without releasing, and
    /// [back](crate::Guard::downgrade).
    pub upgrades: bool,
    /// It has [semaphores](crate::Semaphore).
    pub semaphores: bool,
    /// Several of its locks are [claimed in one step](crate::MultiLock). Otherwise they are claimed one after the
    /// other, in the order of their paths.
    pub claims_together: bool,
    /// It can [refuse a write](crate::Guard::multi) if the lock is lost. With other stores, have the target compare
    /// tokens.
    pub guarded_writes: bool,
    /// Its locks exclude processes from each other, not only the threads of one.
    pub between_processes: bool,
    /// Its locks exclude machines from each other.
    pub between_machines: bool,
    /// It continues to work, and locks stay held, if a minority of its servers fails.
    pub survives_servers: bool,
}

impl Capabilities {
    pub(super) const ZOOKEEPER: Capabilities = Capabilities {
        store: "zookeeper",
        fair: true,
        lasting_tokens: true,
        read_write: true,
        upgrades: true,
        semaphores: true,
        claims_together: true,
        guarded_writes: true,
        between_processes: true,
        between_machines: true,
        survives_servers: true,
    };

    #[cfg(feature = "sqlite")]
    pub(super) const SQLITE: Capabilities = Capabilities {
        store: "sqlite",
        upgrades: false,
        claims_together: false,
        guarded_writes: false,
        between_machines: false,
        survives_servers: false,
        ..Capabilities::ZOOKEEPER
    };

    /// The promises of a single server with leases.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    const SERVER: Capabilities = Capabilities {
        upgrades: false,
        claims_together: false,
        guarded_writes: false,
        survives_servers: false,
        ..Capabilities::ZOOKEEPER
    };

    #[cfg(feature = "redis")]
    pub(super) const REDIS: Capabilities = Capabilities { store: "redis", ..Capabilities::SERVER };

    #[cfg(feature = "postgres")]
    pub(super) const POSTGRES: Capabilities =
        Capabilities { store: "postgres", ..Capabilities::SERVER };

    #[cfg(feature = "mysql")]
    pub(super) const MYSQL: Capabilities = Capabilities { store: "mysql", ..Capabilities::SERVER };

    pub(super) const LOCAL: Capabilities = Capabilities {
        store: "local",
        lasting_tokens: false,
        claims_together: false,
        guarded_writes: false,
        between_processes: false,
        between_machines: false,
        survives_servers: false,
        ..Capabilities::ZOOKEEPER
    };
}
