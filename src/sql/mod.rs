//! Stores that are SQL databases. `tables.rs` defines their tables, and `steps.rs` the steps, each one transaction. One
//! file for each database has its connection, its clock and the meaning of its errors.

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
