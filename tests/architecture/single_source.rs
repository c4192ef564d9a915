//! What is written in two places says the same in both.

use super::tree::text_of;

/// The value of the first `key = "value"` line of Cargo.toml.
fn manifest(key: &str) -> String {
    let text = text_of("Cargo.toml");
    let line = text.lines().find(|line| line.split('=').next().is_some_and(|k| k.trim() == key));
    let value = line.and_then(|line| line.split('"').nth(1));
    value.unwrap_or_else(|| panic!("Cargo.toml: no {key}")).to_owned()
}

/// The first fenced block whose fence `is_rust` accepts, without the lines rustdoc hides.
fn first_example(markdown: &str, is_rust: fn(&str) -> bool) -> Option<String> {
    let mut lines = markdown.lines();
    while let Some(fence) = lines.by_ref().find_map(|line| line.trim_start().strip_prefix("```")) {
        let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        if is_rust(fence.trim()) {
            let shown = block.iter().map(|line| line.trim_end());
            let shown =
                shown.filter(|line| line.trim() != "#" && !line.trim_start().starts_with("# "));
            return Some(shown.collect::<Vec<_>>().join("\n").trim().to_owned());
        }
    }
    None
}

/// In crate docs a fence without a language is Rust; elsewhere it says so.
fn is_doctest(fence: &str) -> bool {
    fence.split([',', ' ']).all(|word| ["", "rust", "no_run", "should_panic"].contains(&word))
}

fn is_rust(fence: &str) -> bool {
    fence.split([',', ' ']).next() == Some("rust")
}

#[test]
fn the_changelog_names_the_version() {
    let changelog = text_of("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or("nothing");
    let name = newest.split([']', ' ']).next().unwrap_or_default().trim_start_matches('[');
    let version = manifest("version");
    assert!(name == "Unreleased" || name == version, "newest is {newest}, the version {version}");
}

#[test]
fn every_version_is_that_of_the_workspace() {
    let version = manifest("version");
    let manifests = text_of("Cargo.toml") + &text_of("crates/zklock-cli/Cargo.toml");
    let own: Vec<&str> = manifests
        .lines()
        .filter(|line| line.contains("path = ") && line.contains("version = "))
        .collect();
    assert!(own.len() > 2, "{own:?}");
    for line in own {
        assert!(line.contains(&format!("version = \"{version}\"")), "{line}");
    }
    for member in
        ["zookeeper-sys/Cargo.toml", "tests/server/Cargo.toml", "crates/zklock-cli/Cargo.toml"]
    {
        assert!(text_of(member).contains("version.workspace = true"), "{member}");
    }
    let numbers: Vec<&str> = version.split('.').collect();
    let abi = if numbers[0] == "0" { format!("0.{}", numbers[1]) } else { numbers[0].to_owned() };
    let symbols = text_of("packaging/debian/symbols");
    assert!(symbols.starts_with(&format!("libzklock.so.{abi} libzklock{abi} ")), "{abi}");
}

#[test]
fn the_readmes_name_the_oldest_rust() {
    for readme in ["README.md", "tests/server/README.md", "crates/zklock-cli/README.md"] {
        assert_names_the_oldest_rust(readme);
    }
}

fn assert_names_the_oldest_rust(path: &str) {
    let readme = text_of(path);
    let named: Vec<&str> = readme
        .match_indices("Rust 1.")
        .map(|(at, _)| {
            let version = &readme[at + "Rust ".len()..];
            let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
            version[..end.unwrap_or(version.len())].trim_end_matches('.')
        })
        .collect();
    let oldest = manifest("rust-version");
    assert!(!named.is_empty(), "{path} does not say `Rust {oldest}`");
    assert!(named.iter().all(|version| *version == oldest), "{path}: {named:?}, not {oldest}");
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = text_of("README.md");
    for command in ["make lock-test", "make test"] {
        assert!(readme.contains(command), "README.md does not name `{command}`");
    }
}

#[test]
fn the_readme_shows_the_example_of_the_crate_docs() {
    let lib = text_of("src/lib.rs");
    let docs: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let compiled = first_example(&docs.join("\n"), is_doctest).expect("an example in src/lib.rs");
    let shown = first_example(&text_of("README.md"), is_rust).expect("an example in README.md");
    assert_eq!(shown, compiled, "README.md (left) differs from src/lib.rs (right)");
}

#[test]
fn examples_are_compared_without_hidden_lines_and_fences() {
    let docs = "```text\nno\n```\n```no_run\n# fn main() {\nlet a = 1;\n#\n\n#[x]\n# }\n```\n";
    let readme = "```sh\nmake\n```\n```rust\nlet a = 1;\n\n#[x]\n```\n";
    assert_eq!(first_example(docs, is_doctest).as_deref(), Some("let a = 1;\n\n#[x]"));
    assert_eq!(first_example(docs, is_doctest), first_example(readme, is_rust));
    assert_eq!(first_example("```c\nx\n```", is_rust), None);
}

#[test]
fn the_table_of_the_c_clients_functions_has_all_of_them() {
    let (bindings, table) = (text_of("zookeeper-sys/src/bindings.rs"), text_of("docs/c-client.md"));
    let named = bindings.lines().filter_map(|line| line.trim().strip_prefix("pub fn "));
    let named = named.map(|line| line.split('(').next().unwrap_or_default());
    let ours = ["zoo", "zookeeper", "zerror", "is_unrecoverable"];
    let functions: Vec<&str> =
        named.filter(|name| ours.iter().any(|begin| name.starts_with(begin))).collect();
    assert!(functions.len() > 50, "{functions:?}");
    for function in functions {
        assert!(table.contains(&format!("`{function}`")), "{function} is missing");
    }
}
