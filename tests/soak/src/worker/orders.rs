//! What a client process is told at its start, on its way through the environment.

use std::time::Duration;

use serde_json::{Value, json};

/// The variable that makes this program a client process.
pub const VARIABLE: &str = "ZKLOCK_SOAK_ORDERS";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// Unlike all processes before it.
    pub process: u32,
    /// The process that it dies with.
    pub parent: i32,
    pub hosts: String,
    pub journal: String,
    pub sessions: u16,
    pub locks_of_each: u16,
    pub session_timeout: Duration,
    pub seed: u64,
}

impl Orders {
    pub fn encode(&self) -> String {
        json!({
            "process": self.process,
            "parent": self.parent,
            "hosts": self.hosts,
            "journal": self.journal,
            "sessions": self.sessions,
            "locks_of_each": self.locks_of_each,
            "session_timeout_ms": self.session_timeout.as_millis() as u64,
            "seed": self.seed,
        })
        .to_string()
    }

    /// The orders, if this is a client process.
    pub fn received() -> Option<Orders> {
        Orders::decode(&std::env::var(VARIABLE).ok()?)
    }

    fn decode(text: &str) -> Option<Orders> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |key: &str| Some(value[key].as_str()?.to_owned());
        let number = |key: &str| value[key].as_u64();
        Some(Orders {
            process: u32::try_from(number("process")?).ok()?,
            parent: i32::try_from(number("parent")?).ok()?,
            hosts: text("hosts")?,
            journal: text("journal")?,
            sessions: u16::try_from(number("sessions")?).ok()?,
            locks_of_each: u16::try_from(number("locks_of_each")?).ok()?,
            session_timeout: Duration::from_millis(number("session_timeout_ms")?),
            seed: number("seed")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_arrive_as_they_were_given() {
        let orders = Orders {
            process: 9,
            parent: 77,
            hosts: "127.0.0.1:1,127.0.0.1:2".to_owned(),
            journal: "/tmp/a b".to_owned(),
            sessions: 8,
            locks_of_each: 3,
            session_timeout: Duration::from_millis(4_000),
            seed: u64::MAX,
        };
        assert_eq!(Orders::decode(&orders.encode()), Some(orders));
    }
}
