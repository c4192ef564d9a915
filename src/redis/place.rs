//! The server's address, and how to connect to it.

#[cfg(feature = "redis-tls")]
use std::fs;
use std::time::Duration;

use redis::{Connection, ConnectionInfo, IntoConnectionInfo as _, RedisResult};

use crate::tls::Tls;

#[derive(Clone)]
pub(super) struct Place {
    server: ConnectionInfo,
    #[cfg_attr(not(feature = "redis-tls"), allow(dead_code, reason = "there is none"))]
    tls: Option<Tls>,
}

impl Place {
    /// By its address; `None` if the driver cannot read that.
    pub(super) fn new(address: &str, tls: Option<&Tls>) -> Option<Place> {
        #[cfg(feature = "redis-tls")]
        crate::leased::tls::choose_provider();
        let server = match (tls, address.strip_prefix("redis:")) {
            (Some(_), Some(rest)) => format!("rediss:{rest}").into_connection_info(),
            _ => address.into_connection_info(),
        };
        Some(Place { server: server.ok()?, tls: tls.cloned() })
    }

    /// Gives up after `limit`.
    pub(super) fn connect(&self, limit: Duration) -> RedisResult<Connection> {
        self.client()?.get_connection_with_timeout(limit)
    }

    /// A client with the current files.
    #[cfg(feature = "redis-tls")]
    fn client(&self) -> RedisResult<redis::Client> {
        let Some(tls) = &self.tls else { return redis::Client::open(self.server.clone()) };
        // The driver overlooks revocation lists, and its errors name no file.
        crate::leased::tls::config(tls).map_err(std::io::Error::other)?;
        let own = tls.own.as_ref().map(|own| {
            let (client_cert, client_key) = (fs::read(&own.cert)?, fs::read(&own.key)?);
            Ok::<_, std::io::Error>(redis::ClientTlsConfig { client_cert, client_key })
        });
        let files = redis::TlsCertificates {
            client_tls: own.transpose()?,
            root_cert: Some(fs::read(&tls.ca)?),
        };
        redis::Client::build_with_tls(self.server.clone(), files)
    }

    #[cfg(not(feature = "redis-tls"))]
    fn client(&self) -> RedisResult<redis::Client> {
        redis::Client::open(self.server.clone())
    }
}
