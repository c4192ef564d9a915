//! Where the installed library and its header are: what variables say, else what pkg-config
//! says, else the usual places. Nothing here reads the environment, so tests can run it.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The variables that a user may set. Each may have the target as a prefix, as in
/// `X86_64_UNKNOWN_LINUX_GNU_ZOOKEEPER_DIR`, and then overrides the plain one.
pub const VARIABLES: [&str; 3] = [DIR, INCLUDE_DIR, LIB_DIR];
const DIR: &str = "ZOOKEEPER_DIR";
const INCLUDE_DIR: &str = "ZOOKEEPER_INCLUDE_DIR";
const LIB_DIR: &str = "ZOOKEEPER_LIB_DIR";

/// Directories to look for headers and libraries in.
#[derive(Default)]
pub struct Dirs {
    pub include: Vec<PathBuf>,
    pub lib: Vec<PathBuf>,
}

/// How the library that was found can be linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Dylib,
    Static,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The directory that holds `zookeeper.h` itself.
    pub include: PathBuf,
    pub library: PathBuf,
    pub kind: Kind,
    /// The linker looks there without being told, so that its order of directories stays as it is.
    pub linker_knows: bool,
}

pub struct Search<'a> {
    pub target: &'a str,
    /// Whether the target is the machine that builds.
    pub native: bool,
    pub want_static: bool,
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub pkg_config: &'a dyn Fn() -> Option<Dirs>,
    /// The usual places, best first.
    pub prefixes: Vec<PathBuf>,
}

impl Search<'_> {
    pub fn run(&self) -> Result<Found, String> {
        let setting = |name| setting(name, self.target, self.variable);
        let (dir, include, lib) = (setting(DIR)?, setting(INCLUDE_DIR)?, setting(LIB_DIR)?);
        if dir.is_some() || include.is_some() || lib.is_some() {
            return self.as_told(dir, include, lib);
        }
        if let Some(dirs) = (self.pkg_config)() {
            if let Ok(found) = self.pair(&dirs, "") {
                return Ok(found);
            }
        }
        // Header and library of one prefix belong together; those of two need not.
        let mut seen = Dirs::default();
        for prefix in &self.prefixes {
            let dirs = self.under(prefix);
            if let Ok(mut found) = self.pair(&dirs, "") {
                found.linker_knows =
                    self.native && found.kind == Kind::Dylib && prefix == Path::new("/usr");
                return Ok(found);
            }
            seen.include.extend(dirs.include);
            seen.lib.extend(dirs.lib);
        }
        self.pair(&seen, "").and_then(|mixed| {
            Err(self.explain(&format!(
                "{} and {} are not of one installation",
                mixed.include.join("zookeeper.h").display(),
                mixed.library.display()
            )))
        })
    }

    /// A variable that is set is obeyed: what is not there is an error, not a reason to look on.
    fn as_told(
        &self,
        dir: Option<PathBuf>,
        include: Option<PathBuf>,
        lib: Option<PathBuf>,
    ) -> Result<Found, String> {
        let mut dirs = Dirs::default();
        let mut told = Vec::new();
        if let Some(dir) = &dir {
            told.push(DIR);
            dirs.include.extend([dir.join("include"), dir.clone()]);
            dirs.lib.extend(self.lib_dirs(dir, true));
        }
        if let Some(include) = include {
            told.push(INCLUDE_DIR);
            dirs.include = vec![include];
        }
        if let Some(lib) = lib {
            told.push(LIB_DIR);
            dirs.lib = vec![lib];
        }
        // What is still open is looked for beside the half that was named, then as usual.
        if dirs.include.is_empty() {
            let beside = dirs.lib.iter().flat_map(|lib| lib.ancestors().skip(1));
            dirs.include = beside.take(2).map(|above| above.join("include")).collect();
            dirs.include.extend(self.usual().include);
        }
        if dirs.lib.is_empty() {
            dirs.lib = self.usual().lib;
        }
        self.pair(&dirs, &told.join(", "))
    }

    fn usual(&self) -> Dirs {
        let mut all = Dirs::default();
        for prefix in &self.prefixes {
            let dirs = self.under(prefix);
            all.include.extend(dirs.include);
            all.lib.extend(dirs.lib);
        }
        all
    }

    fn under(&self, prefix: &Path) -> Dirs {
        Dirs {
            include: vec![prefix.join("include")],
            // /usr/lib holds the libraries of the machine that builds, whatever the target.
            lib: self.lib_dirs(prefix, self.native || prefix != Path::new("/usr")),
        }
    }

    fn lib_dirs(&self, prefix: &Path, with_plain: bool) -> Vec<PathBuf> {
        let mut dirs = vec![prefix.join("lib").join(multiarch(self.target))];
        if with_plain {
            dirs.extend([prefix.join("lib64"), prefix.join("lib")]);
        }
        dirs
    }

    /// The first header and the first library of `dirs`; `told` names the variables obeyed.
    fn pair(&self, dirs: &Dirs, told: &str) -> Result<Found, String> {
        let header = dirs.include.iter().find_map(|dir| header_dir(dir));
        let library = dirs.lib.iter().find_map(|dir| self.library_in(dir));
        if let (Some(include), Some((library, kind))) = (&header, &library) {
            return Ok(Found {
                include: include.clone(),
                library: library.clone(),
                kind: *kind,
                linker_knows: false,
            });
        }
        let mut what = String::new();
        if header.is_none() {
            let _ = writeln!(what, "no zookeeper.h in {}", listed(&dirs.include));
        }
        if library.is_none() {
            let _ = writeln!(what, "no {} in {}", self.wanted(), listed(&dirs.lib));
        }
        if !told.is_empty() {
            let _ = writeln!(what, "(as told by {told})");
        }
        Err(self.explain(what.trim_end()))
    }

    fn wanted(&self) -> &'static str {
        match (self.want_static, is_apple(self.target)) {
            (true, _) => "libzookeeper_mt.a (feature `static`)",
            (false, true) => "libzookeeper_mt.dylib",
            (false, false) => "libzookeeper_mt.so",
        }
    }

    /// An archive will do where there is no shared object.
    fn library_in(&self, dir: &Path) -> Option<(PathBuf, Kind)> {
        let shared =
            if is_apple(self.target) { "libzookeeper_mt.dylib" } else { "libzookeeper_mt.so" };
        [(shared, Kind::Dylib), ("libzookeeper_mt.a", Kind::Static)]
            .into_iter()
            .filter(|(_, kind)| *kind == Kind::Static || !self.want_static)
            .map(|(name, kind)| (dir.join(name), kind))
            .find(|(file, _)| file.is_file())
    }

    fn explain(&self, what: &str) -> String {
        let prefixed = &names_of(DIR, self.target)[0];
        format!(
            "cannot find ZooKeeper's C client (libzookeeper_mt, 3.7 or later) for {}:\n\
             {what}\n\
             Debian, Ubuntu: apt-get install libzookeeper-mt-dev\n\
             macOS with Homebrew: brew install zookeeper\n\
             FreeBSD: pkg install libzookeeper; Nix: the package zookeeper_mt\n\
             Arch: libzookeeper-git from the AUR, or the source; Fedora, Alpine and others without a package: the source\n\
             from source: enable the feature `source`, and set ZOOKEEPER_SRC_DIR (README.md of zookeeper-sys)\n\
             installed elsewhere: set {DIR} to its prefix, or {INCLUDE_DIR} and {LIB_DIR}\n\
             (for one target only: {prefixed} and so on)",
            self.target
        )
    }
}

/// The places to look in when nothing is set, in the order in which compilers look.
pub fn usual_prefixes(target: &str, native: bool, homebrew: Option<OsString>) -> Vec<PathBuf> {
    if !native {
        // Debian's multiarch directories and its older cross packages, which name the processor as the target does.
        let cross = multiarch(target).replacen("i386-", "i686-", 1);
        return vec!["/usr".into(), Path::new("/usr").join(cross)];
    }
    let mut prefixes: Vec<PathBuf> = vec!["/usr/local".into(), "/usr".into()];
    prefixes.extend(homebrew.map(PathBuf::from));
    for name in ["/opt/homebrew", "/opt/local", "/opt/zookeeper"] {
        prefixes.push(name.into());
    }
    prefixes
}

/// The name with the target in front, then the plain name.
pub fn names_of(name: &str, target: &str) -> [String; 2] {
    let prefix = target.to_uppercase().replace(['-', '.'], "_");
    [format!("{prefix}_{name}"), name.to_owned()]
}

/// The path that a variable has for `target`. An empty one counts as not set. A relative one would begin in this
/// package's directory, where no user looks.
pub fn setting(
    name: &str,
    target: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<PathBuf>, String> {
    for name in names_of(name, target) {
        match variable(&name).filter(|value| !value.is_empty()).map(PathBuf::from) {
            Some(path) if path.is_relative() => {
                return Err(format!("{name} is {}: an absolute path is needed", path.display()));
            }
            Some(path) => return Ok(Some(path)),
            None => {}
        }
    }
    Ok(None)
}

/// Installations keep the header in `zookeeper/`; a variable may point right into it.
fn header_dir(dir: &Path) -> Option<PathBuf> {
    [dir.join("zookeeper"), dir.to_owned()]
        .into_iter()
        .find(|dir| dir.join("zookeeper.h").is_file())
}

/// Debian's name for a target: `x86_64-unknown-linux-gnu` is `x86_64-linux-gnu`.
fn multiarch(target: &str) -> String {
    let mut parts: Vec<&str> = target.split('-').collect();
    if parts.len() == 4 {
        parts.remove(1);
    }
    parts[0] = match parts[0] {
        "i586" | "i686" => "i386",
        arch if arch.starts_with("armv") || arch.starts_with("thumbv") => "arm",
        arch if arch.starts_with("riscv64") => "riscv64",
        arch => arch,
    };
    parts.join("-")
}

fn is_apple(target: &str) -> bool {
    target.contains("-apple-")
}

fn listed(dirs: &[PathBuf]) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    if dirs.is_empty() { "any place".to_owned() } else { dirs.join(", ") }
}
