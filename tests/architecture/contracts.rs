//! Each operation that the crate offers is part of a contract: one that runs over every store, or over every fault.

use super::tree::{assert_none, rust_files, text_of};

/// Types whose operations every store has: what is promised of them is written once for all, by `each_store!` and its
/// like.
const OF_EVERY_STORE: &[&str] =
    &["Election", "Guard", "Leadership", "Lock", "MultiLock", "ReentrantLock", "Semaphore"];

/// It has a row of the operation's name.
const RECIPES: &str = "tests/recipes/contract.rs";

/// Types whose contract is one file, which calls each operation.
const OF_ONE_FILE: &[(&str, &str)] = &[
    ("Barrier", RECIPES),
    ("Client", "tests/client/proofs.rs"),
    ("Counter", RECIPES),
    ("Delivery", RECIPES),
    ("DoubleBarrier", RECIPES),
    ("Entered", RECIPES),
    ("Group", RECIPES),
    ("Latch", RECIPES),
    ("Membership", RECIPES),
    ("WorkQueue", RECIPES),
];

/// Operations that are not part of their type's contract, the test file that calls each instead, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("Client::add_auth", "tests/client/auth.rs", "it reads and writes no znode"),
    ("Client::close", "tests/client/closing.rs", "it ends the session"),
    ("Client::connected", "tests/client/lazy.rs", "it asks no server"),
    ("Client::create_with_acl", "tests/client/auth.rs", "its request is that of create"),
    ("Client::delete_all", "tests/client/operations.rs", "its requests are those of delete"),
    ("Client::watch_children", "tests/client/changes.rs", "it repeats children_and_watch"),
    ("Client::watch_data", "tests/client/changes.rs", "it repeats get_and_watch"),
    ("ClientOptions::connect", "tests/support/src/bench.rs", "there is no session before it"),
    ("Guard::create", "tests/lock/guards.rs", "only ZooKeeper has it"),
    ("Guard::delete", "tests/lock/guards.rs", "only ZooKeeper has it"),
    ("Guard::multi", "tests/lock/guards.rs", "only ZooKeeper has it"),
    ("Guard::set", "tests/lock/guards.rs", "only ZooKeeper has it"),
    ("Store::close", "tests/lock/place.rs", "contracts call it by place.close()"),
    ("StoreOptions::connect", "tests/lock/place.rs", "each contract's store calls it"),
];

/// The operations of the public interface, as `Type::name`: what asks a store or waits for it.
fn operations() -> Vec<String> {
    let api = text_of("tests/public_api/api.txt");
    let streams: Vec<&str> = api
        .lines()
        .filter_map(|line| line.strip_prefix("pub type ")?.split_once(" = zklock::Updates<"))
        .map(|(name, _)| name)
        .collect();
    let is_operation = |output: &str| {
        let asks = ["Pending<", "Updates<", "WhileHeld<", "WheneverHeld<"];
        let name = output.strip_prefix("zklock::").unwrap_or_default();
        asks.iter().any(|ask| name.starts_with(ask))
            || streams.contains(&output)
            || output.contains("zklock::WhileHeldError<")
    };
    let methods = api.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("pub fn ")?.split_once('(')?;
        let mut depth = 1;
        let arguments = rest.find(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        })?;
        let output = rest[arguments..].strip_prefix(") -> ")?;
        let name = name.split('<').next()?.strip_prefix("zklock::")?;
        let name = name.strip_prefix("recipes::").unwrap_or(name);
        (is_operation(output) && name.contains("::")).then(|| name.to_owned())
    });
    methods.collect()
}

/// A source without the lines that are comments.
fn code_of(source: &str) -> String {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// What the macros that run a contract over all stores are called with.
fn contracts_of_every_store() -> String {
    let mut contracts = String::new();
    for (path, source) in rust_files() {
        if !path.starts_with("tests/lock/") {
            continue;
        }
        let code = code_of(&source);
        for call in ["each_store! {", "each_queue! {", "each_that_upgrades! {"] {
            for (at, _) in code.match_indices(call) {
                // They are items, which end at a brace in the first column.
                let block = &code[at..];
                contracts.push_str(&block[..block.find("\n}").unwrap_or(block.len())]);
            }
        }
    }
    contracts
}

#[test]
fn every_operation_has_a_row_in_the_contract_of_its_type() {
    let of_every_store = contracts_of_every_store();
    let mut complaints = Vec::new();
    let operations = operations();
    for known in
        ["Counter::add", "Election::lead", "Group::watch_members", "Lock::while_held_blocking"]
    {
        assert!(operations.iter().any(|one| one == known), "{known} is an operation");
    }
    for operation in operations {
        let (of, name) = operation.rsplit_once("::").unwrap_or_default();
        let calls = |code: &str| {
            code.contains(&format!(".{name}(")) || code.contains(&format!("{of}::{name}("))
        };
        let calls_in = |file: &str| calls(&code_of(&text_of(file)));
        let has_row = match OF_ONE_FILE.iter().find(|(one, _)| *one == of) {
            Some((_, file)) => {
                calls_in(file)
                    && (*file != RECIPES || text_of(file).contains(&format!("\"{operation}\"")))
            }
            None => OF_EVERY_STORE.contains(&of) && calls(&of_every_store),
        };
        match EXCEPTIONS.iter().find(|(excepted, ..)| *excepted == operation) {
            None if !has_row => {
                complaints.push(format!("{operation}: no contract has a row for it"))
            }
            Some(_) if has_row => {
                complaints.push(format!("{operation}: it has a row, and is excepted"))
            }
            Some((_, file, _)) if !calls_in(file) => {
                complaints.push(format!("{operation}: {file} does not call it"))
            }
            _ => {}
        }
    }
    assert_none(&complaints);
}
