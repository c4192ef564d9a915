//! TLS and SASL: what an installed library has of them, and what a build from source needs for them.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that is compiled instead of `src/zookeeper.c` if either is wanted.
pub const CLIENT: &str = "build/secure_client.c";

/// The kinds of secure connections that the C client supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Secure {
    pub tls: bool,
    pub sasl: bool,
}

impl Secure {
    /// The kinds that the features ask for.
    pub fn wanted() -> Secure {
        Secure { tls: cfg!(feature = "tls"), sasl: cfg!(feature = "sasl") }
    }

    /// The kinds that the library in this file offers. A shared library and an archive contain the names of their
    /// functions.
    pub fn of_library(library: &Path) -> Result<Secure, String> {
        let bytes = fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
        // On Apple's systems names begin with an underscore.
        let has = |name: &str| {
            [format!("\0{name}\0"), format!("\0_{name}\0")]
                .iter()
                .any(|name| bytes.windows(name.len()).any(|window| window == name.as_bytes()))
        };
        Ok(Secure { tls: has("zookeeper_init_ssl"), sasl: has("zookeeper_init_sasl") })
    }

    pub fn is_any(self) -> bool {
        self.tls || self.sasl
    }

    /// The lines of config.h.
    pub fn config_h(self) -> String {
        let mut text = String::new();
        for (wanted, header) in [(self.tls, "HAVE_OPENSSL_H"), (self.sasl, "HAVE_CYRUS_SASL_H")] {
            if wanted {
                let _ = writeln!(text, "#define {header} 1");
            }
        }
        text
    }

    /// Finds the libraries that it rests on; gives the directories of their headers, and what has to be linked.
    ///
    /// OpenSSL is what `openssl-sys` has found or compiled, and links: a program has one of it.
    pub fn require(self) -> Result<(Vec<PathBuf>, Option<pkg_config::Library>), String> {
        let (mut include, mut linked) = (Vec::new(), None);
        if self.tls {
            // Not set if the compiler finds it by itself.
            include.extend(env::var_os("DEP_OPENSSL_INCLUDE").map(PathBuf::from));
        }
        if self.sasl {
            let mut probe = pkg_config::Config::new();
            let library = probe.cargo_metadata(false).env_metadata(true).probe("libsasl2");
            let library = library.map_err(|error| {
                format!(
                    "the feature `sasl` needs Cyrus SASL, which pkg-config does not find\n\
                     Debian, Ubuntu: apt-get install pkg-config libsasl2-dev\n\
                     Fedora: cyrus-sasl-devel; Alpine: cyrus-sasl-dev; Arch: libsasl\n{error}"
                )
            })?;
            include.extend(library.include_paths.iter().cloned());
            linked = Some(library);
        }
        Ok((include, linked))
    }
}
