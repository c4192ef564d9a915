//! The documents: links lead somewhere, also in the packages, and each block of code is compiled or tried by a test.

use std::collections::BTreeMap;
use std::path::Path;

use super::package::{PUBLISHED, packed, plain};
use super::tree::{assert_none, text_of, tree};

/// Everything that is not in a fenced block, and the blocks as (language, text).
fn split(markdown: &str) -> (String, Vec<(String, String)>) {
    let (mut prose, mut blocks, mut open) = (String::new(), Vec::new(), None);
    for line in markdown.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => *block += &format!("{line}\n"),
            (None, None) => prose += &format!("{line}\n"),
        }
    }
    (prose, blocks)
}

/// The targets of the links and pictures.
fn links(prose: &str) -> Vec<&str> {
    let ends = prose.split("](").skip(1);
    ends.filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

/// The anchors of the headings, as GitHub makes them.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = split(markdown).0;
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    titles.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

fn documents() -> Vec<(String, String)> {
    tree().into_iter().filter(|(path, _)| path.ends_with(".md")).collect()
}

/// What is wrong with a link of a document.
fn fault_of(link: &str, document: &str, packages: &BTreeMap<&str, Vec<String>>) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let directory = Path::new(document).parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { document.into() } else { plain(&directory.join(file)) };
    if !Path::new(env!("CARGO_MANIFEST_DIR")).join(&target).exists() {
        return Some("does not exist".to_owned());
    }
    for files in packages.values() {
        if files.iter().any(|file| file == document) && !files.contains(&target) {
            return Some("is not in the package of the document".to_owned());
        }
    }
    let is_anchor = anchor.is_empty() || anchors(&text_of(&target)).iter().any(|a| a == anchor);
    (!is_anchor).then(|| "no such heading".to_owned())
}

#[test]
fn each_link_leads_somewhere_also_in_a_package() {
    let files = |directory| packed(directory).iter().map(|f| format!("{directory}{f}")).collect();
    let packages: BTreeMap<&str, Vec<String>> =
        PUBLISHED.iter().map(|(directory, _)| (*directory, files(directory))).collect();
    let mut complaints = Vec::new();
    for (path, text) in documents() {
        for link in links(&split(&text).0) {
            let is_elsewhere = link.contains("://") || link.starts_with("crate::");
            let fault = if is_elsewhere { None } else { fault_of(link, &path, &packages) };
            complaints.extend(fault.map(|fault| format!("{path}: {link}: {fault}")));
        }
    }
    assert_none(&complaints);
}

/// The words that follow `word` in a shell line, each up to a space.
fn after<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let words: Vec<&str> = line.split(" #").next().unwrap_or_default().split_whitespace().collect();
    let follows =
        words.windows(2).filter(|two| two[0] == word).map(|two| two[1]).collect::<Vec<_>>();
    follows.into_iter()
}

#[test]
fn each_block_of_code_is_known_to_a_test() {
    let (crate_docs, makefile) = (text_of("src/lib.rs"), text_of("Makefile"));
    let mut complaints = Vec::new();
    for (path, text) in documents().iter().filter(|(path, _)| path.starts_with("docs/")) {
        for (language, block) in split(text).1 {
            let wrong = match language.split(',').next().unwrap_or_default() {
                "rust" if !crate_docs.contains(&format!("include_str!(\"../{path}\")")) => {
                    Some("src/lib.rs does not include it as a doctest".to_owned())
                }
                // tests/capi_header/compile.rs compiles c; the command's tests parse the lines of zklock.
                "sh" => {
                    let targets = block.lines().flat_map(|line| after(line, "make"));
                    let mut targets = targets.filter(|word| word.starts_with(char::is_lowercase));
                    let is_target = |name: &str| {
                        makefile.lines().any(|line| {
                            line.split_once(':')
                                .is_some_and(|(of, _)| of.split(' ').any(|t| t == name))
                        })
                    };
                    let is_program = |name: &str| name == "report";
                    targets
                        .find(|name| !is_target(name) && !is_program(name))
                        .map(|name| format!("no `make {name}`"))
                }
                "sql"
                    if !text_of("tests/lock/postgres.rs")
                        .contains(&format!("include_str!(\"../../{path}\")")) =>
                {
                    Some("tests/lock/postgres.rs does not execute it".to_owned())
                }
                "" if crate_docs.contains(&format!("include_str!(\"../{path}\")")) => {
                    Some("a block without a language is Rust to rustdoc: say `text`".to_owned())
                }
                "rust" | "" | "c" | "crontab" | "go" | "ini" | "java" | "python" | "sql"
                | "text" | "toml" | "yaml" => None,
                other => Some(format!("{other}: which test looks at it?")),
            };
            complaints.extend(wrong.map(|wrong| format!("{path}: {wrong}\n{block}")));
        }
    }
    assert_none(&complaints);
}

#[test]
fn links_and_anchors_are_found() {
    let (prose, blocks) =
        split("# A `b`: c-d\n[x](y.md#z) ![p](q.svg)\n```sh\nmake test [a](b)\n```\n");
    assert_eq!(links(&prose), ["y.md#z", "q.svg"]);
    assert_eq!(blocks, [("sh".to_owned(), "make test [a](b)\n".to_owned())]);
    assert_eq!(anchors(&prose), ["a-b-c-d"]);
    assert_eq!(after("nice make test # make it", "make").collect::<Vec<_>>(), ["test"]);
}
