//! TLS, and who the command is to the servers. No password is an argument or a variable: the file that has it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use zklock::zookeeper::Sasl;
use zklock::{ClientOptions, Tls};

use crate::failure::Failure;
use crate::text::variable;

/// All that a configuration file may say of it. The variables are `ZKLOCK_` and the same in capitals.
pub const KEYS: [&str; 9] = [
    "tls-ca",
    "tls-cert",
    "tls-key",
    "tls-key-password-file",
    "tls-verify-host-name",
    "sasl-mechanism",
    "sasl-user",
    "sasl-password-file",
    "auth-file",
];

#[derive(Args, Clone, Debug, Default)]
pub struct SecureArgs {
    /// Connect with TLS: to ZooKeeper's secureClientPort, or to the server of another store. FILE has the certificates of
    /// their authorities in PEM form; for ZooKeeper, it may have their revocation lists too. '' is no TLS
    /// [default: ZKLOCK_TLS_CA, then tls-ca in the configuration file; likewise all below]
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    tls_ca: Option<String>,

    /// The certificate of this client, if the servers ask for one
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    tls_cert: Option<String>,

    /// The key of that certificate
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    tls_key: Option<String>,

    /// A file whose first line is the password of that key
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    tls_key_password_file: Option<String>,

    /// Whether the certificate has to carry the server's name. false accepts any that the authorities have signed
    #[arg(long, value_name = "true|false", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    tls_verify_host_name: Option<String>,

    /// The SASL mechanism, such as GSSAPI [default: DIGEST-MD5 with --sasl-user]
    #[arg(long, value_name = "NAME", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    sasl_mechanism: Option<String>,

    /// The SASL user
    #[arg(long, value_name = "NAME", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    sasl_user: Option<String>,

    /// A file whose first line is that user's password
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    sasl_password_file: Option<String>,

    /// A file whose first line is an identity such as digest:user:password
    #[arg(long, value_name = "FILE", global = true)]
    #[arg(help_heading = "Servers", hide_short_help = true)]
    auth_file: Option<String>,
}

/// What is known once arguments, environment and files were read.
#[derive(Clone, Debug, Default)]
pub struct Secure {
    tls: Option<Tls>,
    sasl: Option<Sasl>,
    auth: Option<Identity>,
}

#[derive(Clone)]
struct Identity {
    scheme: String,
    secret: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:(hidden)", self.scheme)
    }
}

impl SecureArgs {
    fn argument(&self, key: &str) -> Option<&String> {
        let [ca, cert, key_file, key_password, verify, mechanism, user, password, auth] = [
            &self.tls_ca,
            &self.tls_cert,
            &self.tls_key,
            &self.tls_key_password_file,
            &self.tls_verify_host_name,
            &self.sasl_mechanism,
            &self.sasl_user,
            &self.sasl_password_file,
            &self.auth_file,
        ];
        let values = [ca, cert, key_file, key_password, verify, mechanism, user, password, auth];
        KEYS.iter().position(|known| *known == key).and_then(|at| values[at].as_ref())
    }

    /// `file` gives what the configuration file says of a key.
    ///
    /// # Errors
    /// What is missing, contradicts itself, or can't be read.
    pub fn read(&self, file: impl Fn(&str) -> Option<String>) -> Result<Secure, Failure> {
        let value = self.values(file)?;
        Ok(Secure { tls: tls(&value)?, sasl: sasl(&value)?, auth: auth(&value)? })
    }

    /// As [`read`](SecureArgs::read), of TLS alone.
    ///
    /// # Errors
    /// The same.
    pub fn tls(&self, file: impl Fn(&str) -> Option<String>) -> Result<Option<Tls>, Failure> {
        tls(&self.values(file)?)
    }

    fn values(
        &self,
        file: impl Fn(&str) -> Option<String>,
    ) -> Result<impl Fn(&str) -> Option<String>, Failure> {
        let mut variables = BTreeMap::new();
        for key in KEYS {
            let name = format!("ZKLOCK_{}", key.to_uppercase().replace('-', "_"));
            variables.extend(variable(&name)?.map(|value| (key, value)));
        }
        Ok(move |key: &str| {
            let given = self.argument(key).or_else(|| variables.get(key)).cloned();
            given.or_else(|| file(key)).filter(|value| !value.is_empty())
        })
    }
}

fn tls(value: &impl Fn(&str) -> Option<String>) -> Result<Option<Tls>, Failure> {
    let tls = match (value("tls-ca"), value("tls-cert"), value("tls-key")) {
        (None, None, None) => return Ok(None),
        (Some(ca), None, None) => Tls::without_certificate(ca),
        (Some(ca), Some(cert), Some(key)) => Tls::new(ca, cert, key),
        _ => {
            let why = "TLS takes tls-ca, and both or none of tls-cert and tls-key";
            return Err(Failure::new(why.to_owned()));
        }
    };
    let verify = match value("tls-verify-host-name").as_deref() {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => {
            return Err(Failure::new(format!(
                "tls-verify-host-name is true or false, not {other}"
            )));
        }
    };
    let tls = tls.verify_host_name(verify);
    Ok(Some(match value("tls-key-password-file") {
        Some(file) => tls.key_password_file(file),
        None => tls,
    }))
}

fn sasl(value: &impl Fn(&str) -> Option<String>) -> Result<Option<Sasl>, Failure> {
    let sasl = match (value("sasl-mechanism"), value("sasl-user")) {
        (None, None) => return Ok(None),
        (Some(mechanism), None) if mechanism != "DIGEST-MD5" => Sasl::new(mechanism),
        (Some(mechanism), Some(user)) if mechanism != "DIGEST-MD5" => {
            Sasl::new(mechanism).user(user)
        }
        (_, Some(user)) => Sasl::digest_md5(user),
        (Some(_), None) => return Err(Failure::new("DIGEST-MD5 takes a sasl-user".to_owned())),
    };
    Ok(Some(match value("sasl-password-file") {
        Some(file) => sasl.password_file(file),
        None => sasl,
    }))
}

fn auth(value: &impl Fn(&str) -> Option<String>) -> Result<Option<Identity>, Failure> {
    let Some(file) = value("auth-file").map(PathBuf::from) else { return Ok(None) };
    let refuse = |why: String| Failure::new(format!("{}: {why}", file.display()));
    let text = fs::read_to_string(&file).map_err(|error| refuse(error.to_string()))?;
    let line = text.lines().next().unwrap_or_default();
    let (scheme, secret) = line
        .split_once(':')
        .filter(|(scheme, secret)| !scheme.is_empty() && !secret.is_empty())
        .ok_or_else(|| {
            refuse("its first line is no identity, as digest:user:password is".to_owned())
        })?;
    Ok(Some(Identity { scheme: scheme.to_owned(), secret: secret.as_bytes().to_vec() }))
}

impl Secure {
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub fn apply(&self, mut options: ClientOptions) -> ClientOptions {
        if let Some(tls) = &self.tls {
            options = options.tls(tls.clone());
        }
        if let Some(sasl) = &self.sasl {
            options = options.sasl(sasl.clone());
        }
        if let Some(auth) = &self.auth {
            options = options.auth(auth.scheme.clone(), auth.secret.clone());
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Secure, String> {
        let file = |key: &str| {
            let found = settings.iter().find(|(known, _)| *known == key);
            found.map(|(_, value)| (*value).to_owned())
        };
        SecureArgs::default().read(file).map_err(|error| error.to_string())
    }

    #[test]
    fn tls_takes_authorities_and_a_certificate_with_its_key_or_none() {
        let all = [("tls-ca", "a"), ("tls-cert", "b"), ("tls-key", "c")];
        assert!(read(&all).unwrap().has_tls() && !read(&[]).unwrap().has_tls());
        assert!(read(&all[..1]).unwrap().has_tls());
        for absent in 0..3 {
            let mut some = all.to_vec();
            some.remove(absent);
            assert!(read(&some).unwrap_err().contains("both or none of tls-cert and tls-key"));
        }
        let verify = [&all[..], &[("tls-verify-host-name", "perhaps")]].concat();
        assert!(read(&verify).unwrap_err().contains("perhaps"));
    }

    #[test]
    fn digest_takes_a_user_and_others_need_none() {
        let text = |settings: &[(&str, &str)]| format!("{:?}", read(settings).unwrap().sasl);
        assert!(text(&[("sasl-user", "bob")]).contains("DIGEST-MD5"));
        assert!(text(&[("sasl-mechanism", "GSSAPI")]).contains("GSSAPI"));
        assert!(read(&[("sasl-mechanism", "DIGEST-MD5")]).unwrap_err().contains("sasl-user"));
    }

    #[test]
    fn an_identity_is_read_and_never_printed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("identity");
        let name = file.display().to_string();
        fs::write(&file, "digest:bob:top secret\n").unwrap();
        let text = format!("{:?}", read(&[("auth-file", &name)]).unwrap());
        assert!(text.contains("digest:(hidden)") && !text.contains("top secret"), "{text}");
        fs::write(&file, "top secret\n").unwrap();
        let error = read(&[("auth-file", &name)]).unwrap_err();
        assert!(error.contains("digest:user:password") && !error.contains("top secret"), "{error}");
    }
}
