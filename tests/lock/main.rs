//! Locks under faults, on real servers: what is promised holds whatever is lost on the way.

mod bench;
mod callers;
mod continuity;
mod contract;
mod cut_link;
mod deposed;
mod election;
#[cfg(feature = "_leases")]
mod elsewhere;
#[cfg(feature = "_leases")]
mod endurance;
mod errors;
mod exclusion;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod gates;
mod giving_up;
mod guards;
mod holders;
mod interoperate;
mod keyed;
mod line;
mod local;
mod local_handoff;
mod lost_replies;
mod multi_lock;
#[cfg(feature = "mysql")]
mod mysql;
mod order;
mod partition;
mod paths;
mod permissions;
mod place;
#[cfg(feature = "postgres")]
mod postgres;
mod processes;
mod read_write;
#[cfg(feature = "redis")]
mod redis;
mod reentrant;
mod requests;
mod revocation;
mod rounds;
mod semaphore;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod servers;
mod sessions;
#[cfg(feature = "sqlite")]
mod sqlite;
mod succession;
mod take_over;
#[cfg(feature = "_tls")]
mod tls;
mod upgrade;
mod while_held;
