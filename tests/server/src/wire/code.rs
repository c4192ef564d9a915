//! ZooKeeper's error codes, as far as this crate meets them.

pub(crate) const NO_NODE: i32 = -101;
pub(crate) const NODE_EXISTS: i32 = -110;

/// What an error code means; `None` for one that a test with this crate will hardly see.
pub(crate) fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        -6 => "not implemented",
        -8 => "bad arguments",
        NO_NODE => "no node",
        -102 => "not authorized",
        -103 => "bad version",
        -108 => "ephemeral nodes may not have children",
        NODE_EXISTS => "node exists",
        -111 => "node has children",
        -112 => "session expired",
        -118 => "session moved",
        _ => return None,
    })
}

/// A code with its meaning: `node exists (-110)`.
pub(crate) fn told(code: i32) -> String {
    match meaning(code) {
        Some(meaning) => format!("{meaning} ({code})"),
        None => format!("error {code}"),
    }
}
