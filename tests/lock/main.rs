//! Locks under faults, on real servers: what is promised holds whatever is lost on the way.

mod bench;
mod continuity;
mod contract;
mod cut_link;
mod deposed;
mod election;
mod errors;
mod exclusion;
mod giving_up;
mod guards;
mod holders;
mod local;
mod lost_replies;
mod order;
mod partition;
mod paths;
mod permissions;
mod place;
mod processes;
mod read_write;
mod requests;
mod rounds;
mod semaphore;
mod sessions;
mod take_over;
mod while_held;
