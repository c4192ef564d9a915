//! What `zklock doctor` has found.

use serde_json::{Value, json};

use crate::text::fold;

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

    /// For a terminal of that width.
    pub fn text(&self, width: usize) -> String {
        let lines = |text: &str, indent: usize| {
            fold(text, width.saturating_sub(indent)).join(&format!("\n{:indent$}", ""))
        };
        let (level, check) = (self.level.name(), self.check);
        let mut text = format!("{level:<8} {check:<9} {}\n", lines(&self.found, 19));
        if let Some(remedy) = &self.remedy {
            text += &format!("{:18} -> {}\n", "", lines(remedy, 22));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_folded_between_words_below_where_it_begins() {
        let finding = Finding::warning("server", "cannot connect to a:1: refused", "start it now");
        assert_eq!(
            finding.text(40),
            "warning  server    cannot connect to\n                   a:1: refused\n                   -> start it now\n"
        );
        assert_eq!(finding.text(usize::MAX).lines().count(), 2);
    }
}
