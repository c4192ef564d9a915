//! Four pages to read before you use locks in production.

/// How to choose a strategy.
///
#[doc = include_str!("strategy.svg")]
///
#[doc = include_str!("strategy.md")]
pub mod strategy {}

/// The limits of every lock, and what to do about them.
///
#[doc = include_str!("limits.svg")]
///
#[doc = include_str!("limits.md")]
pub mod limits {}

/// Production: timeouts, outages, permissions, holders.
///
#[doc = include_str!("operate.svg")]
///
#[doc = include_str!("operate.md")]
pub mod operate {}

/// How to test your program under faults.
///
#[doc = include_str!("faults.svg")]
///
#[doc = include_str!("faults.md")]
pub mod faults {}
