//! Bugs that are none: `equivalent.toml` says why.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Outcome;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    equivalent: Vec<Equivalent>,
}

/// Why some survivors change nothing that anybody could see.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    /// How the bug's name begins, up to the digest.
    pub mutant: String,
    pub why: String,
}

pub fn load(root: &Path) -> Outcome<Vec<Equivalent>> {
    let file = root.join("tests/mutants/equivalent.toml");
    let complaint = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(&file).map_err(|error| complaint(&error))?;
    let list: List = toml::from_str(&text).map_err(|error| complaint(&error))?;
    Ok(list.equivalent)
}
