//! Bugs written by hand: `list/*.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Outcome;
use crate::mutant::{By, Mutant};
use crate::spot::{Text, Texts};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Planted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planted {
    name: String,
    /// What it does to users.
    why: String,
    file: String,
    find: String,
    /// What takes the place of `find`; `$on` in it is true if the bug is switched on.
    replace: String,
    found_by: Vec<String>,
}

/// The sources with all bugs of the list in them, and the bugs.
pub fn all(root: &Path) -> Outcome<(Texts, Vec<Mutant>)> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut mutants = Vec::new();
    let mut names = BTreeSet::new();
    for (number, planted) in (1..).zip(load(root)?) {
        let Planted { name, why, file, find, replace, found_by } = planted;
        let complaint = |what: &str| format!("tests/mutants/list: {name}: {what}");
        if !names.insert(name.clone()) {
            return Err(complaint("there are two of this name"));
        }
        if why.trim().is_empty() {
            return Err(complaint("it does not say why it matters"));
        }
        let found_by: Vec<_> = found_by.iter().filter_map(|by| By::parse(by)).collect();
        if found_by.is_empty() {
            return Err(complaint("it names no test that finds it, as `TARGET FILTER`"));
        }
        if !replace.contains("$on") {
            return Err(complaint("nothing in it is switched: `$on` is missing"));
        }
        let text = match texts.get_mut(&file) {
            Some(text) => text,
            None => {
                let text = fs::read_to_string(root.join(&file))
                    .map_err(|error| complaint(&format!("{file}: {error}")))?;
                texts.entry(file.clone()).or_insert(text)
            }
        };
        let find = find.trim_end_matches('\n');
        let found: Vec<_> = text.match_indices(find).map(|(at, _)| at).collect();
        let [at] = found[..] else {
            let times = found.len();
            return Err(complaint(&format!(
                "what it looks for is in {file} {times} times, not once"
            )));
        };
        let line = text[..at].matches('\n').count() + 1;
        let on = format!("crate::mutants::on({number})");
        text.replace_range(
            at..at + find.len(),
            replace.trim_end_matches('\n').replace("$on", &on).as_str(),
        );
        let place = name.clone();
        mutants.push(Mutant { number, key: name, file, line, place, what: why, found_by });
    }
    let texts = texts.into_iter().map(|(file, text)| (file, Text::fixed(text))).collect();
    Ok((texts, mutants))
}

fn load(root: &Path) -> Outcome<Vec<Planted>> {
    let folder = root.join("tests/mutants/list");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let complaint = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| complaint(&error))?;
        let list: List = toml::from_str(&text).map_err(|error| complaint(&error))?;
        all.extend(list.mutant);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_of_the_list_is_in_the_code_once_and_the_code_with_it_can_be_read() {
        let (texts, mutants) = all(&crate::root().unwrap()).unwrap();
        assert!(!mutants.is_empty());
        for (file, text) in &texts {
            if let Err(error) = syn::parse_file(&text.with(&|_| true).0) {
                let at = error.span().start();
                panic!(
                    "{file}:{}:{}, with the bugs of tests/mutants/list: {error}",
                    at.line, at.column
                );
            }
        }
    }
}
