//! Compiles the C client from the tree of a release, for machines without the library.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::secure::{CLIENT, Secure};
use crate::version::Version;

/// Names the directory `zookeeper-client/zookeeper-client-c` of a release.
pub const VARIABLE: &str = "ZOOKEEPER_SRC_DIR";

pub const HOW_TO_GET: &str = concat!(
    "Debian, Ubuntu: ",
    env!("CARGO_MANIFEST_DIR"),
    "/ci/c-client-source.sh DIR fetches the source, generates what is missing and prints the path\n\
     elsewhere: unpack a release; in its zookeeper-client/zookeeper-client-c, which is the path, make the directory \
     generated and in it run\n\
     java -cp BINARY_RELEASE/lib/zookeeper-jute-VERSION.jar org.apache.jute.compiler.generated.Rcc -l c \
     ../../../zookeeper-jute/src/main/resources/zookeeper.jute"
);

/// The feature that wants the C client compiled.
pub fn asked_for_by() -> Option<&'static str> {
    [
        ("tls", cfg!(feature = "tls")),
        ("sasl", cfg!(feature = "sasl")),
        ("source", cfg!(feature = "source")),
    ]
    .into_iter()
    .find_map(|(name, is_on)| is_on.then_some(name))
}

/// The error if no variable names a tree.
pub fn not_named(feature: &str) -> String {
    format!(
        "the feature `{feature}` of zookeeper-sys compiles ZooKeeper's C client, but {VARIABLE} does not name its source\n\
         {HOW_TO_GET}\n\
         or turn the feature off, to link the library that is installed, with what it has of TLS and SASL\n\
         (cargo doc, check and clippy link nothing: with DOCS_RS=1 they need no source)"
    )
}

pub const SOURCES: &[&str] = &[
    "src/addrvec.c",
    "src/hashtable/hashtable.c",
    "src/hashtable/hashtable_itr.c",
    "src/mt_adaptor.c",
    "src/recordio.c",
    "src/zk_hashtable.c",
    "src/zk_log.c",
    "src/zookeeper.c",
    "generated/zookeeper.jute.c",
];

pub const HEADERS: &[&str] = &[
    "include/proto.h",
    "include/recordio.h",
    "include/zookeeper.h",
    "include/zookeeper_log.h",
    "include/zookeeper_version.h",
    "generated/zookeeper.jute.h",
];

/// Headers that the sources include only where config.h says that they exist.
const OPTIONAL_HEADERS: &[&str] = &[
    "arpa/inet.h",
    "netdb.h",
    "netinet/in.h",
    "string.h",
    "sys/socket.h",
    "sys/time.h",
    "sys/utsname.h",
    "unistd.h",
];

/// Functions of POSIX, and so of every system with the headers above.
const FUNCTIONS: &[&str] = &["getcwd", "gethostname", "getlogin", "getpwuid_r", "getuid", "poll"];

/// Lays the headers out in `out` as an installation has them, so that what comes after need not
/// know where they are from; returns their directory.
pub fn headers(tree: &Path, out: &Path) -> Result<PathBuf, String> {
    require_complete(tree)?;
    for part in ["src", "include", "generated"] {
        println!("cargo::rerun-if-changed={}", tree.join(part).display());
    }
    let include = out.join("include").join("zookeeper");
    make_dir(&include)?;
    for header in HEADERS {
        let from = tree.join(header);
        let name = from.file_name().expect("every header has a file name");
        let to = include.join(name);
        // Not its permissions: what can only be read could not be written again by the next build.
        let text = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        fs::write(&to, text).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(include)
}

/// Compiles and links the tree that `headers` has accepted.
///
/// With TLS or SASL, a file of this crate's stands for `src/zookeeper.c`, which it includes.
pub fn compile(tree: &Path, out: &Path, version: Version, secure: Secure) -> Result<(), String> {
    let config = out.join("config");
    make_dir(&config)?;
    let file = config.join("config.h");
    let text = config_h(version) + &secure.config_h();
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;

    let mut build = cc::Build::new();
    for source in SOURCES {
        match *source {
            "src/zookeeper.c" if secure.is_any() => build.file(CLIENT),
            _ => build.file(tree.join(source)),
        };
    }
    if secure.sasl {
        build.file(tree.join("src/zk_sasl.c"));
    }
    println!("cargo::rerun-if-changed={CLIENT}");
    let (include, linked) = secure.require()?;
    build
        .includes(include)
        .include(&config)
        .include(tree.join("include"))
        .include(tree.join("generated"))
        .include(tree.join("src"))
        .define("THREADED", None)
        .define("_GNU_SOURCE", None)
        // Upstream's code, not ours to mend.
        .warnings(false)
        .try_compile("zookeeper_mt")
        .map_err(|error| format!("cannot compile {}: {error}", tree.display()))?;
    // After the directory of what was compiled: another C client may be where SASL is.
    if let Some(library) = linked {
        library.link_paths.iter().for_each(|path| {
            println!("cargo::rustc-link-search=native={}", path.display());
        });
        library.libs.iter().for_each(|name| println!("cargo::rustc-link-lib={name}"));
    }
    Ok(())
}

fn require_complete(tree: &Path) -> Result<(), String> {
    let absent: Vec<&str> =
        SOURCES.iter().chain(HEADERS).copied().filter(|file| !tree.join(file).is_file()).collect();
    let Some(first) = absent.first() else {
        return Ok(());
    };
    let why = if absent.iter().all(|file| file.starts_with("generated/")) {
        "the files that the jute compiler generates are missing"
    } else {
        "this is not the C client of a release"
    };
    Err(format!("{VARIABLE} is {}, where there is no {first}: {why}\n{HOW_TO_GET}", tree.display()))
}

/// The preprocessor itself detects the headers, for the compiler and target in use.
/// Close-on-exec sockets stay off, as in Debian's build.
fn config_h(version: Version) -> String {
    // How the client names itself in its log.
    let mut text = format!("#define PACKAGE_STRING \"zookeeper C client {version}\"\n");
    for header in OPTIONAL_HEADERS {
        let name = macro_for(header);
        let _ = write!(text, "#if __has_include(<{header}>)\n#define {name} 1\n#endif\n");
    }
    for function in FUNCTIONS {
        let _ = writeln!(text, "#define {} 1", macro_for(function));
    }
    text
}

fn macro_for(name: &str) -> String {
    let name = name.to_uppercase().replace(['/', '.'], "_");
    format!("HAVE_{name}")
}

fn make_dir(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))
}
