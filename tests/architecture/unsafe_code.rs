//! Unsafe code stays where it can be named, and says why it is sound.

use super::rust_text::{code_of, modules_of, tokens};
use super::tree::{assert_none, rust_files};

/// Where unsafe code may be: the floors that touch C, the bindings, the two system calls of the test
/// servers that have no safe form, `fork`, and a program that takes the C client into its own hands.
const UNSAFE_OUTSIDE_SRC: &[&str] = &[
    "zookeeper-sys/",
    "tests/server/src/process/in_child.rs",
    "tests/server/src/proxy/unsent.rs",
    "tests/client/forks.rs",
    "tests/client/zhandle.rs",
];

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
    for (path, source) in rust_files() {
        let modules = modules_of(&path);
        let allowed = UNSAFE_OUTSIDE_SRC.iter().any(|start| path.starts_with(start))
            || (path.starts_with("src/")
                && modules.first().is_some_and(|m| m == "raw" || m == "capi"));
        let lines = lines_with_unsafe(&source);
        if !allowed {
            complaints.extend(lines.iter().map(|line| format!("{path}:{line}: unsafe")));
        }
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
