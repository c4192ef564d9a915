//! One transaction, as a server has logged it.

use super::archive::Archive;

/// What a transaction did to the tree, as far as a lock is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `data` only of what is no claim.
    Create {
        path: String,
        ephemeral: bool,
        data: Vec<u8>,
    },
    Delete {
        path: String,
    },
    /// `version`: that of the data from then on.
    Set {
        path: String,
        data: Vec<u8>,
        version: i32,
    },
    /// Part of a transaction of several operations: the node was there.
    Check {
        path: String,
    },
    /// The session began, with this timeout in milliseconds.
    Open {
        timeout: i32,
    },
    /// The session is over, and with it all ephemeral nodes that it had: those of this list, and by
    /// older servers, which write none, those that one has to know.
    Close {
        paths: Vec<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub zxid: i64,
    pub session: i64,
    /// The wall clock of the leader when it prepared the transaction, in milliseconds.
    pub time: i64,
    pub kind: i32,
    /// None when the request failed.
    pub changes: Vec<Change>,
    /// Of all its bytes: tells whether two servers have logged the same. Of a refused transaction of several operations
    /// 0: the leader marks those before the refused one as failed as well, before or after it writes its own log.
    pub checksum: u32,
    /// What the leader made of the whole tree after it, in one number. Requests that failed have
    /// none, and servers before 3.6 write none.
    pub digest: Option<i64>,
}

pub const CREATE: i32 = 1;
pub const DELETE: i32 = 2;
pub const SET_DATA: i32 = 5;
pub const SET_ACL: i32 = 7;
pub const CHECK: i32 = 13;
pub const MULTI: i32 = 14;
pub const CREATE2: i32 = 15;
pub const RECONFIG: i32 = 16;
pub const CREATE_CONTAINER: i32 = 19;
pub const DELETE_CONTAINER: i32 = 20;
pub const CREATE_TTL: i32 = 21;
pub const CREATE_SESSION: i32 = -10;
pub const CLOSE_SESSION: i32 = -11;
pub const ERROR: i32 = -1;

impl Txn {
    /// Reads what stands between a transaction's length and its end mark.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8], checksum: u32) -> Result<Txn, String> {
        let mut archive = Archive::new(bytes);
        let mut txn = Txn::header(&mut archive, checksum).ok_or("its header is cut off")?;
        let what = |what: &str| format!("{:#x}, type {}: {what}", txn.zxid, txn.kind);
        txn.changes = match txn.kind {
            MULTI => {
                let changes =
                    multi(&mut archive).ok_or_else(|| what("its record can't be read"))?;
                if changes.is_empty() {
                    txn.checksum = 0;
                }
                changes
            }
            kind => {
                let change = change(kind, &mut archive).ok_or_else(|| what("can't be read"))?;
                change.into_iter().collect()
            }
        };
        // A version, which says how it is computed, and the number.
        txn.digest = archive.int().and_then(|_| archive.long());
        Ok(txn)
    }

    fn header(archive: &mut Archive, checksum: u32) -> Option<Txn> {
        let session = archive.long()?;
        let _cxid = archive.int()?;
        let (zxid, time, kind) = (archive.long()?, archive.long()?, archive.int()?);
        Some(Txn { zxid, session, time, kind, changes: Vec::new(), checksum, digest: None })
    }
}

/// `Some(None)` for a record that changes nothing of interest, `None` for one that can't be read.
fn change(kind: i32, archive: &mut Archive) -> Option<Option<Change>> {
    Some(Some(match kind {
        CREATE | CREATE2 | CREATE_CONTAINER | CREATE_TTL => {
            let path = archive.string()?;
            let data = archive.buffer()?;
            archive.acl()?;
            let ephemeral = matches!(kind, CREATE | CREATE2) && archive.boolean()?;
            // The parent's child version; for some the time to live.
            archive.int()?;
            if kind == CREATE_TTL {
                archive.long()?;
            }
            let data = if ephemeral { Vec::new() } else { data.to_vec() };
            Change::Create { path, ephemeral, data }
        }
        DELETE | DELETE_CONTAINER => Change::Delete { path: archive.string()? },
        SET_DATA | RECONFIG => {
            let (path, data) = (archive.string()?, archive.buffer()?.to_vec());
            Change::Set { path, data, version: archive.int()? }
        }
        CHECK => {
            let path = archive.string()?;
            archive.int()?;
            Change::Check { path }
        }
        CREATE_SESSION => Change::Open { timeout: archive.int()? },
        // Servers before 3.6 write no list.
        CLOSE_SESSION if archive.is_empty() => Change::Close { paths: Vec::new() },
        CLOSE_SESSION => {
            Change::Close { paths: archive.vector(Archive::string).unwrap_or_default() }
        }
        SET_ACL => {
            archive.string()?;
            archive.acl()?;
            archive.int()?;
            return Some(None);
        }
        ERROR => {
            archive.int()?;
            return Some(None);
        }
        _ => return None,
    }))
}

/// All operations, or none if one of them is an error: then the whole was refused.
fn multi(archive: &mut Archive) -> Option<Vec<Change>> {
    let parts = archive.vector(|part| Some((part.int()?, part.buffer()?)))?;
    if parts.iter().any(|(kind, _)| *kind == ERROR) {
        return Some(Vec::new());
    }
    let changes = parts.into_iter().map(|(kind, record)| change(kind, &mut Archive::new(record)));
    Some(changes.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}
