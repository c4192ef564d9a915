//! What is known of each bug, in a file that outlives the run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::{Outcome, suite};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// It does not compile.
    NotBuilt,
    /// No test comes by.
    Unreached,
    /// A test failed.
    Found { by: String, seconds: f64 },
    /// A test did not end.
    Hangs { by: String, seconds: f64 },
    /// All tests that come by passed.
    Survived { tests: usize, seconds: f64 },
    /// The time was over before all of them had run.
    Undecided { seconds: f64 },
}

impl Verdict {
    pub fn is_found(&self) -> bool {
        matches!(self, Verdict::Found { .. } | Verdict::Hangs { .. })
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    verdict: Verdict,
}

pub struct Results {
    file: PathBuf,
    verdicts: BTreeMap<String, Verdict>,
}

impl Results {
    pub fn open(place: &Path) -> Outcome<Results> {
        fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
        let file = place.join("verdicts.jsonl");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let verdicts = lines.map(|line| (line.key, line.verdict)).collect();
        Ok(Results { file, verdicts })
    }

    pub fn record(&mut self, key: &str, verdict: Verdict) -> Outcome {
        let key = key.to_owned();
        suite::append(&self.file, &Line { key: key.clone(), verdict: verdict.clone() })?;
        self.verdicts.insert(key, verdict);
        Ok(())
    }

    pub fn of(&self, mutant: &Mutant) -> Option<&Verdict> {
        self.verdicts.get(&mutant.key)
    }

    /// Whether the compiler has not refused it.
    pub fn may_build(&self, mutant: &Mutant) -> bool {
        !matches!(self.of(mutant), Some(Verdict::NotBuilt))
    }

    /// Whether it is to be judged.
    pub fn is_wanted(&self, mutant: &Mutant, again: bool) -> bool {
        match self.of(mutant) {
            None => true,
            Some(Verdict::NotBuilt) => false,
            Some(verdict) => again && !verdict.is_found(),
        }
    }
}
