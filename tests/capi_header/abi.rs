//! What compiled programs rely on stays: functions, codes and layouts may come, and none may go or change.

use std::collections::BTreeSet;
use std::fs;

use super::generate::path_of;

const KEPT: &str = "tests/capi_header/abi.txt";
const UPDATE: &str = "ZKLOCK_ABI_UPDATE=1 cargo test --features capi --test capi_header";

/// The text without comments, and with one space where there was white space.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        bare += before;
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    bare + rest
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a header promises, a line each: `header: declaration`, and the fields of a struct by their places.
fn promises(header: &str) -> BTreeSet<String> {
    let text = bare(&fs::read_to_string(path_of(&format!("include/{header}"))).unwrap());
    let mut promises = BTreeSet::new();
    let mut code = String::new();
    for line in text.lines() {
        match line.strip_prefix('#') {
            None => code += &format!("{line}\n"),
            Some(directive) => {
                let value = one_line(directive);
                // The initialisers grow with their structs.
                let changes = value.contains("_VERSION") || value.contains("_INIT ");
                if value.starts_with("define ZK") && !changes && value.split(' ').count() > 2 {
                    promises.insert(format!("{header}: {value}"));
                }
            }
        }
    }
    // What is between the braces of a struct is one declaration with what is before and after them.
    let (mut declaration, mut depth) = (String::new(), 0);
    for c in code.replace("extern \"C\" {", "").chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c != ';' || depth > 0 {
            declaration.push(c);
            continue;
        }
        let whole = one_line(&std::mem::take(&mut declaration));
        let whole = whole.trim_start_matches("} ");
        match (whole.split_once('{'), whole.rsplit_once('}')) {
            (Some((_, fields)), Some((before, name))) if whole.starts_with("typedef struct") => {
                let fields = fields.rsplit_once('}').map_or(before, |(fields, _)| fields);
                for (place, field) in fields.split(';').map(str::trim).enumerate() {
                    if !field.is_empty() {
                        promises.insert(format!("{header}: {} [{place}] {field}", name.trim()));
                    }
                }
            }
            _ if whole.is_empty() || whole.starts_with("static ") => {}
            _ => drop(promises.insert(format!("{header}: {whole}"))),
        }
    }
    promises
}

#[test]
fn what_programs_were_compiled_against_stays() {
    let headers = ["zklock.h", "zoo_lock.h", "zoo_queue.h"];
    let promises: BTreeSet<String> = headers.iter().flat_map(|header| promises(header)).collect();
    assert!(promises.len() > 80, "only {promises:#?}");
    let kept = fs::read_to_string(path_of(KEPT)).unwrap_or_default();
    let kept: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
    let broken: Vec<&String> = kept.difference(&promises).collect();
    assert!(broken.is_empty(), "programs rely on what is no more: {broken:#?}");
    if std::env::var_os("ZKLOCK_ABI_UPDATE").is_some() {
        let lines: Vec<String> = promises.into_iter().map(|line| line + "\n").collect();
        fs::write(path_of(KEPT), lines.concat()).unwrap();
        return;
    }
    let new: Vec<&String> = promises.difference(&kept).collect();
    assert!(new.is_empty(), "not yet promised to stay: {new:#?}\nto promise it: {UPDATE}");
}
