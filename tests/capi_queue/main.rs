//! The drop-in queue, as C programs use it: on handles of their own, on real servers.

#![cfg(feature = "capi")]

mod bench;
mod contract;
mod header;
mod load;
mod lost_replies;
mod made_anew;
mod program;
mod proof;
mod receipts;
mod sizes;
