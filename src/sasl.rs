//! A client's settings for SASL.

use std::path::PathBuf;

use crate::secret::Secret;

/// A client's identity for SASL: see [`ClientOptions::sasl`](crate::ClientOptions::sasl).
///
/// ```no_run
/// use zklock::zookeeper::Sasl;
/// let sasl = Sasl::digest_md5("bob").password_file("/etc/zk/bob.password");
/// let zk = zklock::Client::options().sasl(sasl).connect("zk1,zk2,zk3").wait()?;
/// # Ok::<(), zklock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Sasl {
    pub(crate) mechanism: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) service: String,
    pub(crate) host: Option<String>,
    pub(crate) realm: Option<String>,
}

impl Sasl {
    /// A mechanism, such as `GSSAPI`, which takes the user from the process's ticket. On Debian it is in
    /// `libsasl2-modules-gssapi-mit`.
    pub fn new(mechanism: impl Into<String>) -> Sasl {
        Sasl {
            mechanism: mechanism.into(),
            user: None,
            password: None,
            service: "zookeeper".to_owned(),
            host: None,
            realm: None,
        }
    }

    /// `DIGEST-MD5` for a user of the servers' JAAS file, with a password. On Debian the mechanism is in
    /// `libsasl2-modules`. It hides only the password on the network: use TLS with it.
    pub fn digest_md5(user: impl Into<String>) -> Sasl {
        // By this name ZooKeeper's servers know themselves there, whatever they are called.
        Sasl::new("DIGEST-MD5").user(user).host("zk-sasl-md5")
    }

    /// The user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The user's password.
    pub fn password(mut self, password: impl Into<Vec<u8>>) -> Self {
        self.password = Some(Secret::Value(password.into()));
        self
    }

    /// The file with the user's password in its first line. It is read for each connection.
    pub fn password_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.password = Some(Secret::File(file.into()));
        self
    }

    /// The name of the service, the first part of the servers' principal. The default is `zookeeper`.
    pub fn service(mut self, service: impl Into<String>) -> Self {
        self.service = service.into();
        self
    }

    /// The name of the servers, the second part of their principal. The default is the server's address; for
    /// `DIGEST-MD5` it is `zk-sasl-md5`, as ZooKeeper's servers expect.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = Some(host.into());
        self
    }

    /// The realm, if the servers have several.
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }
}
