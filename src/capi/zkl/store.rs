//! Other stores than ZooKeeper, behind the same clients and locks.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

use crate::capi::boundary::{Failure, given, may_block, number, output, status, text};
use crate::capi::codes;
use crate::capi::zkl::client::zkl_client;
use crate::capi::zkl::connecting;
use crate::capi::zkl::options::zkl_client_options;
use crate::capi::zkl::timeout::wait;
use crate::error::Code;
use crate::runtime::machine;
use crate::scarcity;

/// zkl_client_can: clients are served in the order in which they come.
pub const ZKL_CAN_BE_FAIR: c_int = 1;
/// zkl_client_can: tokens grow with every acquire, even after a crash of the holder, the store or the machine.
pub const ZKL_CAN_KEEP_TOKENS: c_int = 2;
/// zkl_client_can: read/write locks.
pub const ZKL_CAN_SHARE: c_int = 4;
/// zkl_client_can: zkl_guard_upgrade and zkl_guard_downgrade.
pub const ZKL_CAN_UPGRADE: c_int = 8;
/// zkl_client_can: semaphores.
pub const ZKL_CAN_COUNT: c_int = 16;
/// zkl_client_can: several locks are claimed in one step. Otherwise they are claimed one after the other, in the order
/// of their paths.
pub const ZKL_CAN_CLAIM_TOGETHER: c_int = 32;
/// zkl_client_can: zkl_guard_set. With other stores, have the target compare tokens.
pub const ZKL_CAN_GUARD_WRITES: c_int = 64;
/// zkl_client_can: locks exclude processes from each other, not only the threads of one.
pub const ZKL_CAN_EXCLUDE_PROCESSES: c_int = 128;
/// zkl_client_can: locks exclude machines from each other.
pub const ZKL_CAN_EXCLUDE_MACHINES: c_int = 256;
/// zkl_client_can: it continues to work, and locks stay held, if a minority of its servers fails.
pub const ZKL_CAN_LOSE_SERVERS: c_int = 512;

/// Connects to the store with that address. Its locks work as those of ZooKeeper:
///
/// - "zookeeper://HOST:PORT,.../CHROOT": as zkl_client_connect;
/// - "redis://USER:PASSWORD@HOST:PORT/DATABASE" (with TLS "rediss://..."), "postgres://..." and "mysql://..." (also
///   MariaDB): a server;
/// - "sqlite:FILE": a file, for the processes of one machine;
/// - "local:": the threads of this process, for tests. All its clients are one, which is never closed.
///
/// If the library was built without a store, it is refused by name. A missing ability is refused where it is used;
/// zkl_client_can tells before. Counters, queues, groups, latches and barriers need ZooKeeper. Elections and locks by
/// key work on every store. The lock options `acl` and `interop` apply to ZooKeeper only; elsewhere all strategies are
/// fair queues. `docs/stores.md` says what each store promises.
///
/// `options` may be NULL: the defaults. Without ZooKeeper only session_timeout_ms (how long a lock outlives a crash of
/// its holder, from 100 ms), connect_timeout_ms, tls_ca, tls_cert and tls_key apply. Leave out the others. All are copied.
///
/// Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
///
/// ZOK. ZBADARGUMENTS: an argument is NULL, the address or options are invalid, or the database does not exist or has
/// another version. ZNOAUTH: the store refuses the user or the password. ZAPIERROR: a server cannot be reached for 3 s.
/// ZOPERATIONTIMEOUT: nor within connect_timeout_ms. ZSYSTEMERROR: no thread is available. ZKL_WOULD_DEADLOCK: inside a
/// callback of the C client. Otherwise as zkl_client_connect. zkl_last_error shows no password.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zkl_store_connect(
    address: *const c_char,
    options: *const zkl_client_options,
    client: Option<&mut MaybeUninit<*mut zkl_client>>,
) -> c_int {
    const NAME: &str = "zkl_store_connect";
    status(|| {
        let client = output(NAME, "client", client)?;
        // SAFETY: the header asks for a NUL-terminated string.
        let address = unsafe { text(NAME, "address", address) }?;
        let is_zookeeper = address.starts_with("zookeeper:");
        // SAFETY: the header asks for a filled struct.
        let (options, limit) = unsafe { connecting::connecting_to(NAME, is_zookeeper, options) }?;
        may_block(NAME)?;
        machine::start().map_err(|error| {
            let message = format!("{NAME}: {}", scarcity::describe(&error));
            Failure::new(Code::SYSTEM_ERROR.as_raw(), message)
        })?;
        let store = wait(options.connect(address), limit)?;
        client.write(Box::into_raw(zkl_client::boxed(store, None)));
        Ok(())
    })
}

/// The name of a client's store, as in its address: "zookeeper", "redis", "postgres", "mysql", "sqlite" or "local".
///
/// Any thread. The library owns the string; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_store(client: Option<&zkl_client>) -> *const c_char {
    let Some(client) = client else { return std::ptr::null() };
    match client.capabilities.store {
        "zookeeper" => c"zookeeper",
        "redis" => c"redis",
        "postgres" => c"postgres",
        "mysql" => c"mysql",
        "sqlite" => c"sqlite",
        _ => c"local",
    }
    .as_ptr()
}

/// The abilities of a client's store: the sum of its ZKL_CAN_*.
///
/// Any thread. ZBADARGUMENTS: NULL.
#[unsafe(no_mangle)]
pub extern "C" fn zkl_client_can(client: Option<&zkl_client>) -> c_int {
    let can = || {
        let can = given("zkl_client_can", "client", client)?.capabilities;
        let each = [
            (can.fair, ZKL_CAN_BE_FAIR),
            (can.lasting_tokens, ZKL_CAN_KEEP_TOKENS),
            (can.read_write, ZKL_CAN_SHARE),
            (can.upgrades, ZKL_CAN_UPGRADE),
            (can.semaphores, ZKL_CAN_COUNT),
            (can.claims_together, ZKL_CAN_CLAIM_TOGETHER),
            (can.guarded_writes, ZKL_CAN_GUARD_WRITES),
            (can.between_processes, ZKL_CAN_EXCLUDE_PROCESSES),
            (can.between_machines, ZKL_CAN_EXCLUDE_MACHINES),
            (can.survives_servers, ZKL_CAN_LOSE_SERVERS),
        ];
        Ok(each.into_iter().filter(|(can, _)| *can).map(|(_, bit)| bit).sum())
    };
    number(codes::ZKL_PANIC, can, |code| code)
}
