//! Locks that are one key of Redis: `SET key value NX PX ttl`, and `DEL`.

use std::time::Duration;

use redis::{Client, Connection, RedisResult};

pub struct Key {
    client: Client,
    connection: Connection,
    ttl: Duration,
    /// How often its owner has locked it.
    holds: u32,
}

const KEY: &str = "lock";

impl Key {
    pub fn at(address: &str, ttl: Duration) -> Key {
        let client = Client::open(address).unwrap();
        let connection = client.get_connection().unwrap();
        Key { client, connection, ttl, holds: 0 }
    }

    fn set(&mut self) -> RedisResult<bool> {
        let mut set = redis::cmd("SET");
        set.arg(KEY)
            .arg("locked")
            .arg("NX")
            .arg("PX")
            .arg(u64::try_from(self.ttl.as_millis()).unwrap());
        let done: Option<String> = set.query(&mut self.connection)?;
        Ok(done.is_some())
    }

    /// Whether the key was free and is ours now. A command that has lost its connection is sent again.
    pub fn lock(&mut self) -> bool {
        self.set().unwrap_or_else(|_| {
            self.connection = self.client.get_connection().unwrap();
            self.set().unwrap()
        })
    }

    /// As `lock`; an owner that has the lock already counts on.
    pub fn lock_again(&mut self) -> bool {
        let locked = self.holds > 0 || self.lock();
        self.holds += u32::from(locked);
        locked
    }

    pub fn unlock(&mut self) {
        let _: i64 = redis::cmd("DEL").arg(KEY).query(&mut self.connection).unwrap();
    }

    /// As if its time had passed.
    pub fn expire(&mut self) {
        let _: i64 = redis::cmd("PEXPIRE").arg(KEY).arg("0").query(&mut self.connection).unwrap();
    }
}
