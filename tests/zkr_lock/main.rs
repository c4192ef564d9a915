//! The drop-in lock, as a program that was written against the C recipe knows it: `driver.c` does
//! with the functions of `zoo_lock.h` what a scenario tells it, while the scenario has the server,
//! the network and the other clients in its hands.

mod abi;
mod closing;
mod completions;
mod copies;
mod driver;
mod ends;
mod errors;
mod inside;
mod meanings;
mod names;
mod outage;
mod queued;
mod queueing;
mod scene;
mod sessions;
mod steady;
