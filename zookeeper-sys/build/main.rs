//! Finds or builds `libzookeeper_mt`, links it, and tells dependants what it is.

#[cfg(feature = "buildtime-bindgen")]
mod bindings;
mod find;
mod secure;
mod source;
mod version;

use std::env;
use std::path::{Path, PathBuf};

use find::{Kind, Search};
use secure::Secure;
use version::Version;

/// The version of the header that `src/bindings.rs` was made from.
const CHECKED_IN_VERSION: &str = "3.8.0";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(zookeeper_sys_generated)");
    for name in ["tls", "sasl"] {
        println!(
            "cargo::rustc-check-cfg=cfg(zookeeper_sys_{name}, values(none(), \"own\", \"library\"))"
        );
    }
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    // The tests of this crate run the same searches and probes once more.
    println!("cargo::rustc-env=ZOOKEEPER_SYS_TARGET={target}");

    if env::var_os("DOCS_RS").is_some() {
        // Documentation and lints link nothing, so nothing is searched for or built. They see what the features declare.
        println!("cargo::rustc-env=ZOOKEEPER_SYS_VERSION={CHECKED_IN_VERSION}");
        println!("cargo::rustc-env=ZOOKEEPER_SYS_INCLUDE=");
        declare(Secure::wanted(), "own");
    } else if let Err(error) = provide(&target) {
        // Errors that are logged this way are shown alone, without the script's whole output.
        for line in error.lines() {
            println!("cargo::error={line}");
        }
    }
}

fn provide(target: &str) -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let tree = source_tree(target)?;
    let (include, link_kind, secure) = match &tree {
        Some(tree) => (source::headers(tree, &out)?, "source", Secure::wanted()),
        None => installed(target)?,
    };

    let version = Version::of_header(&include, &out, cc::Build::new())?;
    version.require_supported(&include)?;
    generate_bindings(&include, &out)?;
    // After the checks, so that a tree that is too old fails by its version and not in its code.
    if let Some(tree) = &tree {
        source::compile(tree, &out, version, secure)?;
        link_what_the_archive_needs();
    }

    println!("cargo::rustc-env=ZOOKEEPER_SYS_VERSION={version}");
    println!("cargo::rustc-env=ZOOKEEPER_SYS_INCLUDE={}", include.display());
    println!("cargo::metadata=version={version}");
    println!("cargo::metadata=version_number={}", version.number());
    println!("cargo::metadata=include={}", include.display());
    println!("cargo::metadata=link_kind={link_kind}");
    declare(secure, if tree.is_some() { "own" } else { "library" });
    Ok(())
}

/// Tells this crate and its dependants which kinds of secure connections there are, and whose they are.
fn declare(secure: Secure, whose: &str) {
    for (name, is_there) in [("tls", secure.tls), ("sasl", secure.sasl)] {
        println!("cargo::metadata={name}={}", if is_there { whose } else { "none" });
        if is_there {
            println!("cargo::rustc-cfg=zookeeper_sys_{name}");
            println!("cargo::rustc-cfg=zookeeper_sys_{name}=\"{whose}\"");
        }
    }
}

/// The tree to compile, if a feature asks for that.
fn source_tree(target: &str) -> Result<Option<PathBuf>, String> {
    let Some(feature) = source::asked_for_by() else {
        return Ok(None);
    };
    for name in find::names_of(source::VARIABLE, target) {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let tree = find::setting(source::VARIABLE, target, &|name| env::var_os(name))?;
    tree.map(Some).ok_or_else(|| source::not_named(feature))
}

/// Links the installed library; returns its header's directory, how it is linked, and what it has of TLS and SASL.
fn installed(target: &str) -> Result<(PathBuf, &'static str, Secure), String> {
    for name in find::VARIABLES {
        for name in find::names_of(name, target) {
            println!("cargo::rerun-if-env-changed={name}");
        }
    }
    println!("cargo::rerun-if-env-changed=HOMEBREW_PREFIX");
    let native = env::var("HOST").is_ok_and(|host| host == target);
    let found = Search {
        target,
        native,
        want_static: cfg!(feature = "static"),
        variable: &|name| env::var_os(name),
        pkg_config: &by_pkg_config,
        prefixes: find::usual_prefixes(target, native, env::var_os("HOMEBREW_PREFIX")),
    }
    .run()?;

    println!("cargo::rerun-if-changed={}", found.library.display());
    for header in ["zookeeper.h", "zookeeper_version.h", "zookeeper.jute.h"] {
        println!("cargo::rerun-if-changed={}", found.include.join(header).display());
    }
    let kind = match found.kind {
        Kind::Dylib => "dylib",
        Kind::Static => "static",
    };
    if !found.linker_knows {
        let dir = found.library.parent().unwrap_or(Path::new("/"));
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
    println!("cargo::rustc-link-lib={kind}=zookeeper_mt");
    if found.kind == Kind::Static {
        link_what_the_archive_needs();
    }
    let secure = Secure::of_library(&found.library)?;
    if secure.sasl {
        // Its own dependency, but what it is to be told is set up there.
        println!("cargo::rustc-link-lib=dylib=sasl2");
    }
    Ok((found.include, kind, secure))
}

/// An archive, unlike a shared object, does not name the libraries it uses itself.
fn link_what_the_archive_needs() {
    println!("cargo::rustc-link-lib=dylib=pthread");
    println!("cargo::rustc-link-lib=dylib=m");
}

/// No release ships a `.pc` file so far, but a packager may.
fn by_pkg_config() -> Option<find::Dirs> {
    ["zookeeper_mt", "libzookeeper_mt"].iter().find_map(|name| {
        pkg_config::Config::new()
            .cargo_metadata(false)
            .probe(name)
            .ok()
            .map(|library| find::Dirs { include: library.include_paths, lib: library.link_paths })
    })
}

#[cfg(feature = "buildtime-bindgen")]
fn generate_bindings(include: &Path, out: &Path) -> Result<(), String> {
    let text = bindings::generate(include)
        .map_err(|error| format!("cannot generate the bindings: {error}"))?;
    let file = out.join("bindings.rs");
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("cargo::rustc-cfg=zookeeper_sys_generated");
    Ok(())
}

#[cfg(not(feature = "buildtime-bindgen"))]
fn generate_bindings(_: &Path, _: &Path) -> Result<(), String> {
    Ok(())
}
