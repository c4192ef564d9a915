//! Four pages to read before the first lock goes into production.

/// Which of the three ways of waiting to choose.
///
#[doc = include_str!("strategy.svg")]
///
#[doc = include_str!("strategy.md")]
pub mod strategy {}

/// What no lock can promise, and what to do about it.
///
#[doc = include_str!("limits.svg")]
///
#[doc = include_str!("limits.md")]
pub mod limits {}

/// What to know in production: timeouts, outages, permissions, and who holds what.
///
#[doc = include_str!("operate.svg")]
///
#[doc = include_str!("operate.md")]
pub mod operate {}

/// How to test a program that locks, under the faults that it will meet.
///
#[doc = include_str!("faults.svg")]
///
#[doc = include_str!("faults.md")]
pub mod faults {}
