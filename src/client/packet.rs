//! The size of a request on the wire, in bytes.

use super::Op;
use super::operations::acl_len;

/// The largest request that servers accept, unless their `jute.maxbuffer` says otherwise. They close a
/// connection that sends a larger one.
pub(crate) const USUAL_MOST: usize = 0xf_ffff;

/// The request's number and type.
const HEADER: usize = 8;
/// The header before each operation of a transaction, and after the last one.
const OP_HEADER: usize = 9;
/// A version, the length of a string, a number of things.
const INT: usize = 4;

/// One operation as a separate request.
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
