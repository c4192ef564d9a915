//! A znode's stat, for the program.

use zookeeper_sys as sys;

use crate::znode::Stat;

pub(super) fn for_c(stat: &Stat) -> sys::Stat {
    sys::Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeralOwner: stat.ephemeral_owner,
        dataLength: stat.data_length,
        numChildren: stat.num_children,
        pzxid: stat.pzxid,
    }
}
