//! Locks by key: as many as there are keys, and nothing is left of those that nobody uses.

use std::fmt::Write as _;

use super::{Change, Lock};

/// Locks by key, all below one path: for short-lived locks on many things, an order or a user each.
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
/// A key is any bytes, text or not. Each has a lock of its own, a fair [`Lock`] with all that a lock can do, at the path
/// `key-` and the key below theirs: letters, digits, `_` and `-` as they are, other bytes as `%` and two hexadecimal
/// digits. Nothing but these locks belongs below the path.
///
/// [`Client::locks`](crate::Client::locks) makes them in ZooKeeper, [`Store::locks`](crate::Store::locks)
/// in any store.
///
/// # What is left
/// In other stores than ZooKeeper nothing. There, when the last one who holds a lock or waits for it lets go, or gives up, its znode is deleted, in the background.
/// Where that is lost with a connection, or a session times out, the znode is an empty container, which the servers
/// remove after a minute or so (servers older than 3.5 have none: there it stays). The client remembers of no more than
/// two thousand keys that are not in use.
///
/// # Cost
/// A lock that nobody else uses takes seven requests from the acquire to the end, of which the release waits for none but
/// its own: its znode is made and deleted each time. Where a few locks are used again and again,
/// [`Client::lock`](crate::Client::lock) does with two. In other stores it costs what any lock does.
///
/// # Permissions
/// As of [`Client::lock`](crate::Client::lock) in a queue, and `CREATE` and `DELETE` on the path. Without the latter, znodes are removed by the
/// servers, as above.
#[derive(Clone, Debug)]
pub struct KeyedLocks {
    above: Lock,
}

impl KeyedLocks {
    /// Those below the path of that lock.
    pub(crate) fn below(above: Lock) -> KeyedLocks {
        KeyedLocks { above }
    }

    /// Their path.
    pub fn path(&self) -> &str {
        self.above.path()
    }

    /// The lock of a key. Nothing is sent, and nothing is kept of it when it is dropped.
    ///
    /// A path and a key that make more than a megabyte together make it [`Unusable`](crate::LockError::Unusable). It
    /// stays a queue: with another [`Strategy`](crate::Strategy) it is another lock.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> Lock {
        let path = path_of(self.path(), key.as_ref());
        Lock::new(self.above.stored().with(Change::Key(path)))
    }
}

/// The path of a key's lock.
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
