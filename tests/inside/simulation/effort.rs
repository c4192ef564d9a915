//! How much to simulate, and what to repeat: from the environment.

use std::str::FromStr;

fn read<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => panic!("{name}={text} can't be read"),
    }
}

/// How many random schedules: `ZKLOCK_SCHEDULES`.
pub(super) fn schedules() -> u64 {
    read("ZKLOCK_SCHEDULES").unwrap_or(match read::<String>("ZKLOCK_TEST").as_deref() {
        Some("all") => 3_000,
        Some("quick") => 250,
        _ => 1_000,
    })
}

/// Whether this is `make test-all`, or a long run.
pub(super) fn is_everything() -> bool {
    is_long() || read::<String>("ZKLOCK_TEST").is_some_and(|which| which == "all")
}

/// The seed of the first: `ZKLOCK_FIRST_SEED`.
pub(super) fn first_seed() -> u64 {
    read("ZKLOCK_FIRST_SEED").unwrap_or(0)
}

/// Whether this is a long run, which shows how it gets on: when `ZKLOCK_SCHEDULES` is set.
pub(super) fn is_long() -> bool {
    read::<u64>("ZKLOCK_SCHEDULES").is_some()
}

/// One seed to repeat: `ZKLOCK_SEED`.
pub(super) fn seed() -> Option<u64> {
    read("ZKLOCK_SEED")
}

/// One schedule of a scenario to repeat: `ZKLOCK_SCENARIO` and `ZKLOCK_CHOICES`.
pub(super) fn choices() -> Option<(String, Vec<usize>)> {
    let choices: String = read("ZKLOCK_CHOICES").unwrap_or_default();
    let number =
        |text: &str| text.parse().unwrap_or_else(|_| panic!("a choice is a number: {text}"));
    let choices = choices.split(',').filter(|text| !text.is_empty()).map(number).collect();
    Some((read("ZKLOCK_SCENARIO")?, choices))
}
