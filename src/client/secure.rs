//! Whether TLS and SASL can be had here, and a connection by TLS that asks a host how it is.

use std::io::{Read, Write};
use std::net::TcpStream;

use zookeeper_sys::secure::{Secured, sasl as c_sasl, tls as c_tls};

use crate::sasl::Sasl;
use crate::tls::Tls;

/// How to come by a C client that has them.
const REMEDY: &str = "set ZOOKEEPER_SRC_DIR to its source (zookeeper-sys/ci/c-client-source.sh DIR fetches Debian's), and \
                      build zklock with the features tls and sasl";

/// # Errors
/// Why there can be no such connection from here, and what would help.
pub(super) fn check(tls: Option<&Tls>, sasl: Option<&Sasl>) -> Result<(), String> {
    if let Some(tls) = tls {
        match c_tls() {
            Secured::Not => {
                return Err(format!("the C client that is linked was built without TLS: {REMEDY}"));
            }
            Secured::Library if tls.verify_host_name => {
                return Err(format!(
                    "the C client that is linked verifies no host names: {REMEDY}; or do without, by \
                     verify_host_name(false)"
                ));
            }
            Secured::Library if tls.own.is_none() => {
                return Err(format!(
                    "the C client that is linked needs a certificate and key for TLS: {REMEDY}"
                ));
            }
            Secured::Library if sasl.is_some() => {
                return Err(format!(
                    "the C client that is linked can't have both TLS and SASL: {REMEDY}"
                ));
            }
            _ => check_files(tls)?,
        }
    }
    match sasl {
        Some(_) if c_sasl() == Secured::Not => {
            Err(format!("the C client that is linked was built without SASL: {REMEDY}"))
        }
        #[cfg(zklock_sasl)]
        Some(sasl) => crate::raw::check_sasl(sasl),
        _ => Ok(()),
    }
}

/// Why a handshake came to nothing.
#[cfg_attr(not(feature = "tls"), allow(dead_code))]
pub(super) enum NoTls {
    Silent,
    Because(String),
}

/// A connection, by TLS or not.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Shakes hands, where TLS is wanted. Each step takes no longer than the stream's timeouts.
pub(super) fn dial(
    stream: TcpStream,
    host: &str,
    tls: Option<&Tls>,
) -> Result<Box<dyn Stream>, NoTls> {
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => by_tls(stream, host, tls),
    }
}

#[cfg(not(feature = "tls"))]
fn check_files(_: &Tls) -> Result<(), String> {
    Err("zklock was built without its feature tls".to_owned())
}

#[cfg(not(feature = "tls"))]
fn by_tls(_: TcpStream, _: &str, tls: &Tls) -> Result<Box<dyn Stream>, NoTls> {
    check_files(tls).map_err(NoTls::Because)?;
    Err(NoTls::Silent)
}

#[cfg(feature = "tls")]
use with_openssl::{by_tls, check_files};

#[cfg(feature = "tls")]
mod with_openssl {
    use std::fs;
    use std::net::{IpAddr, TcpStream};
    use std::path::Path;

    use openssl::error::ErrorStack;
    use openssl::pkey::PKey;
    use openssl::ssl::{
        HandshakeError, Ssl, SslContext, SslContextBuilder, SslMethod, SslVerifyMode,
    };
    use openssl::x509::X509VerifyResult;
    use openssl::x509::verify::X509VerifyFlags;

    use super::{NoTls, Stream};
    use crate::tls::{Certificate, Tls};

    /// The first line of a revocation list.
    const REVOCATIONS: &[u8] = b"-----BEGIN X509 CRL-----";

    /// Whether the files can be used, as the C client will use them.
    pub(super) fn check_files(tls: &Tls) -> Result<(), String> {
        context(tls).map(drop)
    }

    /// The first of what OpenSSL has to say.
    fn first(stack: &ErrorStack) -> String {
        let error = stack.errors().first();
        let reason = error.and_then(|error| error.reason()).unwrap_or("unknown error");
        reason.to_owned()
    }

    fn of(file: &Path, what: &str, error: &ErrorStack) -> String {
        format!("{}: {what}: {}", file.display(), first(error))
    }

    fn read(file: &Path) -> Result<Vec<u8>, String> {
        fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn context(tls: &Tls) -> Result<SslContext, String> {
        let general = |error: ErrorStack| format!("OpenSSL: {}", first(&error));
        let mut context = SslContext::builder(SslMethod::tls_client()).map_err(general)?;
        context.set_verify(SslVerifyMode::PEER);
        let authorities = read(&tls.ca)?;
        context
            .set_ca_file(&tls.ca)
            .map_err(|error| of(&tls.ca, "no certificate of an authority in PEM form", &error))?;
        if authorities.windows(REVOCATIONS.len()).any(|part| part == REVOCATIONS) {
            let flags = X509VerifyFlags::CRL_CHECK;
            context.verify_param_mut().set_flags(flags).map_err(general)?;
        }
        if let Some(own) = &tls.own {
            identify(&mut context, own, tls)?;
        }
        Ok(context.build())
    }

    /// With the client's own certificate.
    fn identify(
        context: &mut SslContextBuilder,
        own: &Certificate,
        tls: &Tls,
    ) -> Result<(), String> {
        read(&own.cert)?;
        context
            .set_certificate_chain_file(&own.cert)
            .map_err(|error| of(&own.cert, "no certificate in PEM form", &error))?;
        let key = read(&own.key)?;
        let password = tls.key_password.as_ref().map(|password| password.read()).transpose()?;
        let what = if password.is_some() {
            "no key in PEM form, or not with this password"
        } else {
            "no key in PEM form that needs no password"
        };
        let key = PKey::private_key_from_pem_callback(&key, |buffer| {
            let password = password.as_deref().unwrap_or_default();
            let length = password.len().min(buffer.len());
            buffer[..length].copy_from_slice(&password[..length]);
            Ok(length)
        })
        .map_err(|error| of(&own.key, what, &error))?;
        context.set_private_key(&key).and_then(|()| context.check_private_key()).map_err(|_| {
            let (key, cert) = (own.key.display(), own.cert.display());
            format!("{key}: not the key of the certificate in {cert}")
        })
    }

    pub(super) fn by_tls(
        stream: TcpStream,
        host: &str,
        tls: &Tls,
    ) -> Result<Box<dyn Stream>, NoTls> {
        let general = |error: ErrorStack| NoTls::Because(format!("OpenSSL: {}", first(&error)));
        let context = context(tls).map_err(NoTls::Because)?;
        let mut ssl = Ssl::new(&context).map_err(general)?;
        if tls.verify_host_name {
            let param = ssl.param_mut();
            let named = match host.parse::<IpAddr>() {
                Ok(address) => param.set_ip(address),
                Err(_) => param.set_host(host),
            };
            named.map_err(general)?;
        }
        ssl.connect(stream).map(|stream| Box::new(stream) as Box<dyn Stream>).map_err(|error| {
            match error {
                HandshakeError::WouldBlock(_) => NoTls::Silent,
                HandshakeError::SetupFailure(error) => general(error),
                HandshakeError::Failure(failed) => {
                    let verified = failed.ssl().verify_result();
                    NoTls::Because(if verified == X509VerifyResult::OK {
                        refused(failed.error().ssl_error(), tls)
                    } else {
                        unverified(verified, tls)
                    })
                }
            }
        })
    }

    fn unverified(why: X509VerifyResult, tls: &Tls) -> String {
        // The numbers of X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
        match why.as_raw() {
            62 | 64 => "its certificate is for another host name".to_owned(),
            // X509_V_ERR_CERT_REVOKED.
            23 => format!("its certificate is revoked, by a list in {}", tls.ca.display()),
            _ => format!(
                "its certificate is none that {} vouches for ({})",
                tls.ca.display(),
                why.error_string()
            ),
        }
    }

    fn refused(error: Option<&ErrorStack>, tls: &Tls) -> String {
        match error.filter(|stack| !stack.errors().is_empty()).map(first) {
            Some(why) if why.contains("alert") && tls.own.is_none() => {
                format!("it asks for a certificate, or refuses all of TLS ({why})")
            }
            Some(why) if why.contains("alert") => {
                format!("it refuses our certificate, or all of TLS ({why})")
            }
            Some(why) => {
                format!(
                    "it does not speak TLS, or none of this kind ({why}): is it the secureClientPort?"
                )
            }
            None => "it ends the connection instead: is it the secureClientPort?".to_owned(),
        }
    }
}

/// The TLS alert in an error from asking a host, if there is one.
pub(super) fn alert(error: &std::io::Error, tls: Option<&Tls>) -> Option<String> {
    let why = error.get_ref().map(ToString::to_string)?;
    let what = match tls.and_then(|tls| tls.own.as_ref()) {
        Some(_) => "refuses our certificate",
        None => "asks for a certificate",
    };
    why.contains("alert").then(|| format!("it {what} ({})", last_part(&why)))
}

/// The reason alone: OpenSSL's texts are long, and end with it.
fn last_part(text: &str) -> String {
    let mut parts = text.split(':').map(str::trim).rev();
    parts.find(|part| part.contains("alert")).unwrap_or(text).to_owned()
}
