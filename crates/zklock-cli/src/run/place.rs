//! Whether the place of the lock has what is asked for.

use super::options::RunOptions;
use crate::failure::Failure;
pub use crate::servers::Place;

/// # Errors
/// Nothing names a store, or it lacks what is asked for.
pub fn of(options: &RunOptions) -> Result<Place, Failure> {
    let place = options.servers.place()?;
    let is_zookeeper = matches!(place, Place::Servers(_));
    let lacks = if is_zookeeper && options.tokens_above.is_some() {
        "--tokens-above: ZooKeeper's tokens cannot be raised"
    } else if !is_zookeeper && options.once_per.is_some() {
        "--once-per leaves its mark in ZooKeeper; elsewhere, have the command look when it ran last"
    } else if !is_zookeeper && (options.universal || options.acl.is_some()) {
        "--universal and --acl are about znodes; a file's permissions say who may use it"
    } else {
        return Ok(place);
    };
    Err(Failure::new(lacks))
}
