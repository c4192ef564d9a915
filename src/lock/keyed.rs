//! Locks by key: as many as there are keys, and nothing is left of those that nobody uses.

use std::fmt::Write as _;

use super::{Change, Lock};

/// Locks by key, all below one path: for short-lived locks on many things, such as one for each order or user.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
/// let orders = zk.locks("/orders");
/// let guard = orders.lock("2026/4711").acquire().wait()?; // or .await
/// // ... the order is ours ...
/// guard.release().wait()?; // nothing is left of it on the servers
/// # Ok(()) }
/// ```
///
/// A key is any bytes. Each key has its own fair [`Lock`], at `key-` and the key below the path: letters, digits, `_`
/// and `-` stay, and other bytes become `%` and two hexadecimal digits. Keep other znodes away from that path.
///
/// [`Client::locks`](crate::Client::locks) makes them in ZooKeeper, [`Store::locks`](crate::Store::locks) in any store.
///
/// # What is left
/// Other stores than ZooKeeper keep nothing. In ZooKeeper, the last client that releases a lock or stops waiting for it
/// deletes the znode in the background. This fails if a connection is lost or a session times out. Then an empty
/// container remains, and the servers delete it after about a minute. (Servers before 3.5 have no containers; there the
/// znode remains.) The client remembers at most two thousand unused keys.
///
/// # Cost
/// An uncontended lock takes five requests in all, because its znode is created and deleted each time. The release
/// waits only for its own request. For a few locks that are used again and again, [`Client::lock`](crate::Client::lock)
/// takes two. In other stores it costs the same as any lock.
///
/// # Permissions
/// As of [`Client::lock`](crate::Client::lock) in a queue, and `CREATE` and `DELETE` on the path. Without `DELETE`, the
/// servers delete the znodes, as above.
#[derive(Clone, Debug)]
pub struct KeyedLocks {
    above: Lock,
}

impl KeyedLocks {
    pub(crate) fn below(above: Lock) -> KeyedLocks {
        KeyedLocks { above }
    }

    /// Their path.
    pub fn path(&self) -> &str {
        self.above.path()
    }

    /// The lock of a key. Sends nothing, and keeps nothing once it is dropped.
    ///
    /// A path and a key that together exceed a megabyte make it [`Unusable`](crate::LockError::Unusable). It must stay
    /// a queue: with another [`Strategy`](crate::Strategy) it is another lock.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        let path = path_of(self.path(), key.as_ref());
        Lock::new(self.above.stored().with(Change::Key(path)))
    }
}

fn path_of(above: &str, key: &[u8]) -> String {
    let above = above.trim_end_matches('/');
    let mut path = String::with_capacity(above.len() + key.len() + 5);
    path.push_str(above);
    path.push_str("/key-");
    for byte in key {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => path.push(char::from(*byte)),
            // Writing to a string does not fail.
            _ => drop(write!(path, "%{byte:02x}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_path_of_its_own_that_servers_take() {
        for (key, path) in [
            (b"2026-4711".as_slice(), "/orders/key-2026-4711"),
            (b"2026/4711", "/orders/key-2026%2f4711"),
            (b"", "/orders/key-"),
            (b".", "/orders/key-%2e"),
            (b"%2f", "/orders/key-%252f"),
            (b"\x00\xff", "/orders/key-%00%ff"),
            ("ä".as_bytes(), "/orders/key-%c3%a4"),
        ] {
            assert_eq!(path_of("/orders", key), path);
            assert_eq!(crate::path::validate(path), Ok(()));
        }
        assert_eq!(path_of("/", b"a"), "/key-a");
        let keys = (0..=u16::MAX).map(u16::to_be_bytes);
        let paths: std::collections::HashSet<_> =
            keys.map(|key| path_of("/orders", &key)).collect();
        assert_eq!(paths.len(), 1 << 16);
    }
}
