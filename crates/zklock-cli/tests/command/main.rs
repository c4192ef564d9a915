//! The command `zklock` on real servers, as a user runs it. Above all: what `zklock run` runs never outlives the lock.

mod faults;
mod help;
mod hold;
mod look;
mod manners;
mod mend;
mod once;
mod program;
mod replicas;
mod scene;
mod serve;
#[cfg(feature = "sqlite")]
mod stores;
mod supervisor;
mod terminal;
mod top;
