//! What is written in two places says the same in both.

use super::tree::text_of;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_changelog_names_the_version() {
    let changelog = text_of("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or("nothing");
    let name = newest.split([']', ' ']).next().unwrap_or_default().trim_start_matches('[');
    assert!(name == "Unreleased" || name == VERSION, "newest is {newest}, the version {VERSION}");
}

#[test]
fn every_version_is_that_of_the_workspace() {
    let manifests = text_of("Cargo.toml") + &text_of("crates/zklock-cli/Cargo.toml");
    let own: Vec<&str> = manifests
        .lines()
        .filter(|line| line.contains("path = ") && line.contains("version = "))
        .collect();
    assert!(own.len() > 2, "{own:?}");
    for line in own {
        assert!(line.contains(&format!("version = \"{VERSION}\"")), "{line}");
    }
    for member in
        ["zookeeper-sys/Cargo.toml", "tests/server/Cargo.toml", "crates/zklock-cli/Cargo.toml"]
    {
        assert!(text_of(member).contains("version.workspace = true"), "{member}");
    }
    let numbers: Vec<&str> = VERSION.split('.').collect();
    let abi = if numbers[0] == "0" { format!("0.{}", numbers[1]) } else { numbers[0].to_owned() };
    let symbols = text_of("packaging/debian/symbols");
    assert!(symbols.starts_with(&format!("libzklock.so.{abi} libzklock{abi} ")), "{abi}");
}

#[test]
fn the_readmes_name_the_oldest_rust() {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    for readme in ["README.md", "tests/server/README.md", "crates/zklock-cli/README.md"] {
        let text = text_of(readme);
        let named: Vec<&str> = text.split("Rust 1.").skip(1).collect();
        assert!(!named.is_empty(), "{readme} does not say `Rust {oldest}`");
        for rest in named {
            let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
            assert_eq!(format!("1.{minor}"), oldest, "{readme}");
        }
    }
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = text_of("README.md");
    for command in ["make lock-test", "make test"] {
        assert!(readme.contains(command), "README.md does not name `{command}`");
    }
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
