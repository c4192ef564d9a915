//! A program's options for connecting.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use crate::capi::boundary::{self, Failure};
use crate::capi::zkl::options::{bytes, read, zkl_client_options};
use crate::client::ClientOptions;
use crate::sasl::Sasl;
use crate::stores::StoreOptions;
use crate::tls::Tls;

/// How long connecting may take where the program does not say.
const CONNECT: Duration = Duration::from_secs(10);

/// A time in milliseconds; 0 means the default.
fn millis(function: &'static str, name: &str, value: c_int) -> Result<Option<Duration>, Failure> {
    match u64::try_from(value) {
        Ok(0) => Ok(None),
        Ok(value) => Ok(Some(Duration::from_millis(value))),
        Err(_) => Err(Failure::bad_argument(function, &format!("{name} is negative"))),
    }
}

/// How to connect.
///
/// # Safety
/// As the header asks: `options` is null or a filled struct whose pointers are null or lead to what
/// they are named for.
pub(super) unsafe fn connecting(
    function: &'static str,
    options: *const zkl_client_options,
) -> Result<ClientOptions, Failure> {
    // SAFETY: the caller keeps the promise above.
    match unsafe { read(function, options) }? {
        // SAFETY: as above.
        Some(given) => unsafe { zookeeper(function, &given) },
        None => Ok(ClientOptions::new()),
    }
}

/// How to connect to a store, and how long that may take at the most, where its own limit is not that of `connecting`.
///
/// # Safety
/// As [`connecting`].
pub(super) unsafe fn connecting_to(
    function: &'static str,
    is_zookeeper: bool,
    options: *const zkl_client_options,
) -> Result<(StoreOptions, Option<Duration>), Failure> {
    let mut built = StoreOptions::new();
    // SAFETY: the caller keeps the promise of `connecting`.
    let Some(given) = (unsafe { read(function, options) })? else {
        return Ok((built, (!is_zookeeper).then_some(CONNECT)));
    };
    if let Some(timeout) = millis(function, "session_timeout_ms", given.session_timeout_ms)? {
        built = built.session_timeout(timeout);
    }
    if is_zookeeper {
        // SAFETY: as above.
        return Ok((built.zookeeper(unsafe { zookeeper(function, &given) }?), None));
    }
    let numbers = [given.operation_timeout_ms, given.tick_time_ms, given.unannounced_releases];
    let has_more = is_identified(&given) || has_sasl(&given) || given.max_request != 0;
    if has_more || numbers != [0; 3] {
        let why = "of a store other than ZooKeeper the options say session_timeout_ms, connect_timeout_ms and TLS alone; who \
            connects stands in the address";
        return Err(Failure::bad_argument(function, why));
    }
    // SAFETY: as above.
    if let Some(tls) = unsafe { tls(function, &given) }? {
        built = built.tls(tls);
    }
    let limit = millis(function, "connect_timeout_ms", given.connect_timeout_ms)?;
    if let Some(limit) = limit {
        built = built.connect_timeout(limit);
    }
    Ok((built, Some(limit.unwrap_or(CONNECT))))
}

/// Whether it has an identity of the scheme that it names.
fn is_identified(given: &zkl_client_options) -> bool {
    !given.auth_scheme.is_null() || !given.auth_secret.is_null() || given.auth_secret_len != 0
}

fn has_sasl(given: &zkl_client_options) -> bool {
    let sasl = [given.sasl_user, given.sasl_password_file, given.sasl_mechanism];
    sasl.into_iter().any(|text| !text.is_null())
}

/// Whether it asks for TLS or SASL.
fn is_secure(given: &zkl_client_options) -> bool {
    let tls = [given.tls_ca, given.tls_cert, given.tls_key, given.tls_key_password_file];
    has_sasl(given) || tls.iter().any(|text| !text.is_null()) || given.tls_any_host_name != 0
}

/// How to connect to ZooKeeper.
///
/// # Safety
/// Its pointers are null or lead to what they are named for.
unsafe fn zookeeper(
    function: &'static str,
    given: &zkl_client_options,
) -> Result<ClientOptions, Failure> {
    let mut built = ClientOptions::new();
    if let Some(timeout) = millis(function, "session_timeout_ms", given.session_timeout_ms)? {
        built = built.session_timeout(timeout);
    }
    if let Some(timeout) = millis(function, "connect_timeout_ms", given.connect_timeout_ms)? {
        built = built.connect_timeout(timeout);
    }
    built = common(function, built, given)?;
    // SAFETY: the caller promises NUL-terminated strings.
    if let Some(tls) = unsafe { tls(function, given) }? {
        built = built.tls(tls);
    }
    // SAFETY: as above.
    if let Some(sasl) = unsafe { sasl(function, given) }? {
        built = built.sasl(sasl);
    }
    built = match given.unannounced_releases {
        0 | 1 => built.announced_releases(given.unannounced_releases == 0),
        _ => return Err(Failure::bad_argument(function, "unannounced_releases is 0 or 1")),
    };
    // SAFETY: the caller promises `auth_secret_len` bytes.
    let secret = unsafe { bytes(function, given.auth_secret, given.auth_secret_len) }?;
    if given.auth_scheme.is_null() {
        let secret = (!secret.is_empty()).then_some("auth_secret without auth_scheme");
        return secret.map_or(Ok(built), |why| Err(Failure::bad_argument(function, why)));
    }
    // SAFETY: the caller promises a NUL-terminated string.
    let scheme = unsafe { boundary::text(function, "auth_scheme", given.auth_scheme) }?;
    Ok(built.auth(scheme, secret))
}

/// The options for all clients.
fn common(
    function: &'static str,
    mut built: ClientOptions,
    given: &zkl_client_options,
) -> Result<ClientOptions, Failure> {
    if let Some(timeout) = millis(function, "operation_timeout_ms", given.operation_timeout_ms)? {
        built = built.operation_timeout(timeout);
    }
    if let Some(tick) = millis(function, "tick_time_ms", given.tick_time_ms)? {
        built = built.tick_time(tick);
    }
    if given.max_request != 0 {
        built = built.max_request(given.max_request);
    }
    Ok(built)
}

/// The options for adopting a handle of the program. The handle itself determines most settings.
///
/// # Safety
/// As [`connecting`].
pub(super) unsafe fn adopting(
    function: &'static str,
    options: *const zkl_client_options,
) -> Result<ClientOptions, Failure> {
    let built = ClientOptions::new();
    // SAFETY: the caller keeps the promise of `connecting`.
    let Some(given) = (unsafe { read(function, options) })? else {
        return Ok(built);
    };
    if given.session_timeout_ms != 0 || given.connect_timeout_ms != 0 {
        let why = "an adopted handle has its session timeout, and nothing waits for its connection";
        return Err(Failure::bad_argument(function, why));
    }
    if is_identified(&given) {
        let why = "add identities to the handle itself, by zoo_add_auth";
        return Err(Failure::bad_argument(function, why));
    }
    if is_secure(&given) {
        let why = "an adopted handle has the TLS and the SASL that it was opened with";
        return Err(Failure::bad_argument(function, why));
    }
    if given.unannounced_releases != 0 {
        let why = "an adopted handle announces no releases in any case";
        return Err(Failure::bad_argument(function, why));
    }
    common(function, built, &given)
}

/// A text that may be missing.
///
/// # Safety
/// It is null or NUL-terminated.
unsafe fn some_text(
    function: &'static str,
    name: &'static str,
    text: *const c_char,
) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises a NUL-terminated string.
    Ok(Some(unsafe { boundary::text(function, name, text) }?.to_owned()))
}

/// # Safety
/// Each text is null or NUL-terminated.
unsafe fn tls(function: &'static str, given: &zkl_client_options) -> Result<Option<Tls>, Failure> {
    // SAFETY: as the caller promises.
    let text = |name, text| unsafe { some_text(function, name, text) };
    let password = text("tls_key_password_file", given.tls_key_password_file)?;
    let own = (text("tls_cert", given.tls_cert)?, text("tls_key", given.tls_key)?);
    let tls = match (text("tls_ca", given.tls_ca)?, own) {
        (Some(ca), (Some(cert), Some(key))) => Tls::new(ca, cert, key),
        (Some(ca), (None, None)) if password.is_none() => Tls::without_certificate(ca),
        (None, (None, None)) if password.is_none() && given.tls_any_host_name == 0 => {
            return Ok(None);
        }
        _ => {
            let why = "TLS takes tls_ca, and both or none of tls_cert and tls_key";
            return Err(Failure::bad_argument(function, why));
        }
    };
    let tls = tls.verify_host_name(given.tls_any_host_name == 0);
    Ok(Some(match password {
        Some(file) => tls.key_password_file(file),
        None => tls,
    }))
}

/// # Safety
/// Each text is null or NUL-terminated.
unsafe fn sasl(
    function: &'static str,
    given: &zkl_client_options,
) -> Result<Option<Sasl>, Failure> {
    // SAFETY: as the caller promises.
    let text = |name, text| unsafe { some_text(function, name, text) };
    let password = text("sasl_password_file", given.sasl_password_file)?;
    let user = text("sasl_user", given.sasl_user)?;
    let sasl = match (text("sasl_mechanism", given.sasl_mechanism)?.as_deref(), user) {
        (None | Some("DIGEST-MD5"), Some(user)) => Sasl::digest_md5(user),
        (Some(mechanism), Some(user)) => Sasl::new(mechanism).user(user),
        (Some(mechanism), None) if mechanism != "DIGEST-MD5" => Sasl::new(mechanism),
        (None, None) if password.is_none() => return Ok(None),
        _ => return Err(Failure::bad_argument(function, "SASL without sasl_user")),
    };
    Ok(Some(match password {
        Some(file) => sasl.password_file(file),
        None => sasl,
    }))
}
