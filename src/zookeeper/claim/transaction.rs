//! What a transaction has created: its reply tells paths, and under which czxid they stand has to be read.

use crate::client::{Op, TrustedSession};
use crate::error::{Code, Error, Result};
use crate::znode::Stat;

/// A claim that a transaction is to create.
pub(crate) struct First {
    data: Vec<u8>,
}

impl First {
    /// The first operation of the transaction.
    pub(crate) fn of(op: &Op) -> First {
        let Op::Create { data, .. } = op else { return First { data: Vec::new() } };
        First { data: data.clone() }
    }

    /// The stat of that claim, which the transaction has created at that path: its czxid is that of all that the transaction
    /// has created. By its name there may be another by now, also of this session, where its directory was deleted
    /// and recreated: so its data are looked at, which carry a uuid. Whatever is not certain is given as an unknown
    /// outcome: then the claims are to be looked up.
    pub(crate) async fn stat(&self, session: &TrustedSession, path: &str) -> Result<Stat> {
        let unknown = || Error::new("create", path, Code::OPERATION_TIMEOUT);
        match session.get(path).await {
            Ok(found) if found.stat.ephemeral_owner == session.id() && found.data == self.data => {
                Ok(found.stat)
            }
            // With an ACL that lets nobody read them, a look-up would not find them either: so its owner has to do.
            Err(error) if error.code() == Code::NO_AUTH => {
                let stat = session.exists(path).await.ok().flatten();
                stat.filter(|stat| stat.ephemeral_owner == session.id()).ok_or_else(unknown)
            }
            Ok(_) | Err(_) => Err(unknown()),
        }
    }
}
