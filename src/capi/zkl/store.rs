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

/// zkl_client_can: who comes first is served first.
pub const ZKL_CAN_BE_FAIR: c_int = 1;
/// zkl_client_can: tokens grow with every acquire, also after a crash of who held, of the store or of the machine.
pub const ZKL_CAN_KEEP_TOKENS: c_int = 2;
/// zkl_client_can: read/write locks.
pub const ZKL_CAN_SHARE: c_int = 4;
/// zkl_client_can: zkl_guard_upgrade and zkl_guard_downgrade.
pub const ZKL_CAN_UPGRADE: c_int = 8;
/// zkl_client_can: semaphores.
pub const ZKL_CAN_COUNT: c_int = 16;
/// zkl_client_can: several locks are claimed in one step; otherwise one after the other, in the order of their paths.
pub const ZKL_CAN_CLAIM_TOGETHER: c_int = 32;
/// zkl_client_can: zkl_guard_set. Elsewhere, have what is written to compare the token.
pub const ZKL_CAN_GUARD_WRITES: c_int = 64;
/// zkl_client_can: locks exclude processes from each other, not only the threads of one.
pub const ZKL_CAN_EXCLUDE_PROCESSES: c_int = 128;
/// zkl_client_can: locks exclude machines from each other.
pub const ZKL_CAN_EXCLUDE_MACHINES: c_int = 256;
/// zkl_client_can: it goes on, and what is held stays held, where a minority of its servers fails.
pub const ZKL_CAN_LOSE_SERVERS: c_int = 512;

/// Connects to the store with that address, whose locks are made, acquired and ended as those of ZooKeeper are:
///
/// - "zookeeper://HOST:PORT,.../CHROOT": as zkl_client_connect;
/// - "redis://USER:PASSWORD@HOST:PORT/DATABASE", "postgres://..." and "mysql://..." (also MariaDB): a server;
/// - "sqlite:FILE": a file, for the processes of one machine;
/// - "local:": this process, whose threads it excludes, for tests; all of its clients are one, which is never closed.
///
/// What the library was built without is refused by name. What a store can't do is refused where it is asked for; it is
/// known before by zkl_client_can. Counters, queues, groups, latches and barriers are ZooKeeper's alone; elections and locks
/// by key are locks, and every store has them. Of the options of a lock `acl` and `interop` count in ZooKeeper alone, and
/// elsewhere all strategies are fair queues. `docs/stores.md` says what each store promises.
///
/// `options` may be NULL: the defaults. Where the store is not ZooKeeper only session_timeout_ms counts (how long a lock
/// outlives the crash of its holder, from 100 ms) and connect_timeout_ms, and the others have to be left out. Both are
/// copied.
///
/// Any thread; blocks. On success `*client` is the program's: free it with zkl_client_free.
///
/// ZOK; ZBADARGUMENTS for a NULL, what is no such address, a database that does not exist or is of another version, or
/// bad options; ZNOAUTH where the store does not take the user or the password; ZAPIERROR when a server can't be reached
/// for 3 s; ZOPERATIONTIMEOUT; ZSYSTEMERROR when there is no thread to be had; ZKL_WOULD_DEADLOCK inside a callback of
/// the C client; otherwise as zkl_client_connect. zkl_last_error shows no password.
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

/// The name of the store that keeps a client's locks, as it stands in its address: "zookeeper", "redis", "postgres",
/// "mysql", "sqlite" or "local".
///
/// Any thread. Returns a string that belongs to the library; NULL for NULL.
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

/// What the store that keeps a client's locks can do: the sum of the ZKL_CAN_* that hold.
///
/// Any thread. ZBADARGUMENTS for NULL.
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
