//! Between C's values and ours. Everything is copied: no C pointer leaves this floor.
//!
//! If the C client has no memory for a part of a reply, it leaves that part null, leaves the rest of the reply
//! undefined, and reports success. Such a reply is `None` here: none of it is believed.

use std::ffi::{CStr, CString, c_char, c_int};

use super::sys;
use crate::error::Code;
use crate::znode::{Acl, Permissions, Stat};

/// # Safety
/// `stat` is null or points to a `Stat` that stays unchanged during the call.
pub(super) unsafe fn stat(stat: *const sys::Stat) -> Option<Stat> {
    // SAFETY: the caller keeps the promise above.
    let stat = unsafe { stat.as_ref() }?;
    Some(Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeralOwner,
        data_length: stat.dataLength,
        num_children: stat.numChildren,
        pzxid: stat.pzxid,
    })
}

/// A znode without data has a negative length.
///
/// # Safety
/// `value` is null or points to `len` bytes that stay unchanged during the call.
pub(super) unsafe fn bytes(value: *const c_char, len: c_int) -> Option<Vec<u8>> {
    match usize::try_from(len) {
        Err(_) => Some(Vec::new()),
        Ok(_) if value.is_null() => None,
        Ok(len) => {
            // SAFETY: not null, and the caller promises `len` bytes.
            Some(unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec())
        }
    }
}

/// # Safety
/// `string` is null or a NUL-terminated string that stays unchanged during the call.
pub(super) unsafe fn string(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises the terminator.
    let string = unsafe { CStr::from_ptr(string) };
    // Paths are UTF-8 by the server's rules; another client's odd bytes must not stop a listing.
    Some(string.to_string_lossy().into_owned())
}

/// # Safety
/// `vector` is null or points to a vector of `count` NUL-terminated strings that stay unchanged
/// during the call.
pub(super) unsafe fn strings(vector: *const sys::String_vector) -> Option<Vec<String>> {
    // SAFETY: the caller keeps the promise above.
    let vector = unsafe { vector.as_ref() }?;
    let count = usize::try_from(vector.count).unwrap_or(0);
    if count == 0 || vector.data.is_null() {
        return (count == 0).then(Vec::new);
    }
    // SAFETY: not null, and the caller promises `count` pointers.
    let pointers = unsafe { std::slice::from_raw_parts(vector.data, count) };
    // SAFETY: the caller promises NUL-terminated strings.
    pointers.iter().map(|&pointer| unsafe { string(pointer) }).collect()
}

/// # Safety
/// `vector` is null or points to a vector of `count` entries. Their strings are null or NUL-terminated.
/// All of it stays unchanged during the call.
pub(super) unsafe fn acl(vector: *const sys::ACL_vector) -> Option<Vec<Acl>> {
    // SAFETY: the caller keeps the promise above.
    let vector = unsafe { vector.as_ref() }?;
    let count = usize::try_from(vector.count).unwrap_or(0);
    if count == 0 || vector.data.is_null() {
        return (count == 0).then(Vec::new);
    }
    // SAFETY: not null, and the caller promises `count` entries.
    let entries = unsafe { std::slice::from_raw_parts(vector.data, count) };
    let decode = |entry: &sys::ACL| {
        // SAFETY: the caller promises a NUL-terminated string or null.
        let scheme = unsafe { string(entry.id.scheme) }?;
        // SAFETY: as above.
        let id = unsafe { string(entry.id.id) }?;
        Some(Acl { permissions: Permissions::from_bits_retain(entry.perms), scheme, id })
    };
    entries.iter().map(decode).collect()
}

/// An ACL in C's shape, alive as long as this value. The C client only reads it.
pub(super) enum AclVector {
    /// The usual one, which the C client has by itself.
    Open,
    Entries {
        entries: Vec<sys::ACL>,
        /// The memory that `entries` points into: strings, each with its NUL.
        _strings: Vec<u8>,
    },
}

// SAFETY: the pointers in `entries` lead only into `_strings`, which moves along and is never
// changed; nothing here is tied to a thread.
unsafe impl Send for AclVector {}

impl AclVector {
    /// Fails with `INVALID_ACL` for an empty list and `BAD_ARGUMENTS` for a NUL inside a name.
    pub(super) fn new(acl: &[Acl]) -> Result<AclVector, Code> {
        match acl {
            [] => return Err(Code::INVALID_ACL),
            [only] if only.is_open() => return Ok(AclVector::Open),
            _ => {}
        }
        let len = acl.iter().map(|entry| entry.scheme.len() + entry.id.len() + 2).sum();
        let mut strings: Vec<u8> = Vec::with_capacity(len);
        for text in acl.iter().flat_map(|entry| [&entry.scheme, &entry.id]) {
            if text.contains('\0') {
                return Err(Code::BAD_ARGUMENTS);
            }
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
        }
        let mut rest = strings.as_slice();
        let mut next = |text: &str| {
            let pointer = rest.as_ptr().cast::<c_char>().cast_mut();
            rest = &rest[text.len() + 1..];
            pointer
        };
        let entry = |entry: &Acl| {
            let id = sys::Id { scheme: next(&entry.scheme), id: next(&entry.id) };
            sys::ACL { perms: entry.permissions.bits(), id }
        };
        let entries = acl.iter().map(entry).collect();
        Ok(AclVector::Entries { entries, _strings: strings })
    }

    /// Points into `self`: valid while `self` is alive and not moved out of its vectors.
    pub(super) fn as_c(&self) -> sys::ACL_vector {
        match self {
            // SAFETY: the C client never changes it.
            AclVector::Open => unsafe { sys::ZOO_OPEN_ACL_UNSAFE },
            AclVector::Entries { entries, .. } => sys::ACL_vector {
                count: c_len(entries.len()).unwrap_or(0),
                data: entries.as_ptr().cast_mut(),
            },
        }
    }
}

/// `BAD_ARGUMENTS` for a NUL inside.
pub(super) fn c_string(text: &str) -> Result<CString, Code> {
    CString::new(text).map_err(|_| Code::BAD_ARGUMENTS)
}

/// Runs `body` with the text as a C string, on the stack unless it is long. `BAD_ARGUMENTS` if the text contains a NUL.
pub(super) fn with_c_string<T>(text: &str, body: impl FnOnce(&CStr) -> T) -> Result<T, Code> {
    let mut short = [0; 256];
    match short.get_mut(..=text.len()) {
        Some(bytes) => {
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            CStr::from_bytes_with_nul(bytes).map(body).map_err(|_| Code::BAD_ARGUMENTS)
        }
        None => c_string(text).map(|text| body(&text)),
    }
}

/// `BAD_ARGUMENTS` for a length that C's `int` can't hold.
pub(super) fn c_len(len: usize) -> Result<c_int, Code> {
    c_int::try_from(len).map_err(|_| Code::BAD_ARGUMENTS)
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn what_the_c_client_had_no_memory_for_is_no_reply() {
        let name = c"qn-0000000000".as_ptr().cast_mut();
        // SAFETY: null, or as long as it says.
        let data = |value, len| unsafe { bytes(value, len) };
        assert_eq!(data(std::ptr::null(), -1), Some(Vec::new()));
        assert_eq!(data(c"".as_ptr(), 0), Some(Vec::new()));
        assert_eq!(data(c"ab".as_ptr(), 2), Some(b"ab".to_vec()));
        assert_eq!(data(std::ptr::null(), 0), None);
        assert_eq!(data(std::ptr::null(), 2), None);

        let names = |names: &mut [*mut c_char]| {
            let vector =
                sys::String_vector { count: c_len(names.len())?, data: names.as_mut_ptr() };
            // SAFETY: as many as it says, null or strings that never go.
            unsafe { strings(&raw const vector) }.ok_or(Code::SYSTEM_ERROR)
        };
        assert_eq!(names(&mut []), Ok(Vec::new()));
        assert_eq!(names(&mut [name]), Ok(vec!["qn-0000000000".to_owned()]));
        assert_eq!(names(&mut [name, null_mut()]), Err(Code::SYSTEM_ERROR));
        let none = sys::String_vector { count: 2, data: null_mut() };
        // SAFETY: there is nothing behind it.
        assert_eq!(unsafe { strings(&raw const none) }, None);

        let entry = sys::ACL { perms: 31, id: sys::Id { scheme: name, id: null_mut() } };
        let list = sys::ACL_vector { count: 1, data: (&raw const entry).cast_mut() };
        // SAFETY: one entry, whose strings are null or never go.
        assert!(unsafe { acl(&raw const list) }.is_none());
    }
}
