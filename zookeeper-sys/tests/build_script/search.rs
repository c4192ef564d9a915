//! The build script's search for the library, in directories made for it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::find::{Dirs, Found, Kind, Search};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PREFIXED: &str = "X86_64_UNKNOWN_LINUX_GNU_ZOOKEEPER_DIR";

/// Directories of one test, and what its search is told.
struct Case {
    root: PathBuf,
    variables: HashMap<&'static str, OsString>,
    packaged: Option<&'static str>,
    want_static: bool,
    native: bool,
}

impl Case {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("find").join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a writable directory");
        Self { root, variables: HashMap::new(), packaged: None, want_static: false, native: true }
    }

    /// Makes an empty file, named from the root of the case.
    fn file(self, name: &str) -> Self {
        let file = self.root.join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a writable directory");
        fs::write(file, "").expect("a writable file");
        self
    }

    /// Makes an installation with header and shared library.
    fn installed(self, prefix: &str) -> Self {
        self.file(&format!("{prefix}/include/zookeeper/zookeeper.h"))
            .file(&format!("{prefix}/lib/libzookeeper_mt.so"))
    }

    fn set(mut self, name: &'static str, dir: &str) -> Self {
        self.variables.insert(name, self.root.join(dir).into());
        self
    }

    fn run(&self) -> Result<Found, String> {
        Search {
            target: TARGET,
            native: self.native,
            want_static: self.want_static,
            variable: &|name| self.variables.get(name).cloned(),
            pkg_config: &|| {
                self.packaged.map(|prefix| Dirs {
                    include: vec![self.root.join(prefix).join("include")],
                    lib: vec![self.root.join(prefix).join("lib")],
                })
            },
            prefixes: vec![self.root.join("usual"), self.root.join("other")],
        }
        .run()
    }

    /// The directory of the header and the library that are found, from the root of the case.
    fn found(&self) -> (String, String) {
        let found = self.run().expect("it is there");
        let inside = |path: &Path| {
            let path = path.strip_prefix(&self.root).expect("inside the case");
            path.display().to_string()
        };
        (inside(&found.include), inside(&found.library))
    }
}

fn pair(include: &str, library: &str) -> (String, String) {
    (include.to_owned(), library.to_owned())
}

#[test]
fn a_missing_library_is_an_error_that_says_what_to_do() {
    let error = Case::new("nothing").run().expect_err("nothing is there");
    for hint in [
        "libzookeeper-mt-dev\n",
        "ZOOKEEPER_DIR",
        "ZOOKEEPER_INCLUDE_DIR",
        "ZOOKEEPER_LIB_DIR",
        PREFIXED,
        "Debian, Ubuntu: apt-get install",
        "brew install zookeeper",
        "Arch: ",
        "Fedora, Alpine",
        "the feature `source`",
        "ZOOKEEPER_SRC_DIR",
        "no zookeeper.h in",
        "no libzookeeper_mt.so in",
        TARGET,
    ] {
        assert!(error.contains(hint), "{hint} is not in: {error}");
    }
}

#[test]
fn only_what_is_missing_is_called_missing() {
    let no_library = Case::new("no_library").file("usual/include/zookeeper/zookeeper.h");
    let error = no_library.run().expect_err("half is there");
    assert!(error.contains("no libzookeeper_mt.so in"), "{error}");
    assert!(!error.contains("no zookeeper.h"), "{error}");

    let no_header = Case::new("no_header").file("usual/lib/libzookeeper_mt.so");
    let error = no_header.run().expect_err("half is there");
    assert!(error.contains("no zookeeper.h in"), "{error}");
    assert!(!error.contains("no libzookeeper_mt"), "{error}");
}

#[test]
fn header_and_library_of_two_installations_are_not_mixed() {
    let case = Case::new("mixed")
        .file("usual/include/zookeeper/zookeeper.h")
        .file("other/lib/libzookeeper_mt.so");
    let error = case.run().expect_err("neither is whole");
    assert!(error.contains("not of one installation"), "{error}");

    let whole = case.file("other/include/zookeeper/zookeeper.h");
    assert_eq!(whole.found(), pair("other/include/zookeeper", "other/lib/libzookeeper_mt.so"));
}

#[test]
fn the_usual_places_have_multiarch_directories() {
    let case = Case::new("multiarch")
        .installed("usual")
        .file("usual/lib/x86_64-linux-gnu/libzookeeper_mt.so");
    assert_eq!(case.found().1, "usual/lib/x86_64-linux-gnu/libzookeeper_mt.so");
}

#[test]
fn a_variable_wins_over_pkg_config_and_that_over_the_usual_places() {
    let mut case = Case::new("order")
        .installed("usual")
        .installed("packaged")
        .installed("mine")
        .installed("for-target");
    assert_eq!(case.found().0, "usual/include/zookeeper");
    case.packaged = Some("packaged");
    assert_eq!(case.found().0, "packaged/include/zookeeper");
    let case = case.set("ZOOKEEPER_DIR", "mine");
    assert_eq!(case.found().0, "mine/include/zookeeper");
    let case = case.set(PREFIXED, "for-target");
    assert_eq!(case.found().0, "for-target/include/zookeeper");
    let case = case.set("ZOOKEEPER_DIR", "nowhere");
    assert_eq!(case.found().0, "for-target/include/zookeeper");
}

#[test]
fn what_pkg_config_says_is_not_taken_on_trust() {
    let mut case = Case::new("packaged").installed("usual");
    case.packaged = Some("gone");
    assert_eq!(case.found().0, "usual/include/zookeeper");
}

#[test]
fn a_variable_that_leads_nowhere_is_an_error() {
    let case = Case::new("nowhere").installed("usual").set("ZOOKEEPER_DIR", "nowhere");
    let error = case.run().expect_err("it was told otherwise");
    assert!(error.contains("as told by ZOOKEEPER_DIR"), "{error}");
    assert!(!error.contains("usual"), "{error}");
}

#[test]
fn a_relative_path_is_refused_by_name() {
    let mut case = Case::new("relative").installed("usual");
    case.variables.insert("ZOOKEEPER_LIB_DIR", "../lib".into());
    let error = case.run().expect_err("relative to what?");
    assert!(error.contains("ZOOKEEPER_LIB_DIR is ../lib: an absolute path"), "{error}");
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let mut case = Case::new("empty").installed("usual");
    case.variables.insert("ZOOKEEPER_DIR", OsString::new());
    assert_eq!(case.found().0, "usual/include/zookeeper");
}

#[test]
fn the_halves_can_be_named_each_alone() {
    let case = Case::new("halves")
        .installed("mine")
        .file("flat/zookeeper.h")
        .file("libs/libzookeeper_mt.so")
        .installed("usual");
    let case = case.set("ZOOKEEPER_INCLUDE_DIR", "flat");
    assert_eq!(case.found(), pair("flat", "usual/lib/libzookeeper_mt.so"));
    let case = case.set("ZOOKEEPER_DIR", "mine");
    assert_eq!(case.found(), pair("flat", "mine/lib/libzookeeper_mt.so"));
    let case = case.set("ZOOKEEPER_LIB_DIR", "libs");
    assert_eq!(case.found(), pair("flat", "libs/libzookeeper_mt.so"));
}

#[test]
fn the_header_of_a_named_library_is_looked_for_beside_it_first() {
    let case = Case::new("beside")
        .installed("mine")
        .installed("usual")
        .set("ZOOKEEPER_LIB_DIR", "mine/lib");
    assert_eq!(case.found(), pair("mine/include/zookeeper", "mine/lib/libzookeeper_mt.so"));
}

#[test]
fn an_archive_is_linked_when_wanted_or_when_there_is_nothing_else() {
    let mut case = Case::new("archive").installed("usual");
    case.want_static = true;
    let error = case.run().expect_err("there is no archive");
    assert!(error.contains("libzookeeper_mt.a"), "{error}");

    let mut case = case.file("usual/lib/libzookeeper_mt.a");
    assert_eq!(case.run().map(|found| found.kind), Ok(Kind::Static));
    case.want_static = false;
    assert_eq!(case.run().map(|found| found.kind), Ok(Kind::Dylib));
    fs::remove_file(case.root.join("usual/lib/libzookeeper_mt.so")).expect("it was made above");
    assert_eq!(case.run().map(|found| found.kind), Ok(Kind::Static));
}

#[test]
fn another_targets_library_is_not_taken_from_this_machine() {
    let prefixes = crate::find::usual_prefixes("aarch64-unknown-linux-gnu", false, None);
    assert_eq!(prefixes, [Path::new("/usr"), Path::new("/usr/aarch64-linux-gnu")]);
    let prefixes = crate::find::usual_prefixes("i686-unknown-linux-gnu", false, None);
    assert_eq!(prefixes, [Path::new("/usr"), Path::new("/usr/i686-linux-gnu")]);
    let search = Search {
        target: "aarch64-unknown-linux-gnu",
        native: false,
        want_static: false,
        variable: &|_| None,
        pkg_config: &|| None,
        prefixes: vec!["/usr".into()],
    };
    if let Err(error) = search.run() {
        assert!(error.contains("/usr/lib/aarch64-linux-gnu\n"), "{error}");
        assert!(!error.contains("/usr/lib64"), "{error}");
    }
}
