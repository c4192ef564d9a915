//! What an acquire hands to the tenure.

use super::node::Node;
use super::succession::OwnWatch;
use crate::client::Hold;

/// What a tenure begins with.
pub(super) struct Acquired {
    pub(super) node: Node,
    pub(super) hold: Hold,
    /// The watch on the node, where there is one already.
    pub(super) watch: Option<OwnWatch>,
}
