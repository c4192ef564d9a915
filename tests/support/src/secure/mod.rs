//! Servers that speak TLS or SASL, and clients that do.

mod authority;

use std::path::PathBuf;
use std::time::Duration;

use zklock::ClientOptions;
use zklock::Tls;
use zklock_testing::{Builder, Server};

use crate::options;

pub use authority::{Authority, Certificate};

/// The names of servers on this machine.
pub const HERE: &str = "IP:127.0.0.1,DNS:localhost";

/// An authority, and servers whose certificates it has signed.
pub struct Scene {
    /// It has signed all certificates.
    pub authority: Authority,
    /// For files of the test.
    pub directory: tempfile::TempDir,
    client: Certificate,
}

impl Scene {
    /// With a certificate for a client.
    #[allow(clippy::new_without_default, reason = "it runs programs")]
    pub fn new() -> Scene {
        let authority = Authority::new();
        let client = authority.certificate("client", "DNS:client.example", None);
        Scene { authority, directory: tempfile::tempdir().unwrap(), client }
    }

    /// What servers with a certificate for these names are started with.
    pub fn servers(&self, names: &str) -> Builder {
        self.servers_with(&self.authority.certificate("server", names, None))
    }

    /// What servers with this certificate are started with.
    pub fn servers_with(&self, certificate: &Certificate) -> Builder {
        let store = self.authority.key_store(certificate);
        Server::builder()
            .secure_client_port(true)
            .property("ssl.keyStore.location", store.display().to_string())
            .property("ssl.trustStore.location", self.authority.ca().display().to_string())
            // The names of clients are not verified by what they resolve to.
            .property("ssl.hostnameVerification", "false")
            .property("ssl.clientHostnameVerification", "false")
    }

    /// What the client connects with.
    pub fn tls(&self) -> Tls {
        Tls::new(self.authority.ca(), &self.client.cert, &self.client.key)
    }

    /// The client's certificate.
    pub fn client(&self) -> &Certificate {
        &self.client
    }
}

/// Time enough to find out what is wrong, and no more.
pub fn briefly() -> ClientOptions {
    options().connect_timeout(Duration::from_secs(5))
}

/// Servers that know bob and alice, in a directory that has to stay.
pub fn with_users(builder: Builder, directory: &tempfile::TempDir) -> Builder {
    let file: PathBuf = directory.path().join("jaas.conf");
    let users = "user_bob=\"bobs secret\" user_alice=\"alices secret\"";
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
    std::fs::write(&file, format!("Server {{ {module} required {users}; }};\n")).unwrap();
    builder
        .jvm_arg(format!("-Djava.security.auth.login.config={}", file.display()))
        .property("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
}
