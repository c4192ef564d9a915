//! A password, and where it is.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// More is no password.
const LONGEST: usize = 1_000;

/// A password that is at hand, or the file that has it: its first line.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Value(Vec<u8>),
    File(PathBuf),
}

impl Secret {
    /// The password. It is read from its file each time, so that it can be changed there.
    ///
    /// # Errors
    /// Why it can't be read or used, without a part of it.
    #[cfg_attr(not(any(zklock_tls, zklock_sasl)), allow(dead_code))]
    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        let (password, whose) = match self {
            Secret::Value(password) => (password.clone(), "a password".to_owned()),
            Secret::File(file) => {
                let text =
                    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
                let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (line.to_vec(), format!("the password in {}", file.display()))
            }
        };
        match password.len() {
            0 => Err(format!("{whose} is empty")),
            length if length > LONGEST => Err(format!("{whose} has more than {LONGEST} bytes")),
            _ if password.contains(&0) => Err(format!("{whose} has a NUL in it")),
            _ => Ok(password),
        }
    }
}

/// It stays secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Value(_) => f.write_str("(hidden)"),
            Secret::File(file) => write!(f, "(in {})", file.display()),
        }
    }
}

/// The part of a server's address that can be shown: hosts, ports and the path, without user, password and options. `None`
/// if the rest does not look like that, because it may contain a part of a password.
pub(crate) fn place_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("//")?;
    let (user, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    if user.contains(['/', '?', '#', '=', ';', '&']) || user.contains(char::is_whitespace) {
        // An '@' of the options, or of a password that is not encoded.
        return None;
    }
    let place = place.split_once('?').map_or(place, |(place, _)| place);
    let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
    let fits =
        |text: &str, more: &str| text.chars().all(|c| c.is_alphanumeric() || more.contains(c));
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((host, port)) => {
            fits(host, ".:%") && port.strip_prefix(':').map_or(port.is_empty(), is_port)
        }
        None => host
            .split_once(':')
            .map_or(fits(host, ".-_%"), |(host, port)| fits(host, ".-_%") && is_port(port)),
    };
    (hosts.split(',').all(is_host) && fits(path, ".-_%~$+/")).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            ("redis://user:secr@et@host:6379/1", Some("host:6379/1")),
            ("postgres://:secret@host", Some("host")),
            ("postgres://host/db?user=me&password=secret", Some("host/db")),
            ("postgres://u:secret@a:1,b-1.c:2/db", Some("a:1,b-1.c:2/db")),
            ("postgres:///db?host=/run&password=secret", Some("/db")),
            ("mysql://[::1]:3306/db", Some("[::1]:3306/db")),
            ("postgres://host/db?password=sec@ret", None),
            ("postgres://u:sec?@ret@host", None),
            ("postgres://u:sec/ret@host", None),
            ("postgres://u:secret", None),
            ("postgres://host=h password=secret", None),
            ("mysql://h;Pwd=secret/db", None),
            ("mysql://h/db;Pwd=secret", None),
            ("redis://h#secret", None),
            ("redis:secret@h", None),
        ] {
            assert_eq!(place_of(text), shown, "{text}");
        }
    }

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let secret = Secret::File(file.clone());
        assert!(secret.read().unwrap_err().contains("password: "), "there is no file yet");
        for (text, password) in
            [("s e cret\n", "s e cret"), ("secret", "secret"), ("secret\r\nmore\n", "secret")]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(secret.read().unwrap(), password.as_bytes());
        }
        for bad in ["", "\nsecret\n", "sec\0ret\n", &"secret".repeat(200)] {
            fs::write(&file, bad).unwrap();
            let error = secret.read().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn nothing_prints_a_password() {
        let text = format!("{:?}", Secret::Value(b"secret".to_vec()));
        assert_eq!(text, "(hidden)");
        assert_eq!(
            Secret::Value(b"sec\0ret".to_vec()).read().unwrap_err(),
            "a password has a NUL in it"
        );
    }
}
