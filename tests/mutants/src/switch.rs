//! Which mutant is on: the copy of the library that has the mutants in it gets this file as a module.
//!
//! `ZKLOCK_MUTANT` is the number of the one to switch on. `ZKLOCK_MUTANTS_REACHED` names a file to
//! which the number of each mutant goes that the program comes by.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

struct Switch {
    on: Option<u32>,
    reached: Option<std::path::PathBuf>,
}

static SWITCH: OnceLock<Switch> = OnceLock::new();
static SEEN: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// Whether the mutant with this number is on.
#[allow(dead_code)]
pub(crate) fn on(number: u32) -> bool {
    let switch = SWITCH.get_or_init(|| Switch {
        on: std::env::var("ZKLOCK_MUTANT").ok().and_then(|number| number.parse().ok()),
        reached: std::env::var_os("ZKLOCK_MUTANTS_REACHED").map(Into::into),
    });
    if let Some(file) = &switch.reached {
        let bit = 1 << (number % 64);
        let word = &SEEN[(number / 64) as usize];
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            note(file, number);
        }
    }
    switch.on == Some(number)
}

fn note(file: &std::path::Path, number: u32) {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    if let Ok(mut file) = file {
        // One write, so that processes side by side don't tear each other's lines.
        let _ = file.write_all(format!("{number}\n").as_bytes());
    }
}
