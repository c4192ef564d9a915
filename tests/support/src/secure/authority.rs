//! Authorities, and certificates that they sign: made by openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An authority in a directory of its own.
pub struct Authority {
    directory: tempfile::TempDir,
}

/// A certificate and its key.
pub struct Certificate {
    /// The file of the certificate.
    pub cert: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}

fn openssl(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    let output = command.output().expect("openssl (Debian: apt-get install openssl)");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Authority {
    /// One with a key of its own.
    #[allow(clippy::new_without_default, reason = "it runs a program")]
    pub fn new() -> Authority {
        let authority = Authority { directory: tempfile::tempdir().unwrap() };
        let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=authority \
                       -keyout ca.key -out ca.pem";
        openssl(authority.path(), &request.split_whitespace().collect::<Vec<_>>());
        authority
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file of its certificate.
    pub fn ca(&self) -> PathBuf {
        self.path().join("ca.pem")
    }

    /// A certificate for these names, such as `IP:127.0.0.1`. A password protects its key, if there is one.
    pub fn certificate(
        &self,
        name: &str,
        alternatives: &str,
        password: Option<&str>,
    ) -> Certificate {
        self.valid_for("2", name, alternatives, password)
    }

    /// One whose time is over.
    pub fn expired(&self, name: &str, alternatives: &str) -> Certificate {
        self.valid_for("-1", name, alternatives, None)
    }

    fn valid_for(
        &self,
        days: &str,
        name: &str,
        alternatives: &str,
        password: Option<&str>,
    ) -> Certificate {
        let (key, request, cert) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        let extension = format!("subjectAltName={alternatives}");
        let pass = format!("pass:{}", password.unwrap_or_default());
        let mut arguments = vec!["req", "-new", "-newkey", "ec", "-pkeyopt"];
        arguments.extend([
            "ec_paramgen_curve:prime256v1",
            "-subj",
            &subject,
            "-addext",
            &extension,
        ]);
        arguments.extend(["-keyout", &key, "-out", &request]);
        match password {
            Some(_) => arguments.extend(["-passout", &pass]),
            None => arguments.push("-nodes"),
        }
        openssl(self.path(), &arguments);
        let mut arguments =
            vec!["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key"];
        arguments.extend([
            "-CAcreateserial",
            "-days",
            days,
            "-copy_extensions",
            "copy",
            "-out",
            &cert,
        ]);
        openssl(self.path(), &arguments);
        Certificate { cert: self.path().join(cert), key: self.path().join(key) }
    }

    /// A list of what it has revoked: this certificate alone, or nothing.
    pub fn revocations(&self, revoked: Option<&Certificate>) -> String {
        let settings = "[ca]\ndefault_ca = own\n[own]\ndatabase = index.txt\ncrlnumber = crlnumber\n\
                        certificate = ca.pem\nprivate_key = ca.key\ndefault_md = sha256\ndefault_crl_days = 2\n";
        for (file, text) in [("ca.conf", settings), ("index.txt", ""), ("crlnumber", "01\n")] {
            std::fs::write(self.path().join(file), text).unwrap();
        }
        let ca = ["ca", "-config", "ca.conf"];
        if let Some(revoked) = revoked {
            let file = revoked.cert.to_str().unwrap();
            openssl(self.path(), &[&ca[..], &["-revoke", file]].concat());
        }
        openssl(self.path(), &[&ca[..], &["-gencrl", "-out", "list.pem"]].concat());
        std::fs::read_to_string(self.path().join("list.pem")).unwrap()
    }

    /// Key and certificate in one file, as servers take it.
    pub fn key_store(&self, certificate: &Certificate) -> PathBuf {
        let file = certificate.cert.with_extension("store.pem");
        let read = |file: &Path| std::fs::read_to_string(file).unwrap();
        std::fs::write(&file, read(&certificate.key) + &read(&certificate.cert)).unwrap();
        file
    }
}
