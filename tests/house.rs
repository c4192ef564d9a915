//! The rules of the house, read from the source text: imports go down only, unsafe lives in two
//! floors, files stay small, and what is written in two places says the same in both.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files outside `src/` that may hold unsafe code; in `tests/server` one more file may.
const UNSAFE_OUTSIDE_SRC: &[&str] = &["zookeeper-sys/"];

// ------------------------------------------------------------------ the tree

/// Every text file of the project as (path with `/` from the root, content).
fn tree() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths: Vec<String> = match listed {
        Ok(out) if out.status.success() => {
            let names = String::from_utf8_lossy(&out.stdout);
            names.lines().map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    if paths.is_empty() {
        walk(root, "", &mut paths);
    }
    paths.sort();
    // Binary files and files that are listed but deleted drop out here.
    paths
        .into_iter()
        .filter_map(|path| fs::read_to_string(root.join(&path)).ok().map(|text| (path, text)))
        .collect()
}

fn walk(root: &Path, under: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(under)).expect("a readable directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != "target" && name != ".git" => {
                walk(root, &path, found);
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

fn rust_files() -> Vec<(String, String)> {
    tree().into_iter().filter(|(path, _)| path.ends_with(".rs")).collect()
}

fn text_of(path: &str) -> String {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

// ------------------------------------------------------------------ reading Rust

/// The source with comments and the insides of strings and characters turned to spaces.
/// Lines keep their numbers.
fn code_of(source: &str) -> String {
    let text: Vec<char> = source.chars().collect();
    let at = |i: usize| text.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut code = String::with_capacity(source.len());
    let mut i = 0;
    while i < text.len() {
        let end = match at(i) {
            '/' if at(i + 1) == '/' => {
                (i..text.len()).find(|&j| text[j] == '\n').unwrap_or(text.len())
            }
            '/' if at(i + 1) == '*' => {
                let (mut depth, mut j) = (1, i + 2);
                while j < text.len() && depth > 0 {
                    let step = match (at(j), at(j + 1)) {
                        ('/', '*') => 1,
                        ('*', '/') => -1,
                        _ => 0,
                    };
                    depth += step;
                    j += if step == 0 { 1 } else { 2 };
                }
                j
            }
            '"' => quoted_end(&text, i + 1, '"'),
            // r"..", r#".."#, br, cr; not the r of a longer word, not r#keyword.
            'r' if i == 0
                || !is_word(at(i - 1))
                || ("bc".contains(at(i - 1)) && (i == 1 || !is_word(at(i - 2)))) =>
            {
                let hashes = (i + 1..).take_while(|&j| at(j) == '#').count();
                let body = i + 1 + hashes;
                if at(body) == '"' {
                    (body + 1..text.len())
                        .find(|&j| text[j] == '"' && (1..=hashes).all(|h| at(j + h) == '#'))
                        .map_or(text.len(), |j| j + 1 + hashes)
                } else {
                    i
                }
            }
            // A character, not a lifetime.
            '\'' if at(i + 1) == '\\' || at(i + 2) == '\'' => quoted_end(&text, i + 1, '\''),
            _ => i,
        };
        if end == i {
            code.push(text[i]);
            i += 1;
        } else {
            let end = end.min(text.len());
            code.extend(text[i..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            i = end;
        }
    }
    code
}

fn quoted_end(text: &[char], from: usize, quote: char) -> usize {
    let mut i = from;
    while i < text.len() && text[i] != quote {
        i += if text[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

struct Token {
    text: String,
    line: usize,
}

/// Words, `::`, and every other visible character alone.
fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let len = match word.unwrap_or(rest.len()) {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                word => word,
            };
            found.push(Token { text: rest[..len].to_owned(), line: number + 1 });
            rest = rest[len..].trim_start();
        }
    }
    found
}

/// A path that the source names, in a `use` or in passing.
struct Named {
    path: Vec<String>,
    /// The name it is known by from here on.
    name: String,
    line: usize,
    /// The inline modules it stands in.
    within: Vec<String>,
}

/// Every leaf of every `use`, and every other path that starts at `crate`, `self`, `super`,
/// or `zklock`.
fn named_paths(code: &str) -> Vec<Named> {
    let tokens = tokens(code);
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    let mut depth = 0;
    let mut modules: Vec<(i32, String)> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        match text(i) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                modules.retain(|(opened_at, _)| *opened_at <= depth);
            }
            "mod" if text(i + 2) == "{" => modules.push((depth + 1, text(i + 1).to_owned())),
            // `use<'a>` in a type captures lifetimes and names no path.
            "use" if text(i + 1) != "<" => {
                let first = found.len();
                i = use_tree(&tokens, i + 1, Vec::new(), &mut found);
                for named in &mut found[first..] {
                    named.within = modules.iter().map(|(_, name)| name.clone()).collect();
                }
                continue;
            }
            "crate" | "self" | "super" | "zklock"
                if text(i + 1) == "::" && (i == 0 || text(i - 1) != "::") =>
            {
                let mut path = vec![text(i).to_owned()];
                let line = tokens[i].line;
                while text(i + 1) == "::" && text(i + 2).starts_with(|c: char| c.is_alphabetic()) {
                    path.push(text(i + 2).to_owned());
                    i += 2;
                }
                let within = modules.iter().map(|(_, name)| name.clone()).collect();
                found.push(Named { name: String::new(), path, line, within });
            }
            _ => {}
        }
        i += 1;
    }
    found
}

/// Reads one tree of a `use` from `tokens[i]`; returns where the next one starts.
fn use_tree(tokens: &[Token], mut i: usize, prefix: Vec<String>, found: &mut Vec<Named>) -> usize {
    let text = |i: usize| tokens.get(i).map_or(";", |token| token.text.as_str());
    let line = tokens.get(i).map_or(0, |token| token.line);
    let mut path = prefix.clone();
    loop {
        match text(i) {
            "{" => {
                i += 1;
                while !matches!(text(i), "}" | ";") {
                    i = use_tree(tokens, i, path.clone(), found);
                    if text(i) == "," {
                        i += 1;
                    }
                }
                return i + 1;
            }
            "::" => i += 1,
            "as" => {
                let name = text(i + 1).to_owned();
                found.push(Named { path, name, line, within: Vec::new() });
                return i + 2;
            }
            "," | "}" | ";" => {
                let name = path.last().cloned().unwrap_or_default();
                found.push(Named { path, name, line, within: Vec::new() });
                return i;
            }
            // `{self}` in a group is the prefix itself.
            "self" if !path.is_empty() => i += 1,
            word => {
                path.push(word.to_owned());
                i += 1;
            }
        }
    }
}

/// The modules a file of the library is, from the root: `src/lock/queue.rs` is `lock`, `queue`.
fn modules_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").and_then(|p| p.strip_suffix(".rs")).unwrap_or(path);
    let mut modules: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(modules.last().map(String::as_str), Some("mod" | "lib")) {
        modules.pop();
    }
    modules
}

// ------------------------------------------------------------------ floors

/// Stands for the crate's root as a whole, from which every floor can be reached.
const WHOLE_HOUSE: &str = "*";

fn floor(module: &str) -> u8 {
    match module {
        "raw" => 1,
        "client" => 2,
        "lock" | "recipes" => 3,
        "capi" => 4,
        WHOLE_HOUSE => 5,
        // error, and whatever else every floor may share.
        _ => 0,
    }
}

/// Which module each name comes from that `lib.rs` re-exports at the root, and complaints about
/// re-exports that hide it.
fn root_names(lib: &str) -> (HashMap<String, String>, Vec<String>) {
    let (mut names, mut complaints) = (HashMap::new(), Vec::new());
    for Named { mut path, name, line, within } in named_paths(&code_of(lib)) {
        if !within.is_empty() {
            continue;
        }
        if matches!(path.first().map(String::as_str), Some("crate" | "self")) {
            path.remove(0);
        }
        if path.len() > 1 && floor(&path[0]) > 0 {
            if name == "*" {
                complaints.push(format!("src/lib.rs:{line}: re-export {} by name", path[0]));
            }
            names.insert(name, path.remove(0));
        }
    }
    (names, complaints)
}

/// Complaints about what a file of the library or of a program takes from floors it may not use.
fn upward_imports(file: &str, source: &str, root_names: &HashMap<String, String>) -> Vec<String> {
    let code = code_of(source);
    let own = modules_of(file);
    let mut complaints = Vec::new();
    let mut complain =
        |line: usize, what: String| complaints.push(format!("{file}:{line}: {what}"));
    for (number, line) in code.lines().enumerate() {
        let bare: String = line.split_whitespace().collect();
        if bare.contains("#[path=") || bare.contains("include!(") {
            complain(number + 1, "takes in a file of another place".to_owned());
        }
    }
    if own.is_empty() {
        return complaints; // lib.rs holds all floors together.
    }
    if own[0] == "bin" {
        for token in tokens(&code).iter().filter(|token| token.text == "zookeeper_sys") {
            complain(token.line, "a program uses the public API only".to_owned());
        }
        for named in named_paths(&code) {
            if named.path.starts_with(&["zklock".to_owned(), "raw".to_owned()]) {
                complain(named.line, "a program uses the public API only".to_owned());
            }
        }
        return complaints;
    }
    for named in named_paths(&code) {
        let Some(to) = target(&own, &named, root_names) else {
            continue;
        };
        let (from_floor, to_floor) = (floor(&own[0]), floor(&to));
        if to_floor > from_floor {
            complain(named.line, format!("{} reaches up to {to}", own[0]));
        } else if from_floor == 3 && to == "raw" {
            complain(named.line, format!("{} reaches past client to raw", own[0]));
        }
    }
    complaints
}

/// The top-level module a path leads to, when it leads into this crate.
fn target(own: &[String], named: &Named, root_names: &HashMap<String, String>) -> Option<String> {
    let mut place: Vec<&str> = own.iter().chain(&named.within).map(String::as_str).collect();
    let mut ours = false;
    for part in &named.path {
        match part.as_str() {
            "crate" if !ours => place.clear(),
            "self" if !ours => {}
            "super" => drop(place.pop()),
            // Another crate, or a module of our own below this one.
            _ if !ours => return None,
            part => place.push(part),
        }
        ours = true;
    }
    let first = place.first().copied().unwrap_or(WHOLE_HOUSE);
    Some(root_names.get(first).map_or(first, String::as_str).to_owned())
}

#[test]
fn no_module_imports_from_a_higher_floor() {
    let files = rust_files();
    let (names, mut complaints) = root_names(&text_of("src/lib.rs"));
    for (path, source) in files.iter().filter(|(path, _)| path.starts_with("src/")) {
        complaints.extend(upward_imports(path, source, &names));
    }
    assert_none(&complaints);
}

#[test]
fn the_floor_check_finds_every_way_up_and_allows_every_way_down() {
    let lib = "mod raw; pub mod client;\npub use client::Client;\npub use crate::lock::{Guard as Held, Lock};\n";
    let (names, complaints) = root_names(lib);
    assert_none(&complaints);
    assert_eq!(root_names("pub use client::*;").1.len(), 1);

    for (file, source) in cases(UP) {
        let found = upward_imports(&file, &source, &names);
        assert_eq!(found.len(), 1, "{file}: {source}: {found:?}");
    }
    for (file, source) in cases(DOWN) {
        assert_none(&upward_imports(&file, &source, &names));
    }
}

/// One case a line: a file and what stands in it, with `\n` for a new line.
fn cases(table: &str) -> impl Iterator<Item = (String, String)> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| {
        let (file, source) = line.split_once(' ').expect("a file and a source");
        (file.to_owned(), source.trim_start().replace("\\n", "\n"))
    })
}

const UP: &str = r##"
    src/raw/handle.rs    use crate::client::Client;
    src/raw/handle.rs    use crate::{error::Error, client::{self}, raw::Slot};
    src/raw/handle.rs    use super::super::lock;
    src/raw/mod.rs       pub(crate) use super::lock::Guard;
    src/raw/handle.rs    fn f() { let c = crate::client::connect(); }
    src/raw/handle.rs    fn f(h: &super::super::lock::Guard) {}
    src/raw/handle.rs    use crate::Client;
    src/client/node.rs   fn f() -> crate::Held { g() }
    src/raw/handle.rs    use crate as house; fn f() { house::lock::g() }
    src/raw/handle.rs    use crate::{self as house};
    src/raw.rs           use super::*;
    src/raw/handle.rs    mod tests { use super::super::super::client::Client; }
    src/raw/handle.rs    mod a { mod b {} } use super::super::client;
    src/raw/handle.rs    macro_rules! m { () => { $crate::lock::f() } }
    src/error.rs         use crate::raw::Code;
    src/client/mod.rs    use crate::\n    lock::\n    Lock;
    src/lock/mod.rs      use crate::capi::zkl_lock;
    src/lock/mod.rs      use crate::raw::Handle;
    src/recipes/queue.rs fn f(h: crate::raw::Handle) {}
    src/raw/mod.rs       #[path = "../lock/mod.rs"] mod other;
    src/bin/lock_test.rs use zookeeper_sys::zoo_create;
    src/bin/lock_test.rs use zklock::{Client, raw::Handle};
    src/bin/t/main.rs    include!("../../raw/mod.rs");
"##;

const DOWN: &str = r##"
    src/raw/handle.rs    use crate::error::Error; use super::slots; use self::a::b;
    src/raw/handle.rs    /* /* */ crate::lock::x */ use std::fmt; // use crate::client;
    src/raw/handle.rs    const A: &str = "use crate::client;"; const B: char = '"';
    src/raw/handle.rs    const A: &str = r#"" crate::lock::f()"#; fn f<'a>(x: &'a u8) {}
    src/error.rs         mod tests { use super::*; }
    src/raw/handle.rs    mod tests { use super::*; use super::super::slots; }
    src/raw/handle.rs    pub(crate) fn f() -> impl Sized + use<> {} pub(super) struct X;
    src/client/mod.rs    use crate::raw::Handle; use tokio::sync; use lock_api::RawMutex;
    src/client/mod.rs    use other::client::super_lock; fn f() { std::fs::lock::x() }
    src/lock/queue.rs    use crate::{Client, Lock, client::{Stat, node::*}, recipes::x};
    src/capi/mod.rs      use crate::{raw::Handle, lock, recipes, client};
    src/lib.rs           pub use lock::Lock; mod prelude { pub use crate::raw::Code; }
    src/bin/lock_test.rs use zklock::{Client, lock::Lock}; mod table; use crate::table;
"##;

// ------------------------------------------------------------------ unsafe

fn lines_with_unsafe(source: &str) -> Vec<usize> {
    let tokens = tokens(&code_of(source));
    tokens.iter().filter(|token| token.text == "unsafe").map(|token| token.line).collect()
}

/// Lines of `unsafe {` and `unsafe impl` without a `SAFETY:` comment directly above: above the
/// statement they stand in, its attributes included.
fn unexplained_unsafe(source: &str) -> Vec<usize> {
    let code = code_of(source);
    let code_lines: Vec<&str> = code.lines().map(str::trim).collect();
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let tokens = tokens(&code);
    let explained = |line: usize| {
        let mut in_comment = false;
        for above in (0..line - 1).rev() {
            let is_comment = code_lines[above].is_empty() && !lines[above].is_empty();
            if is_comment && lines[above].contains("SAFETY:") {
                return true;
            }
            let statement_goes_on = !code_lines[above].is_empty()
                && (code_lines[above].starts_with("#[")
                    || !code_lines[above].ends_with([';', '{', '}', ',']));
            if !is_comment && (in_comment || !statement_goes_on) {
                return false;
            }
            in_comment = is_comment;
        }
        false
    };
    tokens
        .windows(2)
        .filter(|pair| pair[0].text == "unsafe" && matches!(pair[1].text.as_str(), "{" | "impl"))
        .map(|pair| pair[0].line)
        .filter(|&line| !explained(line))
        .collect()
}

fn is_generated(source: &str) -> bool {
    source.lines().take(3).any(|line| line.contains("automatically generated"))
}

#[test]
fn unsafe_code_stays_in_the_two_floors_that_touch_c() {
    let mut complaints = Vec::new();
    let mut in_server = Vec::new();
    for (path, source) in rust_files() {
        let modules = modules_of(&path);
        let allowed = UNSAFE_OUTSIDE_SRC.iter().any(|start| path.starts_with(start))
            || (path.starts_with("src/")
                && modules.first().is_some_and(|m| m == "raw" || m == "capi"));
        let lines = lines_with_unsafe(&source);
        if path.starts_with("tests/server/") {
            in_server.extend(lines.first().map(|line| format!("{path}:{line}: unsafe")));
        } else if !allowed {
            complaints.extend(lines.iter().map(|line| format!("{path}:{line}: unsafe")));
        }
    }
    if in_server.len() > 1 {
        complaints.push("one file of tests/server may hold unsafe code, not more:".to_owned());
        complaints.extend(in_server);
    }
    assert_none(&complaints);
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut complaints = Vec::new();
    for (path, source) in rust_files().iter().filter(|(_, source)| !is_generated(source)) {
        let lines = unexplained_unsafe(source);
        complaints.extend(lines.iter().map(|line| format!("{path}:{line}: no SAFETY: comment")));
    }
    assert_none(&complaints);
}

#[test]
fn the_unsafe_checks_see_code_and_only_code() {
    assert_eq!(lines_with_unsafe("fn f() {\n    unsafe { g() }\n}"), [2]);
    assert_eq!(lines_with_unsafe("let s = \"\\\"\"; unsafe { g() }"), [1]);
    assert_eq!(lines_with_unsafe("let c = '\\''; let q = '\"'; unsafe fn f() {}"), [1]);
    assert_eq!(lines_with_unsafe("let r = r\"\\\"; unsafe {}"), [1]);
    for none in [
        "// unsafe",
        "/* /* unsafe */ unsafe */",
        "\"unsafe\"",
        "r#\"\" unsafe \"#",
        "#![deny(unsafe_code)]",
    ] {
        assert!(lines_with_unsafe(none).is_empty(), "{none}");
    }

    let explained = [
        "// SAFETY: fact.\nunsafe { f() }",
        "// SAFETY: fact,\n// and who keeps it.\nlet x =\n    unsafe { f() };",
        "// SAFETY: fact.\n#[allow(lint)]\nunsafe impl Send for X {}",
        "match x {\n    // SAFETY: fact.\n    A => unsafe { f() },\n}",
        "unsafe fn f() {}\nunsafe extern \"C\" {}",
    ];
    for source in explained {
        assert!(unexplained_unsafe(source).is_empty(), "{source}");
    }
    let unexplained = [
        ("unsafe { f() }", 1),
        ("// SAFETY: of something else.\ng();\nunsafe { f() }", 3),
        ("// SAFETY: too far away.\n\nunsafe { f() }", 3),
        ("// Just so.\nunsafe impl Send for X {}", 2),
        ("g(\"SAFETY: no\");\nunsafe { f() }", 2),
    ];
    for (source, line) in unexplained {
        assert_eq!(unexplained_unsafe(source), [line], "{source}");
    }
}

// ------------------------------------------------------------------ size and manners

#[test]
fn a_source_file_has_one_idea_and_at_most_500_lines() {
    let mut complaints = Vec::new();
    for (path, source) in rust_files() {
        let lines = source.lines().count();
        if path.starts_with("src/") && lines > 500 {
            complaints.push(format!("{path}: {lines} lines"));
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        if ["util.rs", "utils.rs", "helper.rs", "helpers.rs", "common.rs"].contains(&name) {
            complaints.push(format!("{path}: name it for its idea"));
        }
    }
    assert_none(&complaints);
}

/// What unfinished or skipped work looks like in code.
fn unfinished(source: &str) -> Vec<usize> {
    let code = code_of(source);
    let tokens = tokens(&code);
    tokens
        .windows(3)
        .filter(|three| {
            let three = [0, 1, 2].map(|i| three[i].text.as_str());
            matches!(three, ["#", "[", "ignore"] | ["todo" | "unimplemented", "!", "("])
        })
        .map(|three| three[0].line)
        .collect()
}

#[test]
fn no_test_is_ignored_and_nothing_is_left_to_do() {
    let mut complaints = Vec::new();
    for (path, source) in rust_files() {
        let lines = unfinished(&source);
        complaints.extend(lines.iter().map(|line| format!("{path}:{line}: unfinished or ignored")));
    }
    assert_none(&complaints);
    assert_eq!(unfinished("fn f() {\n    todo!()\n}"), [2]);
    assert_eq!(unfinished("#[test]\n#[ignore = \"slow\"]\nfn f() {}"), [2]);
    assert!(unfinished("// todo!()\n#[allow(x)] fn ignore() { \"unimplemented!()\"; }").is_empty());
}

/// Hosts that packages come from, and directories of the machine something was built on.
/// Written in two halves, so that this file does not contain what it looks for.
const PRIVATE: &[&str] = &[
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("archive.", "ubuntu.com"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("sh.", "rustup.rs"),
    concat!("static.", "rust-lang.org"),
    concat!("proxy.", "golang.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi.", "org"),
    concat!("registry.", "npmjs.org"),
    concat!("repo1.", "maven.org"),
    concat!("repo.", "maven.apache.org"),
    concat!("archive.", "apache.org"),
    concat!("dlcdn.", "apache.org"),
    concat!("downloads.", "apache.org"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

#[test]
fn no_file_names_a_package_host_or_a_path_of_a_build_machine() {
    let mut complaints = Vec::new();
    for (path, source) in tree() {
        for (number, line) in source.lines().enumerate() {
            for private in PRIVATE.iter().filter(|private| line.contains(*private)) {
                complaints.push(format!("{path}:{}: {private}", number + 1));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn the_checks_read_the_whole_tree() {
    let paths: Vec<String> = tree().into_iter().map(|(path, _)| path).collect();
    let mut walked = Vec::new();
    walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut walked);
    for file in ["Cargo.toml", "src/lib.rs", "tests/house.rs", "zookeeper-sys/src/lib.rs"] {
        assert!(paths.iter().any(|path| path == file), "{file} is not listed");
        assert!(walked.iter().any(|path| path == file), "{file} is not walked");
    }
    assert!(!paths.iter().chain(&walked).any(|path| path.starts_with(".git/")));
}

// ------------------------------------------------------------------ single source

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
fn the_readme_names_the_oldest_rust() {
    let readme = text_of("README.md");
    let named: Vec<&str> = readme
        .match_indices("Rust 1.")
        .map(|(at, _)| {
            let version = &readme[at + "Rust ".len()..];
            let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
            version[..end.unwrap_or(version.len())].trim_end_matches('.')
        })
        .collect();
    let oldest = manifest("rust-version");
    assert!(!named.is_empty(), "README.md does not say `Rust {oldest}`");
    assert!(named.iter().all(|version| *version == oldest), "{named:?}, not {oldest}");
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
