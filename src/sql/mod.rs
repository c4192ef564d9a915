//! Stores that are SQL databases. What they keep is in `tables.rs`, and each step on that, as one transaction, in
//! `steps.rs`; one file for each database says how it is reached, which clock it has, and what its errors mean.

mod dialect;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod queries;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
mod steps;
mod tables;
