//! What a transaction has created: its reply tells paths, and under which czxid they stand has to be read.

use crate::client::TrustedSession;
use crate::error::{Code, Error, Result};
use crate::znode::Stat;

/// The stat of a claim that a transaction has created at that path with that data. Its czxid is that of all claims of the
/// transaction.
///
/// If the directory was recreated, another claim may have that name by now, even one of this session. So the data is
/// compared, which carries a uuid. Without certainty the outcome is unknown: then the claims are looked up.
pub(crate) async fn created(session: &TrustedSession, path: &str, data: &[u8]) -> Result<Stat> {
    let unknown = || Error::new("create", path, Code::OPERATION_TIMEOUT);
    match session.get(path).await {
        Ok(found) if found.stat.ephemeral_owner == session.id() && found.data == data => {
            Ok(found.stat)
        }
        // A look-up could not read it either, so its owner has to do.
        Err(error) if error.code() == Code::NO_AUTH => {
            let stat = session.exists(path).await.ok().flatten();
            stat.filter(|stat| stat.ephemeral_owner == session.id()).ok_or_else(unknown)
        }
        Ok(_) | Err(_) => Err(unknown()),
    }
}
