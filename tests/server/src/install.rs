//! Finds the Java and the ZooKeeper that this machine has. Nothing is downloaded.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Where Debian's `libzookeeper-java` package puts its jars.
const DEBIAN_JARS: &str = "/usr/share/java";

/// A Java and a class path that can start ZooKeeper.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) java: PathBuf,
    pub(crate) class_path: OsString,
}

impl Installation {
    /// `ZOOKEEPER_HOME` goes before Debian's package, `JAVA_HOME` before `PATH`.
    pub(crate) fn find() -> Result<Installation> {
        let class_path = match env::var_os("ZOOKEEPER_HOME").filter(|home| !home.is_empty()) {
            Some(home) => release_class_path(Path::new(&home))?,
            None => debian_class_path(Path::new(DEBIAN_JARS))?,
        };
        Ok(Installation { java: find_java()?, class_path })
    }
}

fn find_java() -> Result<PathBuf> {
    let mut tried = Vec::new();
    let home = env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    let homes = home.map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    for directory in homes.into_iter().chain(env::split_paths(&path)) {
        let java = directory.join("java");
        if java.is_file() {
            return Ok(java);
        }
        tried.push(java.display().to_string());
    }
    Err(Error::NoJava { tried: tried.join(", ") })
}

fn debian_class_path(directory: &Path) -> Result<OsString> {
    let zookeeper = directory.join("zookeeper.jar");
    if !zookeeper.is_file() {
        return Err(Error::NoZooKeeper {
            tried: format!("ZOOKEEPER_HOME is not set, no {}", zookeeper.display()),
        });
    }
    // The jar's manifest names the rest. It names no logger: the simple one writes warnings to the log that start
    // failures quote; without it they would be silent.
    // Nor all of Netty, which TLS takes.
    let more =
        ["slf4j-simple", "netty-codec", "netty-resolver", "netty-transport-native-unix-common"];
    let more = more.iter().map(|name| directory.join(format!("{name}.jar")));
    Ok(joined(&std::iter::once(zookeeper).chain(more).collect::<Vec<_>>()))
}

/// The jars of an unpacked release: its `lib`, and for old releases its top directory.
fn release_class_path(home: &Path) -> Result<OsString> {
    let mut jars = Vec::new();
    for directory in [home.join("lib"), home.to_path_buf()] {
        let Ok(entries) = directory.read_dir() else {
            continue;
        };
        jars.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".jar") && !name.contains("-sources") && !name.contains("-javadoc")
        }));
    }
    jars.sort();
    let is_server = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("zookeeper-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if !jars.iter().any(is_server) {
        return Err(Error::NoZooKeeper {
            tried: format!("no zookeeper-<version>.jar in {} or its lib", home.display()),
        });
    }
    Ok(joined(&jars))
}

fn joined(jars: &[PathBuf]) -> OsString {
    // Only a colon within a path can make this fail, and then java would not find the jar either.
    env::join_paths(jars).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_package_is_named_with_its_remedy() {
        let empty = tempfile::tempdir().unwrap();
        let message = debian_class_path(empty.path()).unwrap_err().to_string();
        assert!(message.contains("apt-get install libzookeeper-java"), "{message}");
        let message = release_class_path(empty.path()).unwrap_err().to_string();
        assert!(message.contains("ZOOKEEPER_HOME"), "{message}");
    }

    #[test]
    fn a_release_is_found_by_its_server_jar() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("lib")).unwrap();
        for jar in ["zookeeper-3.9.5.jar", "slf4j-api-2.0.jar", "notes.txt"] {
            std::fs::write(home.path().join("lib").join(jar), "").unwrap();
        }
        let class_path = release_class_path(home.path()).unwrap();
        let jars: Vec<_> = env::split_paths(&class_path).collect();
        assert_eq!(jars.len(), 2);
    }
}
