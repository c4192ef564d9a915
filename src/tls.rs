//! The settings for TLS.

use std::path::PathBuf;

use crate::secret::Secret;

/// TLS to the servers: of ZooKeeper (their `secureClientPort`, see [`ClientOptions::tls`](crate::ClientOptions::tls)), or
/// of another store (see [`StoreOptions::tls`](crate::StoreOptions::tls), which says what those do not support).
///
/// ```no_run
/// use zklock::Tls;
/// let tls = Tls::new("/etc/zk/ca.pem", "/etc/zk/client.pem", "/etc/zk/client.key")
///     .key_password_file("/etc/zk/client.password");
/// let zk = zklock::Client::options().tls(tls).connect("zk1:2281,zk2:2281").wait()?;
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Tls {
    pub(crate) ca: PathBuf,
    pub(crate) own: Option<Certificate>,
    pub(crate) key_password: Option<Secret>,
    pub(crate) verify_host_name: bool,
}

/// The client's own: two PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Tls {
    /// The PEM files with the authorities of the servers' certificates, the client's own certificate (with its
    /// intermediates), and its key. Servers ask for a certificate, unless their `ssl.clientAuth` is `want` or `none`.
    ///
    /// The files are read for each connection, so you can replace them while the client works. If the first one also
    /// has revocation lists of the authorities (`X509 CRL`), a revoked server is refused.
    pub fn new(ca: impl Into<PathBuf>, cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Tls {
        let own = Certificate { cert: cert.into(), key: key.into() };
        Tls { own: Some(own), ..Tls::without_certificate(ca) }
    }

    /// TLS without a certificate of the client, for servers with `ssl.clientAuth=none` or `want`. The C client must be
    /// compiled by this project (the features `source` and `tls`).
    pub fn without_certificate(ca: impl Into<PathBuf>) -> Tls {
        Tls { ca: ca.into(), own: None, key_password: None, verify_host_name: true }
    }

    /// The password of the key.
    pub fn key_password(mut self, password: impl Into<Vec<u8>>) -> Self {
        self.key_password = Some(Secret::Value(password.into()));
        self
    }

    /// The file with the password of the key in its first line. It is read when a session is opened.
    pub fn key_password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.key_password = Some(Secret::File(file.into()));
        self
    }

    /// Whether a server's certificate must match the name or address in `hosts` (the default). Otherwise any
    /// certificate of one of the authorities is accepted, so any of its owners, even a client, can pose as a server.
    pub fn verify_host_name(mut self, verify: bool) -> Self {
        self.verify_host_name = verify;
        self
    }
}
