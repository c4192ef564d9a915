//! The version of a header, as the C preprocessor sees it.

use std::fmt;
use std::fs;
use std::path::Path;

/// The first release with all that the bindings name, and with their layout of `zoo_op_t` (its `ttl`), which a multi
/// passes in arrays.
const OLDEST: Version = Version { major: 3, minor: 7, patch: 0 };

/// Newer headers give one string, older ones three numbers.
const PROBE: &str = r"#include <zookeeper_version.h>
#if defined(ZOO_VERSION)
zookeeper_sys_probe ZOO_VERSION
#elif defined(ZOO_MAJOR_VERSION)
zookeeper_sys_probe ZOO_MAJOR_VERSION.ZOO_MINOR_VERSION.ZOO_PATCH_VERSION
#endif
";
const MARK: &str = "zookeeper_sys_probe";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    /// Asks the compiler of `build`. `scratch` is a directory to write the question to.
    pub fn of_header(include: &Path, scratch: &Path, mut build: cc::Build) -> Result<Self, String> {
        let probe = scratch.join("version_probe.c");
        fs::write(&probe, PROBE).map_err(|error| format!("{}: {error}", probe.display()))?;
        let expanded = build
            .include(include)
            .file(&probe)
            .cargo_metadata(false)
            .cargo_warnings(false)
            .try_expand()
            .map_err(|error| {
                format!(
                    "cannot preprocess {}: {error}\n\
                     a C compiler for {} is needed (Debian: apt-get install gcc, or gcc-ARCHITECTURE-linux-gnu to \
                     cross-compile), or CC set to one",
                    include.join("zookeeper_version.h").display(),
                    std::env::var("TARGET").as_deref().unwrap_or("this machine"),
                )
            })?;
        Self::of_expanded(&String::from_utf8_lossy(&expanded)).ok_or_else(|| {
            format!(
                "{} does not say which version it is of",
                include.join("zookeeper_version.h").display()
            )
        })
    }

    /// Reads what the preprocessor made of the probe, in which macros may be set apart by blanks.
    fn of_expanded(text: &str) -> Option<Self> {
        let answer = text.lines().find_map(|line| line.trim_start().strip_prefix(MARK))?;
        let plain: String = answer.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
        // A qualifier such as -SNAPSHOT says nothing about what the header offers.
        let mut numbers = plain.split(['.', '-']).map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { major: next()?, minor: next()?, patch: next()? })
    }

    pub fn require_supported(self, include: &Path) -> Result<(), String> {
        if self >= OLDEST {
            return Ok(());
        }
        Err(format!(
            "{} is of ZooKeeper {self}, which is too old: {}.{} or later is needed\n\
             another one can be named by ZOOKEEPER_DIR, or compiled: enable the feature `source`, and set \
             ZOOKEEPER_SRC_DIR (README.md of zookeeper-sys)",
            include.join("zookeeper.h").display(),
            OLDEST.major,
            OLDEST.minor
        ))
    }

    /// One number to compare by: 3.8.0 is 3008000.
    pub fn number(self) -> u32 {
        self.major * 1_000_000 + self.minor * 1_000 + self.patch
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
