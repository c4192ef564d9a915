//! The process between `zklock run` and its command, which ends the command in time whatever becomes of the other.
//!
//! `zklock run` is three processes, because a process that is frozen or killed cannot end another one:
//! - `zklock run` itself has the session, and says until when the lock is held.
//! - The supervisor is the same program, started again: one thread, without ZooKeeper. It is the parent of the command
//!   and the subreaper of all that the command starts. It gets the end of the hold as a time of the clock that goes on
//!   while the machine sleeps, over a socket whose end says that the first process has died.
//! - The third waits while the first acquires the lock, and becomes the command once the lock is held (`exec.rs`).
//!
//! Where zklock may create a control group, the command runs in one, and the kernel kills it as a whole.

pub mod ending;
pub mod exec;
pub mod orders;
pub mod supervisor;
pub mod wire;
