//! What a store can do, and what it promises.

/// What a store can do, and what it promises. What one lacks fails where it is asked for, with an error that says what
/// would do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Capabilities {
    /// The store's name, as it stands in its address.
    pub store: &'static str,
    /// Who comes first is served first.
    pub fair: bool,
    /// Its [tokens](crate::Guard::fencing_token) grow with every acquire, also after a crash of who held, of the store
    /// or of the machine.
    pub lasting_tokens: bool,
    /// It has [read/write locks](crate::ReadWriteLock).
    pub read_write: bool,
    /// Readers of those can become [writers](crate::Guard::upgrade) without a moment in which they hold nothing, and
    /// [back](crate::Guard::downgrade).
    pub upgrades: bool,
    /// It has [semaphores](crate::Semaphore).
    pub semaphores: bool,
    /// Several locks of it are [claimed in one step](crate::MultiLock); otherwise one after the other, in the order of their
    /// paths.
    pub claims_together: bool,
    /// It can [refuse a write](crate::Guard::multi) whose lock is lost. Elsewhere, have what is written to compare the token.
    pub guarded_writes: bool,
    /// Its locks exclude processes from each other, not only the threads of one.
    pub between_processes: bool,
    /// Its locks exclude machines from each other.
    pub between_machines: bool,
    /// It goes on, and what is held stays held, where a minority of its servers fails.
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

    /// What one server that keeps leases promises.
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
