//! Locks under faults, on real servers: what is promised holds whatever is lost on the way.

mod bench;
mod exclusion;
mod giving_up;
mod guards;
mod lost_replies;
mod order;
mod partition;
mod paths;
mod processes;
mod requests;
mod sessions;
