//! The memory of a multi, which the C client writes to until its completion ran.
//!
//! Only create (persistent and ephemeral, with or without a sequence number), delete, set and
//! check go in: containers and TTL nodes make the C client return garbage.

use std::ffi::{CString, c_char, c_int};

use super::convert::{self, AclVector};
use super::sys;
use crate::error::Code;
use crate::znode::{Acl, Stat};

#[cfg(all(test, not(zklock_loom)))]
#[path = "../../tests/inside/properties/raw_multi.rs"]
mod properties;

/// One operation of a multi. Paths have been checked: a bad one makes the C client abort.
pub(crate) enum RawOp<'a> {
    Create { path: &'a str, data: &'a [u8], acl: &'a [Acl], mode: c_int },
    Delete { path: &'a str, version: i32 },
    Set { path: &'a str, data: &'a [u8], version: i32 },
    Check { path: &'a str, version: i32 },
}

impl RawOp<'_> {
    /// How many bytes of path and data it has.
    pub(super) fn len(&self) -> usize {
        match self {
            RawOp::Create { path, data, .. } | RawOp::Set { path, data, .. } => {
                path.len() + data.len()
            }
            RawOp::Delete { path, .. } | RawOp::Check { path, .. } => path.len(),
        }
    }
}

/// How one operation of a multi ended.
#[derive(Clone, Debug)]
pub(crate) struct RawOpResult {
    pub(crate) code: Code,
    /// The path that a create made.
    pub(crate) path: Option<String>,
    /// The znode's stat after a set.
    pub(crate) stat: Option<Stat>,
}

/// Room for a sequence number: eleven characters, should the counter wrap, and the terminator.
const SEQUENCE_ROOM: usize = 12;

pub(super) struct MultiMemory {
    ops: Vec<sys::zoo_op_t>,
    results: Vec<sys::zoo_op_result_t>,
    /// The memory that `ops` points into: all of it on the heap, so that moving this value moves none of it.
    parts: Vec<Part>,
}

/// Operations and results, as C takes them.
pub(super) struct MultiPointers(c_int, *const sys::zoo_op_t, *mut sys::zoo_op_result_t);

// SAFETY: as `MultiMemory`, whose memory they lead to: its owner keeps it while they are used.
unsafe impl Send for MultiPointers {}

impl MultiPointers {
    pub(super) fn into_c(self) -> (c_int, *const sys::zoo_op_t, *mut sys::zoo_op_result_t) {
        (self.0, self.1, self.2)
    }
}

#[derive(Default)]
struct Part {
    _path: CString,
    _data: Vec<u8>,
    _acl: Option<(Vec<sys::ACL_vector>, AclVector)>,
    /// Receives the path of a create, NUL-terminated.
    created: Vec<c_char>,
    /// Receives the stat of a set.
    stat: Vec<sys::Stat>,
}

// SAFETY: the pointers lead only into heap memory that this value owns; the C client writes there
// from its own threads only before it runs the completion, and the slot table hands the value on
// only then or after the handle is closed.
unsafe impl Send for MultiMemory {}

#[cfg(zklock_loom)]
impl Drop for MultiMemory {
    fn drop(&mut self) {
        sys::is_freed(self.results.as_ptr());
    }
}

impl MultiMemory {
    pub(super) fn new(ops: &[RawOp<'_>]) -> Result<MultiMemory, Code> {
        let mut memory = MultiMemory {
            ops: Vec::with_capacity(ops.len()),
            results: Vec::with_capacity(ops.len()),
            parts: Vec::with_capacity(ops.len()),
        };
        for op in ops {
            memory.push(op)?;
        }
        Ok(memory)
    }

    fn push(&mut self, op: &RawOp<'_>) -> Result<(), Code> {
        // SAFETY: plain C data: all zeroes is a valid value of it.
        let mut c_op: sys::zoo_op_t = unsafe { std::mem::zeroed() };
        // SAFETY: as above. The C client leaves the results of a refused multi partly unwritten.
        let result: sys::zoo_op_result_t = unsafe { std::mem::zeroed() };
        let part = match *op {
            RawOp::Create { path, data, acl, mode } => {
                let path = convert::c_string(path)?;
                let len = convert::c_len(data.len())?;
                let data = data.to_vec();
                let entries = AclVector::new(acl)?;
                let acl = vec![entries.as_c()];
                let mut created = vec![0; path.as_bytes().len() + SEQUENCE_ROOM];
                let room = convert::c_len(created.len())?;
                // SAFETY: every pointer leads into memory that `part` owns; it is only stored.
                unsafe {
                    sys::zoo_create_op_init(
                        &mut c_op,
                        path.as_ptr(),
                        data.as_ptr().cast(),
                        len,
                        acl.as_ptr(),
                        mode,
                        created.as_mut_ptr(),
                        room,
                    )
                };
                let acl = Some((acl, entries));
                Part { _path: path, _data: data, _acl: acl, created, ..Part::default() }
            }
            RawOp::Delete { path, version } => {
                let path = convert::c_string(path)?;
                // SAFETY: as above.
                unsafe { sys::zoo_delete_op_init(&mut c_op, path.as_ptr(), version) };
                Part { _path: path, ..Part::default() }
            }
            RawOp::Set { path, data, version } => {
                let path = convert::c_string(path)?;
                let len = convert::c_len(data.len())?;
                let data = data.to_vec();
                // SAFETY: plain C data: all zeroes is a valid value of it.
                let mut stat: Vec<sys::Stat> = vec![unsafe { std::mem::zeroed() }];
                // SAFETY: every pointer leads into memory that `part` owns; it is only stored.
                unsafe {
                    sys::zoo_set_op_init(
                        &mut c_op,
                        path.as_ptr(),
                        data.as_ptr().cast(),
                        len,
                        version,
                        stat.as_mut_ptr(),
                    )
                };
                Part { _path: path, _data: data, stat, ..Part::default() }
            }
            RawOp::Check { path, version } => {
                let path = convert::c_string(path)?;
                // SAFETY: as above.
                unsafe { sys::zoo_check_op_init(&mut c_op, path.as_ptr(), version) };
                Part { _path: path, ..Part::default() }
            }
        };
        self.ops.push(c_op);
        self.results.push(result);
        self.parts.push(part);
        Ok(())
    }

    /// Pointers into memory that stays where it is until `self` is dropped.
    pub(super) fn as_c(&mut self) -> MultiPointers {
        let count = convert::c_len(self.ops.len()).unwrap_or(0);
        MultiPointers(count, self.ops.as_ptr(), self.results.as_mut_ptr())
    }

    /// The results that the C client wrote. `rc` is the transaction's code. If it is no server's verdict on
    /// one of the operations (a lost connection), it is an error here too. The C client writes such a code
    /// into every single result.
    pub(super) fn results(self, rc: Code) -> Result<Vec<RawOpResult>, Code> {
        let refused = self.results.iter().any(|result| result.err != 0);
        if rc != Code::OK && !(refused && rc.is_server_decision()) {
            return Err(rc);
        }
        let read = |(part, result): (&Part, &sys::zoo_op_result_t)| {
            let done = rc == Code::OK;
            let path = (done && !part.created.is_empty()).then(|| {
                // SAFETY: the buffer is ours, began as zeroes, and the C client ends what it
                // writes with a NUL within the length it was given.
                unsafe { convert::string(part.created.as_ptr()) }.unwrap_or_default()
            });
            let stat = part.stat.first().filter(|_| done).and_then(|stat| {
                // SAFETY: the memory is ours and holds plain data.
                unsafe { convert::stat(stat) }
            });
            RawOpResult { code: Code::from_raw(result.err), path, stat }
        };
        Ok(self.parts.iter().zip(&self.results).map(read).collect())
    }
}
