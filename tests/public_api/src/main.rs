//! `zklock-public-api RUSTDOC.json LIST`: compares what rustdoc says that a crate offers with the list of it, and prints
//! what has come and gone. With `ZKLOCK_API_UPDATE` set it writes the list instead.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::{env, fs};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("public-api: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether they are the same.
fn run() -> Result<bool, Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [json, list] = &arguments[..] else {
        return Err("usage: zklock-public-api RUSTDOC.json LIST".into());
    };
    // What every type has is left out; what it is by derives and auto traits (Clone, Send) can be lost.
    let api = public_api::Builder::from_rustdoc_json(json).omit_blanket_impls(true).build()?;
    let now: String = api.items().map(|item| format!("{item}\n")).collect();
    if env::var_os("ZKLOCK_API_UPDATE").is_some() {
        fs::write(list, now)?;
        return Ok(true);
    }
    let listed = fs::read_to_string(list)?;
    let (old, new) = (lines(&listed), lines(&now));
    old.difference(&new).for_each(|line| println!("- {line}"));
    new.difference(&old).for_each(|line| println!("+ {line}"));
    Ok(old == new)
}

fn lines(list: &str) -> BTreeSet<&str> {
    list.lines().collect()
}
