//! The commands that look, and change nothing.

pub mod kinds;
pub mod last;
pub mod locks;
pub mod ls;
pub mod table;
pub mod watch;
pub mod who;
