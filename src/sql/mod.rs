//! Stores that are SQL databases: what they keep in which tables. One file for each database says how it is reached, which
//! clock it has, and what its errors mean.

pub(crate) mod sqlite;

use crate::lock::Kind;

/// The names of the tables begin with it: they may lie among others.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS zklock_meta (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS zklock_session (
    id TEXT PRIMARY KEY NOT NULL,
    lease INTEGER NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS zklock_session_expires ON zklock_session (expires);
CREATE TABLE IF NOT EXISTS zklock_claim (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    lock TEXT NOT NULL,
    kind INTEGER NOT NULL,
    permits INTEGER NOT NULL,
    since INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    thread TEXT NOT NULL,
    label TEXT NOT NULL,
    asked TEXT,
    grace INTEGER
);
CREATE INDEX IF NOT EXISTS zklock_claim_lock ON zklock_claim (lock, number);
CREATE INDEX IF NOT EXISTS zklock_claim_session ON zklock_claim (session);
CREATE INDEX IF NOT EXISTS zklock_claim_asked ON zklock_claim (session)
    WHERE asked IS NOT NULL OR grace IS NOT NULL;
CREATE TABLE IF NOT EXISTS zklock_limit (
    lock TEXT PRIMARY KEY NOT NULL,
    permits INTEGER NOT NULL
) WITHOUT ROWID;
";

/// What the tables are like: a database that says another is left alone.
const VERSION: &str = "1";

/// A kind, in two columns.
fn columns_of(kind: Kind) -> (i64, u32) {
    match kind {
        // Of these two there is none here: they are refused before.
        Kind::Exclusive | Kind::Upgradeable | Kind::Upgrade => (0, 0),
        Kind::Write => (1, 0),
        Kind::Read => (2, 0),
        Kind::Permits(number) => (3, number),
    }
}

/// From two columns; what is not known holds alone.
fn kind_of(kind: i64, permits: u32) -> Kind {
    match kind {
        1 => Kind::Write,
        2 => Kind::Read,
        3 => Kind::Permits(permits),
        _ => Kind::Exclusive,
    }
}
