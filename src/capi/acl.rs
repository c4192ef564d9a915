//! The program's access control lists, copied.

use std::ffi::c_char;

use zookeeper_sys as sys;

use super::boundary::{self, Failure};
use crate::error::Code;
use crate::znode::{Acl, Permissions};

/// A copy of an ACL in the C client's form.
///
/// # Safety
/// `vector` points to an ACL vector of `count` entries. Their strings are null or NUL-terminated. All of
/// it stays unchanged during the call.
pub(super) unsafe fn copy(
    function: &'static str,
    vector: &sys::ACL_vector,
) -> Result<Vec<Acl>, Failure> {
    let malformed =
        |why: &str| Failure::new(Code::INVALID_ACL.as_raw(), format!("{function}: the acl {why}"));
    let count = usize::try_from(vector.count).map_err(|_| malformed("has a negative count"))?;
    if count == 0 || vector.data.is_null() {
        return Err(malformed("is empty"));
    }
    // SAFETY: not null, and the caller promises `count` entries.
    let entries = unsafe { std::slice::from_raw_parts(vector.data, count) };
    let name = |name: &str, pointer: *mut c_char| {
        // SAFETY: the caller promises null or a NUL-terminated string.
        unsafe { boundary::text(function, name, pointer) }.map(str::to_owned)
    };
    let copy = |entry: &sys::ACL| {
        let permissions = Permissions::from_bits(entry.perms)
            .filter(|permissions| !permissions.is_empty())
            .ok_or_else(|| malformed("has permissions that there are not"))?;
        let scheme = name("the scheme in the acl", entry.id.scheme)?;
        Ok(Acl { permissions, scheme, id: name("the id in the acl", entry.id.id)? })
    };
    entries.iter().map(copy).collect()
}
