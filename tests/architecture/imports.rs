//! Which file of a crate uses which other, by the paths that it names.
//!
//! A name that a module only hands on leads to the file that defines it: `use super::Thing` is a use of the sibling
//! that has `Thing`, where the parent only re-exports it. Code for tests alone does not count. Methods are not followed: a
//! file that calls one has named its type somewhere.

use std::collections::{BTreeSet, HashMap, HashSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

type Module = Vec<String>;

/// A path in the source.
struct Named {
    /// The inline modules around it.
    within: Module,
    path: Module,
    /// The name that an import gives it; empty for a path outside imports.
    name: String,
    /// Whether it is an import that hands the name on.
    handed_on: bool,
}

#[derive(Default)]
struct File {
    name: String,
    module: Module,
    named: Vec<Named>,
    /// All words outside imports.
    words: HashSet<String>,
    /// Modules in other files that are for tests alone.
    for_tests: Vec<Module>,
    /// Whether it takes in a file by its path.
    takes_in_a_file: bool,
}

/// The files of a crate.
pub(super) struct Imports {
    files: Vec<File>,
    /// Inline modules too, which are in the same file.
    file_of: HashMap<Module, usize>,
}

/// That `from` uses `to`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// Whether `from` only hands on what `to` has.
    pub(super) handed_on: bool,
}

impl Imports {
    /// `sources`: name and text of each file below `src/`.
    pub(super) fn of<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Imports {
        let mut files: Vec<File> =
            sources.into_iter().map(|(name, text)| File::of(name, text)).collect();
        // A module below one that is for tests alone is so too.
        let for_tests: HashSet<Module> =
            files.iter_mut().flat_map(|file| std::mem::take(&mut file.for_tests)).collect();
        files
            .retain(|file| !(0..=file.module.len()).any(|n| for_tests.contains(&file.module[..n])));
        let mut file_of = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            for within in file.named.iter().map(|named| &named.within) {
                for n in 0..=within.len() {
                    file_of.entry(join(&file.module, &within[..n])).or_insert(number);
                }
            }
            file_of.insert(file.module.clone(), number);
        }
        Imports { files, file_of }
    }

    pub(super) fn uses(&self) -> BTreeSet<Use<'_>> {
        let mut uses = BTreeSet::new();
        for file in &self.files {
            for named in &file.named {
                let place = self.absolute(file, &named.within, &named.path);
                if let Some(used) = place.and_then(|place| self.defining(place)) {
                    let handed_on = named.handed_on && !file.words.contains(&named.name);
                    let (from, to) = (file.name.as_str(), self.files[used].name.as_str());
                    uses.insert(Use { from, to, handed_on });
                }
            }
        }
        uses.retain(|one| one.from != one.to);
        uses
    }

    /// Files that take in others by their paths, where the module tree does not show it.
    pub(super) fn taking_in_files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| file.takes_in_a_file).map(|file| file.name.as_str())
    }

    /// A path from the root of `src`, if it leads into the crate that the file is of.
    fn absolute(&self, file: &File, within: &[String], path: &[String]) -> Option<Module> {
        let mut place = join(&file.module, within);
        let ups = path.iter().take_while(|part| *part == "super").count();
        let rest = match path.first()?.as_str() {
            "crate" => {
                place.clear();
                &path[1..]
            }
            "self" => &path[1..],
            "super" => {
                place.truncate(place.len().saturating_sub(ups));
                &path[ups..]
            }
            // Of a module below, or of another crate.
            child if self.file_of.contains_key(&join(&place, &[child.to_owned()])) => path,
            _ => return None,
        };
        Some(join(&place, rest))
    }

    /// The file that defines what a path from the root names.
    fn defining(&self, path: Module) -> Option<usize> {
        self.defining_unseen(path, &mut HashSet::new())
    }

    fn defining_unseen(&self, path: Module, seen: &mut HashSet<Module>) -> Option<usize> {
        if !seen.insert(path.clone()) {
            return None;
        }
        // The innermost module that the path passes, and what is named in it.
        let depth = (0..=path.len()).rev().find(|&n| self.file_of.contains_key(&path[..n]))?;
        let (module, rest) = path.split_at(depth);
        let number = self.file_of[module];
        let Some((name, after)) = rest.split_first().filter(|(name, _)| *name != "*") else {
            return Some(number);
        };
        let file = &self.files[number];
        let within = &module[file.module.len()..];
        let imports =
            || file.named.iter().filter(|one| !one.name.is_empty() && one.within == within);
        for named in imports().filter(|named| named.name == *name) {
            if let Some(from) = self.absolute(file, within, &named.path) {
                return self.defining_unseen(join(&from, after), seen);
            }
        }
        for named in imports().filter(|named| named.name == "*") {
            let from = self.absolute(file, within, &named.path[..named.path.len() - 1]);
            let from = from.and_then(|from| self.file_of.get(&from));
            if let Some(&from) = from.filter(|&&from| self.files[from].words.contains(name)) {
                return Some(from);
            }
        }
        Some(number)
    }
}

impl File {
    fn of(name: &str, text: &str) -> File {
        let mut module: Module = name
            .trim_start_matches("src/")
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        let mut file = File { name: name.to_owned(), module, ..File::default() };
        let code = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        file.read(code, &[]);
        file
    }

    fn read(&mut self, code: TokenStream, within: &[String]) {
        let tokens: Vec<TokenTree> = code.into_iter().collect();
        let text = |i: usize| tokens.get(i).map_or(String::new(), text_of);
        let mut i = 0;
        while i < tokens.len() {
            match text(i).as_str() {
                "#" if is_for_tests(tokens.get(i + 1)) => {
                    let (skipped, module) = item(&tokens[i..]);
                    let module = module.map(|name| join(&join(&self.module, within), &[name]));
                    self.for_tests.extend(module);
                    i += skipped;
                    continue;
                }
                "#" => self.takes_in_a_file |= attribute(tokens.get(i + 1), "path").is_some(),
                "include" if text(i + 1) == "!" => self.takes_in_a_file = true,
                // `use<'a>` in a type captures lifetimes and names no path.
                "use" if text(i + 1) != "<" => {
                    let handed_on = i > 0 && matches!(text(i - 1).as_str(), "pub" | "(");
                    let end = (i..tokens.len()).find(|&j| text(j) == ";").unwrap_or(tokens.len());
                    self.import(&tokens[i + 1..end], &[], within, handed_on);
                    i = end;
                    continue;
                }
                "mod" if text(i + 2) == "{" => {
                    if let Some(TokenTree::Group(body)) = tokens.get(i + 2) {
                        self.read(body.stream(), &join(within, &[text(i + 1)]));
                    }
                    i += 3;
                    continue;
                }
                _ => {}
            }
            match &tokens[i] {
                TokenTree::Group(group) => self.read(group.stream(), within),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while text(i + 1) == ":"
                        && text(i + 2) == ":"
                        && matches!(tokens.get(i + 3), Some(TokenTree::Ident(_)))
                    {
                        path.push(text(i + 3));
                        i += 3;
                    }
                    self.words.extend(path.iter().cloned());
                    if path.len() > 1 {
                        let (within, name) = (within.to_vec(), String::new());
                        self.named.push(Named { within, path, name, handed_on: false });
                    }
                }
                _ => {}
            }
            i += 1;
        }
    }

    /// Each leaf of an import that stands below `prefix`.
    fn import(
        &mut self,
        tree: &[TokenTree],
        prefix: &[String],
        within: &[String],
        handed_on: bool,
    ) {
        for branch in tree.split(|token| text_of(token) == ",").filter(|branch| !branch.is_empty())
        {
            if let Some((TokenTree::Group(group), before)) = branch.split_last() {
                let path = join(prefix, &words(before));
                let tree: Vec<TokenTree> = group.stream().into_iter().collect();
                self.import(&tree, &path, within, handed_on);
                continue;
            }
            let mut path = join(prefix, &words(branch));
            let renamed =
                path.iter().position(|word| word == "as").map(|at| path.split_off(at).remove(1));
            // `{self}` is the prefix itself.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
            self.named.push(Named { within: within.to_vec(), path, name, handed_on });
        }
    }
}

/// The token, or how a group of them begins.
fn text_of(token: &TokenTree) -> String {
    match token {
        TokenTree::Group(group) => match group.delimiter() {
            Delimiter::Brace => "{",
            Delimiter::Bracket => "[",
            Delimiter::Parenthesis => "(",
            Delimiter::None => "",
        }
        .to_owned(),
        token => token.to_string(),
    }
}

/// A path's words, and the `*` at its end.
fn words(path: &[TokenTree]) -> Module {
    path.iter().map(text_of).filter(|word| word != ":").collect()
}

fn join(module: &[String], more: &[String]) -> Module {
    [module, more].concat()
}

/// The text of an attribute behind that name, without spaces. `token`: its brackets.
fn attribute(token: Option<&TokenTree>, name: &str) -> Option<String> {
    let Some(TokenTree::Group(group)) = token else { return None };
    let text = group.stream().to_string().replace(char::is_whitespace, "");
    text.strip_prefix(name).map(str::to_owned)
}

/// Whether an attribute's item is compiled for tests alone, or for models that the checker of interleavings runs.
fn is_for_tests(token: Option<&TokenTree>) -> bool {
    attribute(token, "cfg(").is_some_and(|cfg| {
        let cfg = cfg.replace("not(test)", "").replace("not(zklock_loom)", "");
        cfg.contains("test") || cfg.contains("zklock_loom")
    })
}

/// The number of tokens of the item, statement or field at the beginning, and its name if it is a module in another file.
fn item(tokens: &[TokenTree]) -> (usize, Option<String>) {
    const ITEMS: [&str; 13] = [
        "async", "const", "enum", "extern", "fn", "impl", "mod", "static", "struct", "trait",
        "type", "unsafe", "use",
    ];
    let text = |i: usize| tokens.get(i).map_or(String::new(), text_of);
    let mut i = 0;
    while text(i) == "#" {
        i += 2;
    }
    if text(i) == "pub" {
        i += if text(i + 1) == "(" { 2 } else { 1 };
    }
    let module = (text(i) == "mod" && text(i + 2) == ";").then(|| text(i + 1));
    let is_item = ITEMS.contains(&text(i).as_str());
    let ends = |i: &usize| match text(*i).as_str() {
        "{" | ";" => true,
        "," => !is_item,
        _ => false,
    };
    ((i..tokens.len()).find(ends).map_or(tokens.len(), |end| end + 1), module)
}
