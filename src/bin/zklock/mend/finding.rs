//! What `zklock doctor` has found.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fine,
    Warning,
    Bad,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Fine => "fine",
            Level::Warning => "warning",
            Level::Bad => "bad",
        }
    }
}

/// All that is looked at.
pub const CHECKS: [&str; 10] = [
    "server", "ensemble", "version", "sessions", "session", "watches", "acl", "probe", "clock",
    "client",
];

#[derive(Clone, Debug)]
pub struct Finding {
    pub level: Level,
    /// Which check, for programs.
    pub check: &'static str,
    /// What was found, and what it means.
    pub found: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Finding {
    pub fn fine(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { level: Level::Fine, check, found: found.into(), remedy: None }
    }

    pub fn warning(check: &'static str, found: impl Into<String>, remedy: &str) -> Finding {
        let remedy = Some(remedy.to_owned());
        Finding { level: Level::Warning, check, found: found.into(), remedy }
    }

    pub fn bad(check: &'static str, found: impl Into<String>, remedy: &str) -> Finding {
        Finding { level: Level::Bad, ..Finding::warning(check, found, remedy) }
    }

    pub fn json(&self) -> Value {
        json!({
            "level": self.level.name(), "check": self.check, "found": self.found, "remedy": self.remedy,
        })
    }

    pub fn text(&self) -> String {
        let mut text = format!("{:<8} {:<9} {}\n", self.level.name(), self.check, self.found);
        if let Some(remedy) = &self.remedy {
            text += &format!("{:18} -> {remedy}\n", "");
        }
        text
    }
}
