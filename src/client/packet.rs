//! How many bytes a request takes on its way to a server.

use super::Op;
use super::operations::acl_len;

/// What servers take unless their `jute.maxbuffer` says otherwise. They close a connection on which
/// more comes.
pub(crate) const USUAL_MOST: usize = 0xf_ffff;

/// The request's number and type.
const HEADER: usize = 8;
/// The header before each operation of a transaction, and after the last one.
const OP_HEADER: usize = 9;
/// A version, the length of a string, a number of things.
const INT: usize = 4;

/// One operation as a request of its own.
pub(crate) fn alone(op: &Op) -> usize {
    HEADER + body(op)
}

/// Operations as a transaction.
pub(crate) fn together<'a>(ops: impl IntoIterator<Item = &'a Op>) -> usize {
    HEADER + OP_HEADER + ops.into_iter().map(|op| OP_HEADER + body(op)).sum::<usize>()
}

fn body(op: &Op) -> usize {
    INT + op.path().len()
        + match op {
            // Data, list, flags.
            Op::Create { data, acl, .. } => INT + data.len() + INT + acl_len(acl) + INT,
            Op::Set { data, .. } => INT + data.len() + INT,
            Op::Delete { .. } | Op::Check { .. } | Op::CheckHeld(_) => INT,
        }
}
