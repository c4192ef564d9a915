//! Bugs made from the syntax of the code.
//!
//! Whatever does not compile is left out later, so this tries rather than understands: a function that
//! returns what a `Default` of its type is, a statement that is left out, another operator, a condition
//! that is turned round, an arm of a `match` that is missing.

mod returns;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use crate::Outcome;
use crate::mutant::Mutant;
use crate::spot::{Text, Texts};

/// What is mutated, from the checkout's root.
const SOURCES: [&str; 11] = [
    "crates/zklock-cli/src/run",
    "crates/zklock-cli/src/supervise",
    "src/capi",
    "src/client",
    "src/leased",
    "src/lock",
    "src/raw",
    "src/recipes",
    "src/redis",
    "src/sql",
    "src/zookeeper",
];

/// Modules that are part of no build but the tests'.
fn is_for_tests(item: &syn::ItemMod) -> bool {
    visit::is_for_tests(&item.attrs)
}

/// The sources with all bugs in them, and the bugs.
pub fn all(root: &Path) -> Outcome<(Texts, Vec<Mutant>)> {
    let mut texts = BTreeMap::new();
    let mut mutants = Vec::new();
    for source in SOURCES {
        // A module is a file beside its folder, or the folder's mod.rs.
        walk(root, &format!("{source}/mod.rs"), source, &mut texts, &mut mutants)?;
    }
    Ok((texts, mutants))
}

/// The numbers of `count` bugs of each folder that the seed draws.
pub fn draw<'a>(
    mutants: impl Iterator<Item = &'a Mutant>,
    count: usize,
    seed: u64,
) -> BTreeSet<u32> {
    let mut folders: BTreeMap<&str, BTreeSet<(u64, u32)>> = BTreeMap::new();
    for mutant in mutants {
        let mut hasher = DefaultHasher::new();
        (seed, mutant.name()).hash(&mut hasher);
        folders.entry(mutant.folder()).or_default().insert((hasher.finish(), mutant.number));
    }
    let drawn = folders.into_values().flat_map(|folder| folder.into_iter().take(count));
    drawn.map(|(_, number)| number).collect()
}

/// Mutates a file and the modules that it declares, which are in `folder`.
fn walk(
    root: &Path,
    file: &str,
    folder: &str,
    texts: &mut Texts,
    mutants: &mut Vec<Mutant>,
) -> Outcome {
    let complaint = |error: &dyn std::fmt::Display| format!("{file}: {error}");
    let text = fs::read_to_string(root.join(file)).map_err(|error| complaint(&error))?;
    let syntax = syn::parse_file(&text).map_err(|error| complaint(&error))?;
    let spots = visit::spots(file, &text, &syntax, mutants);
    texts.insert(file.to_owned(), Text::new(text, spots));
    for item in &syntax.items {
        let syn::Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_for_tests(module) {
            continue;
        }
        let name = &module.ident;
        let (beside, inside) = (format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs"));
        let file = if root.join(&beside).exists() { beside } else { inside };
        walk(root, &file, &format!("{folder}/{name}"), texts, mutants)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_with_all_bugs_in_it_can_be_read() {
        let (texts, mutants) = all(&crate::root().unwrap()).unwrap();
        assert!(mutants.len() > 500, "{}", mutants.len());
        for (file, text) in &texts {
            if let Err(error) = syn::parse_file(&text.with(&|_| true).0) {
                let at = error.span().start();
                panic!("{file}:{}:{}, with all bugs: {error}", at.line, at.column);
            }
        }
        assert!(!texts.keys().any(|file| file.contains("simulation")), "tests are not mutated");
    }
}
