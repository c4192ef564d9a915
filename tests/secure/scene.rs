//! Servers that speak TLS or SASL, and clients that do.

use std::time::Duration;

use test_support::options;
use zklock::ClientOptions;
use zklock::zookeeper::Tls;
use zklock_testing::{Builder, Server};

use crate::authority::{Authority, Certificate};

pub const HERE: &str = "IP:127.0.0.1,DNS:localhost";

/// An authority, and servers whose certificates it has signed.
pub struct Scene {
    pub authority: Authority,
    pub directory: tempfile::TempDir,
    client: Certificate,
}

impl Scene {
    pub fn new() -> Scene {
        let authority = Authority::new();
        let client = authority.certificate("client", "DNS:client.example", None);
        Scene { authority, directory: tempfile::tempdir().unwrap(), client }
    }

    /// What servers with a certificate for these names are started with.
    pub fn servers(&self, names: &str) -> Builder {
        let certificate = self.authority.certificate("server", names, None);
        let store = self.authority.key_store(&certificate);
        Server::builder()
            .secure_client_port(true)
            .property("ssl.keyStore.location", store.display().to_string())
            .property("ssl.trustStore.location", self.authority.ca().display().to_string())
            // The names of clients are not verified by what they resolve to.
            .property("ssl.hostnameVerification", "false")
            .property("ssl.clientHostnameVerification", "false")
    }

    pub fn tls(&self) -> Tls {
        Tls::new(self.authority.ca(), &self.client.cert, &self.client.key)
    }

    pub fn client(&self) -> &Certificate {
        &self.client
    }
}

/// Time enough to find out what is wrong, and no more.
pub fn briefly() -> ClientOptions {
    options().connect_timeout(Duration::from_secs(5))
}
