//! The parts of the build script, run again.

#[path = "../../build/bindings.rs"]
mod bindings;
#[allow(dead_code, reason = "the rest of it serves the build script")]
#[path = "../../build/find.rs"]
mod find;
#[allow(dead_code, reason = "the source module names its type")]
#[path = "../../build/secure.rs"]
mod secure;
#[allow(dead_code, reason = "the rest of it serves the build script")]
#[path = "../../build/source.rs"]
mod source;
#[path = "../../build/version.rs"]
mod version;

mod checked_in_bindings;
mod header;
mod search;
mod source_tree;
