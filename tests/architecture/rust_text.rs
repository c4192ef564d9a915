//! Reads Rust source as far as the rules need it: words, and the paths it names.

/// The source with comments and the insides of strings and characters turned to spaces.
/// Lines keep their numbers.
pub(super) fn code_of(source: &str) -> String {
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

pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Words, `::`, and every other visible character alone.
pub(super) fn tokens(code: &str) -> Vec<Token> {
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
pub(super) struct Named {
    pub(super) path: Vec<String>,
    /// The name it is known by from here on.
    pub(super) name: String,
    pub(super) line: usize,
    /// The inline modules it stands in.
    pub(super) within: Vec<String>,
    /// Whether it is a `use` that hands the name on.
    pub(super) public: bool,
}

/// Every leaf of every `use`, and every other path that starts at `crate`, `self`, `super`,
/// or `zklock`.
pub(super) fn named_paths(code: &str) -> Vec<Named> {
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
                // `pub use`, or the end of `pub(crate) use`.
                let public = i > 0 && matches!(text(i - 1), "pub" | ")");
                i = use_tree(&tokens, i + 1, Vec::new(), &mut found);
                for named in &mut found[first..] {
                    named.within = modules.iter().map(|(_, name)| name.clone()).collect();
                    named.public = public;
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
                found.push(Named { name: String::new(), path, line, within, public: false });
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
                found.push(Named { path, name, line, within: Vec::new(), public: false });
                return i + 2;
            }
            "," | "}" | ";" => {
                let name = path.last().cloned().unwrap_or_default();
                found.push(Named { path, name, line, within: Vec::new(), public: false });
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

/// The code without what is compiled for tests alone, and the modules in files of their own that are.
pub(super) fn without_tests(code: &str) -> (String, Vec<String>) {
    const ITEMS: [&str; 13] = [
        "async", "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait",
        "type", "unsafe", "use",
    ];
    let tokens = tokens(code);
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    // The first token behind the bracket that opens at or after `i`.
    let behind = |i: usize, open: &str, close: &str| {
        let mut depth = 0;
        for j in i..tokens.len() {
            depth += i32::from(text(j) == open) - i32::from(text(j) == close);
            if depth == 0 && text(j) == close {
                return j + 1;
            }
        }
        tokens.len()
    };
    let (mut kept, mut modules): (Vec<&Token>, Vec<String>) = (Vec::new(), Vec::new());
    let mut i = 0;
    while i < tokens.len() {
        let attribute_ends = behind(i, "[", "]");
        let attribute = || (i..attribute_ends).map(text).collect::<String>();
        let is_attribute = text(i) == "#" && text(i + 1) == "[" && text(i + 2) == "cfg";
        if !is_attribute || !is_for_tests(&attribute()) {
            kept.push(&tokens[i]);
            i += 1;
            continue;
        }
        // Up to the end of what it stands before, other attributes included.
        let mut end = attribute_ends;
        while text(end) == "#" {
            end = behind(end, "[", "]");
        }
        if text(end) == "pub" {
            end = if text(end + 1) == "(" { behind(end + 1, "(", ")") } else { end + 1 };
        }
        if text(end) == "mod" && text(end + 2) == ";" {
            modules.push(text(end + 1).to_owned());
        }
        let is_item = ITEMS.contains(&text(end));
        end = loop {
            match text(end) {
                "(" => end = behind(end, "(", ")"),
                "[" => end = behind(end, "[", "]"),
                "{" => break behind(end, "{", "}"),
                ";" => break end + 1,
                "," if !is_item => break end + 1,
                // The last field, variant or argument.
                "}" | ")" | "" => break end,
                _ => end += 1,
            }
        };
        i = end;
    }
    let mut rest = String::new();
    let mut line = 1;
    for token in kept {
        rest.extend(std::iter::repeat_n('\n', token.line - line));
        line = token.line;
        rest += &token.text;
        rest.push(' ');
    }
    (rest, modules)
}

/// Whether a `cfg` is that of a test, or of a model for the checker of interleavings.
fn is_for_tests(cfg: &str) -> bool {
    let cfg = cfg.replace("not(test)", "").replace("not(zklock_loom)", "");
    cfg.contains("test") || cfg.contains("zklock_loom")
}

/// The modules a file of a crate is, from the root: `src/zookeeper/acquire/queue.rs` is `lock`, `queue`.
pub(super) fn modules_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").and_then(|p| p.strip_suffix(".rs")).unwrap_or(path);
    let mut modules: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(modules.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        modules.pop();
    }
    modules
}
