//! TLS to servers of Redis, PostgreSQL and MariaDB, by rustls.

use std::fs;
use std::path::Path;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::tls::Tls;

/// Reads the files.
///
/// # Errors
/// The fault of a file by its name, or a setting that these stores do not support.
pub(crate) fn config(tls: &Tls) -> Result<ClientConfig, String> {
    if !tls.verify_host_name {
        return Err("only ZooKeeper's TLS can do without the server's name".to_owned());
    }
    if tls.key_password.is_some() {
        return Err("only ZooKeeper's TLS takes a key with a password".to_owned());
    }
    let authorities = authorities(&tls.ca)?;
    choose_provider();
    let builder = ClientConfig::builder().with_root_certificates(authorities);
    let Some(own) = &tls.own else { return Ok(builder.with_no_client_auth()) };
    let (chain, key) = (certificates(&own.cert, &read(&own.cert)?)?, key(&own.key)?);
    let of_both = |why| format!("{}, {}: {why}", own.cert.display(), own.key.display());
    builder.with_client_auth_cert(chain, key).map_err(of_both)
}

/// Makes ring the provider of the process, if none was chosen. A driver that finds several built in would panic.
pub(crate) fn choose_provider() {
    if CryptoProvider::get_default().is_none() {
        // It fails where another thread was faster.
        let _ = ring::default_provider().install_default();
    }
}

fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let text = read(file)?;
    if CertificateRevocationListDer::pem_slice_iter(&text).any(|list| list.is_ok()) {
        return Err(of(file, "only ZooKeeper's TLS reads revocation lists"));
    }
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(file, &text)? {
        authorities.add(certificate).map_err(|why| of(file, why))?;
    }
    Ok(authorities)
}

fn certificates(file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match all {
        Ok(none) if none.is_empty() => Err(of(file, "it has no certificate in PEM form")),
        Ok(all) => Ok(all),
        // The reader's message could show a part of a key.
        Err(_) => Err(of(file, "a section of it is no valid PEM")),
    }
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let keys: Result<Vec<_>, _> = PrivateKeyDer::pem_slice_iter(&read(file)?).collect();
    // Of several, each driver takes another.
    let [key] = <[_; 1]>::try_from(keys.unwrap_or_default())
        .map_err(|_| of(file, "it has no key in PEM form, several, or one with a password"))?;
    Ok(key)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|why| of(file, why))
}

fn of(file: &Path, why: impl std::fmt::Display) -> String {
    format!("{}: {why}", file.display())
}
