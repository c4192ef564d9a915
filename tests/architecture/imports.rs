//! Which file of `src` uses which other, by the paths that it names.
//!
//! A name that a module only hands on leads to the file that defines it: `use super::Thing` is an edge to
//! the sibling that has `Thing`, where the parent only re-exports it. What is compiled for tests alone
//! does not count, and methods are not followed: who calls one has named its type somewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::rust_text::{Named, code_of, modules_of, named_paths, tokens, without_tests};

type Module = Vec<String>;

/// One file, as a module of its crate.
struct File {
    name: String,
    module: Module,
    paths: Vec<Named>,
    /// Words that stand outside imports.
    words: HashSet<String>,
    /// First words of paths that no `crate`, `self` or `super` begins, with the inline modules around.
    bare: Vec<(Module, Vec<String>)>,
}

/// The files of a crate.
pub(super) struct Imports {
    files: Vec<File>,
    /// Inline modules too, which are in the same file.
    file_of: HashMap<Module, usize>,
}

impl Imports {
    /// `sources`: name and text of each file below `src/`.
    pub(super) fn of<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Imports {
        let mut tested: HashSet<Module> = HashSet::new();
        let mut files: Vec<File> = Vec::new();
        for (name, source) in sources {
            let (code, for_tests) = without_tests(&code_of(source));
            let module = modules_of(name);
            tested.extend(for_tests.into_iter().map(|child| join(&module, &[child])));
            files.push(File::read(name, module, &code));
        }
        // A module below one that is for tests alone is so too.
        files.retain(|file| !(0..=file.module.len()).any(|n| tested.contains(&file.module[..n])));
        let mut file_of = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            let inline = file.bare.iter().map(|(within, _)| within);
            for within in inline.chain(file.paths.iter().map(|named| &named.within)) {
                for n in 0..=within.len() {
                    file_of.entry(join(&file.module, &within[..n])).or_insert(number);
                }
            }
            file_of.insert(file.module.clone(), number);
        }
        Imports { files, file_of }
    }

    /// Each file with those that it uses.
    pub(super) fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges = BTreeMap::new();
        for file in &self.files {
            let imported = file
                .paths
                .iter()
                // A name that is handed on, and not used here, is used by those who import it from here.
                .filter(|named| !named.public || file.words.contains(&named.name))
                .filter_map(|named| {
                    self.defines(self.absolute(file, &named.within, &named.path)?)
                });
            let below = file.bare.iter().filter_map(|(within, path)| {
                let place = join(&join(&file.module, within), path);
                let is_child = self.file_of.contains_key(&place[..place.len() - path.len() + 1]);
                is_child.then(|| self.defines(place)).flatten()
            });
            let used: BTreeSet<&str> = imported
                .chain(below)
                .map(|number| self.files[number].name.as_str())
                .filter(|used| *used != file.name)
                .collect();
            edges.insert(file.name.as_str(), used);
        }
        edges
    }

    /// A path from the root of `src`, if it leads into the crate that the file is of.
    fn absolute(&self, file: &File, within: &[String], path: &[String]) -> Option<Module> {
        let mut place = join(&file.module, within);
        let mut rest = path;
        match path.first().map(String::as_str)? {
            "crate" => {
                place.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    place.pop();
                    rest = &rest[1..];
                }
            }
            // `use child::Thing`, or another crate.
            child => {
                let is_child = self.file_of.contains_key(&join(&place, &[child.to_owned()]));
                return is_child.then(|| join(&place, rest));
            }
        }
        Some(join(&place, rest))
    }

    /// The file that defines what a path names.
    fn defines(&self, path: Module) -> Option<usize> {
        self.defines_by(path, &mut HashSet::new())
    }

    fn defines_by(&self, path: Module, seen: &mut HashSet<Module>) -> Option<usize> {
        if !seen.insert(path.clone()) {
            return None;
        }
        // The innermost module that the path passes, and what is named in it.
        let depth = (0..=path.len()).rev().find(|&n| self.file_of.contains_key(&path[..n]))?;
        let (module, rest) = path.split_at(depth);
        let number = *self.file_of.get(module)?;
        let Some((name, after)) = rest.split_first().filter(|(name, _)| *name != "*") else {
            return Some(number);
        };
        let file = &self.files[number];
        let within = &module[file.module.len()..];
        let handed_on = file.paths.iter().filter(|named| named.within == within);
        let (by_name, globs): (Vec<&Named>, Vec<&Named>) = handed_on
            .filter(|named| named.name == *name || named.name == "*")
            .partition(|named| named.name == *name);
        for named in by_name {
            if let Some(from) = self.absolute(file, within, &named.path) {
                return self.defines_by(join(&from, after), seen);
            }
        }
        for glob in globs {
            let from = self.absolute(file, within, &glob.path[..glob.path.len() - 1]);
            let from = from.and_then(|from| self.file_of.get(&from));
            if let Some(&from) = from.filter(|&&from| self.files[from].words.contains(name)) {
                return Some(from);
            }
        }
        Some(number)
    }
}

impl File {
    fn read(name: &str, module: Module, code: &str) -> File {
        let paths = named_paths(code);
        let (mut words, mut bare) = (HashSet::new(), Vec::new());
        let tokens = tokens(code);
        let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
        let (mut depth, mut within): (i32, Vec<(i32, String)>) = (0, Vec::new());
        let mut i = 0;
        while i < tokens.len() {
            match text(i) {
                "use" if text(i + 1) != "<" => {
                    i += (i..tokens.len()).take_while(|&j| text(j) != ";").count();
                }
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    within.retain(|(opened_at, _)| *opened_at <= depth);
                }
                "mod" if text(i + 2) == "{" => within.push((depth + 1, text(i + 1).to_owned())),
                word => {
                    words.insert(word.to_owned());
                    if text(i + 1) == "::" && (i == 0 || text(i - 1) != "::") {
                        let mut path = vec![word.to_owned()];
                        while text(i + 1) == "::" {
                            path.push(text(i + 2).to_owned());
                            i += 2;
                        }
                        words.extend(path.iter().cloned());
                        let inline = within.iter().map(|(_, name)| name.clone()).collect();
                        bare.push((inline, path));
                    }
                }
            }
            i += 1;
        }
        File { name: name.to_owned(), module, paths, words, bare }
    }
}

fn join(module: &[String], more: &[String]) -> Module {
    module.iter().chain(more).cloned().collect()
}
