//! How much of a long test is run.

/// `some` in `make test`, `all` in `make test-all`, which sets `ZKLOCK_TEST`.
pub fn scaled<T>(some: T, all: T) -> T {
    if std::env::var("ZKLOCK_TEST").is_ok_and(|which| which == "all") { all } else { some }
}
