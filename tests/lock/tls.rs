//! Locks on servers that take nothing but TLS, with a certificate of the client.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use test_support::secure::{Authority, Certificate, HERE};
use test_support::{TIMEOUT, acquire_in_background, eventually};
use zklock::{Code, GuardState, Store, StoreOptions, Tls};
use zklock_testing::{Database, Port};

const PATH: &str = "/locks/tls";

#[derive(Clone, Copy, PartialEq)]
#[allow(dead_code, reason = "not every build has all")]
enum Kind {
    MySql,
    Postgres,
    Redis,
}

/// Runs each of these for each kind of server.
macro_rules! each_kind {
    ($($(#[$note:meta])* fn $name:ident($kind:ident) $body:block)+) => {$(
        $(#[$note])*
        mod $name {
            use super::*;

            fn contract($kind: Kind) $body

            #[cfg(feature = "mysql-tls")]
            #[test]
            fn mysql() {
                contract(Kind::MySql);
            }

            #[cfg(feature = "postgres-tls")]
            #[test]
            fn postgres() {
                contract(Kind::Postgres);
            }

            #[cfg(feature = "redis-tls")]
            #[test]
            fn redis() {
                contract(Kind::Redis);
            }
        }
    )+};
}

impl Kind {
    fn start(self) -> Database {
        match self {
            Kind::MySql => Database::mariadb(),
            Kind::Postgres => Database::postgres(),
            Kind::Redis => Database::redis(),
        }
        .unwrap()
    }

    fn address_at(self, place: &str) -> String {
        match self {
            Kind::MySql => format!("mysql://zklock@{place}/zklock"),
            Kind::Postgres => format!("postgres://zklock@{place}/postgres"),
            Kind::Redis => format!("redis://{place}"),
        }
    }
}

/// An authority, and a server that trusts it.
struct Scene {
    kind: Kind,
    authority: Authority,
    client: Certificate,
    database: Database,
    /// Redis has another one for TLS.
    port: Option<Port>,
}

impl Scene {
    /// The server has a certificate of that authority.
    fn of(kind: Kind) -> Scene {
        let (authority, database) = (Authority::new(), kind.start());
        let client = authority.certificate("client", "DNS:client.example", None);
        let port = (kind == Kind::Redis).then(|| Port::reserve().unwrap());
        #[cfg(feature = "mysql-tls")]
        if kind == Kind::MySql {
            use mysql::prelude::Queryable as _;
            let mut root = mysql::Conn::new(database.url().as_str()).unwrap();
            root.query_drop("ALTER USER zklock@'%' REQUIRE X509").unwrap();
        }
        let scene = Scene { kind, authority, client, database, port };
        scene.serve_with(&scene.authority.certificate("server", HERE, None));
        scene
    }

    /// The server ends, and starts again with that certificate.
    fn serve_with(&self, certificate: &Certificate) {
        let own = |file: &Path| self.give(file);
        let (cert, key) = (own(&certificate.cert), own(&certificate.key));
        let ca = own(&self.authority.ca());
        let settings: Vec<(&str, String)> = match self.kind {
            Kind::MySql => vec![
                ("--require-secure-transport", "ON".to_owned()),
                ("--ssl-cert", cert),
                ("--ssl-key", key),
                ("--ssl-ca", ca),
            ],
            Kind::Postgres => {
                let rules = self.database.directory().join("rules");
                fs::write(&rules, "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n")
                    .unwrap();
                vec![
                    ("--ssl", "on".to_owned()),
                    ("--ssl_cert_file", cert),
                    ("--ssl_key_file", key),
                    ("--ssl_ca_file", ca),
                    ("--hba_file", self.give(&rules)),
                ]
            }
            Kind::Redis => vec![
                ("--tls-port", self.port.as_ref().unwrap().number().to_string()),
                ("--tls-cert-file", cert),
                ("--tls-key-file", key),
                ("--tls-ca-cert-file", ca),
            ],
        };
        let argument = |(name, value): (&str, String)| match self.kind {
            Kind::Redis => vec![OsString::from(name), value.into()],
            Kind::MySql | Kind::Postgres => vec![format!("{name}={value}").into()],
        };
        self.database.start_again_with(settings.into_iter().flat_map(argument)).unwrap();
    }

    /// A copy of the file that is the server's alone.
    fn give(&self, file: &Path) -> String {
        let directory = self.database.directory();
        let copy = directory.join(file.file_name().unwrap());
        if copy != file {
            fs::copy(file, &copy).unwrap();
        }
        let owner = fs::metadata(directory).unwrap();
        chown(&copy, Some(owner.uid()), Some(owner.gid())).unwrap();
        fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
        copy.display().to_string()
    }

    fn address(&self) -> String {
        let place = self.port.as_ref().map_or(self.database.addr(), Port::addr);
        self.kind.address_at(&place.to_string())
    }

    fn tls(&self) -> Tls {
        self.tls_trusting(self.authority.ca())
    }

    fn tls_trusting(&self, ca: PathBuf) -> Tls {
        Tls::new(ca, &self.client.cert, &self.client.key)
    }

    fn connect(&self, tls: Tls) -> zklock::Result<Store> {
        // A new server of Redis lets nobody in before a lease has passed.
        let lease = Duration::from_secs(if self.kind == Kind::Redis { 2 } else { 3_600 });
        let options = StoreOptions::new().session_timeout(lease).tls(tls);
        let address = match self.kind {
            Kind::Postgres => self.address() + "?sslmode=verify-full",
            Kind::MySql | Kind::Redis => self.address(),
        };
        options.connect(&address).within(TIMEOUT).wait()
    }

    /// Nothing is sent by that, but what TLS begins with.
    fn refuses(&self, tls: Tls, why: &str) {
        let error = self.connect(tls).unwrap_err();
        assert!(error.code() == Code::API_ERROR && error.to_string().contains(why), "{error}");
    }
}

each_kind! {
    fn a_lock_is_held_over_tls_while_certificates_are_replaced(kind) {
        let scene = Scene::of(kind);
        // Its authority is going to be another one.
        let ca = scene.authority.path().join("trusted.pem");
        fs::copy(scene.authority.ca(), &ca).unwrap();
        let (store, other) = (scene.connect(scene.tls_trusting(ca.clone())), scene.connect(scene.tls()));
        let (store, other) = (store.unwrap(), other.unwrap());
        let guard = store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap();
        assert!(other.lock(PATH).try_acquire().wait().unwrap().is_none());
        let waiting = acquire_in_background(&other.lock(PATH));
        eventually("it waits", || store.lock(PATH).contenders().wait().unwrap().len() == 2);
        guard.release().wait().unwrap();
        let next = waiting.join().unwrap().unwrap();
        next.release().wait().unwrap();

        let held = store.lock("/locks/held").acquire().within(TIMEOUT).wait().unwrap();
        let successor = Authority::new();
        fs::copy(successor.ca(), &ca).unwrap();
        scene.serve_with(&successor.certificate("successor", HERE, None));
        store.lock(PATH).acquire().within(TIMEOUT).wait().unwrap().release().wait().unwrap();
        // Redis has it in its memory alone.
        if kind != Kind::Redis {
            assert_eq!(held.state(), GuardState::Held);
            held.release().wait().unwrap();
        }
        // This one still trusts the first.
        let late = other.lock(PATH).acquire().within(Duration::from_millis(500)).wait();
        assert!(late.unwrap_err().is_timeout());
    }

    fn a_server_is_not_connected_to_unless_it_proves_to_be_the_one(kind) {
        let scene = Scene::of(kind);
        drop(scene.connect(scene.tls()).unwrap());
        // Two authorities of one name.
        scene.refuses(scene.tls_trusting(Authority::new().ca()), "BadSignature");
        scene.serve_with(&scene.authority.certificate("other", "DNS:other.example", None));
        scene.refuses(scene.tls(), "not valid for");
        scene.serve_with(&scene.authority.expired("old", HERE));
        scene.refuses(scene.tls(), "Expired");
    }

    fn a_client_without_a_certificate_or_without_tls_is_not_let_in(kind) {
        let scene = Scene::of(kind);
        let stranger = scene.connect(Tls::without_certificate(scene.authority.ca()));
        let error = stranger.unwrap_err();
        assert!([Code::API_ERROR, Code::NO_AUTH].contains(&error.code()), "{error}");
        if kind == Kind::Redis {
            // By the authorities of this machine.
            let secure = scene.address().replace("redis:", "rediss:");
            let error = zklock::connect(&secure).within(TIMEOUT).wait().unwrap_err();
            assert!(error.to_string().contains("UnknownIssuer"), "{error}");
        }
        let error = zklock::connect(&scene.address()).within(TIMEOUT).wait().unwrap_err();
        assert!([Code::API_ERROR, Code::NO_AUTH].contains(&error.code()), "{error}");
    }

    /// It would hear the password.
    fn a_server_without_tls_is_told_nothing(kind) {
        let database = kind.start();
        let authority = Authority::new();
        let options = StoreOptions::new().tls(Tls::without_certificate(authority.ca()));
        let error = options.connect(&database.url()).within(TIMEOUT).wait().unwrap_err();
        assert_eq!(error.code(), Code::API_ERROR, "{error}");
    }

    fn a_server_that_accepts_and_stays_silent_is_given_up(kind) {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = Authority::new();
        let options = StoreOptions::new().tls(Tls::without_certificate(authority.ca()));
        let address = kind.address_at(&silent.local_addr().unwrap().to_string());
        let error = options.connect(&address).within(TIMEOUT).wait().unwrap_err();
        assert_eq!(error.code(), Code::API_ERROR, "{error}");
    }

    fn what_it_does_not_support_is_refused_by_name(kind) {
        let authority = Authority::new();
        let own = authority.certificate("own", "DNS:own", None);
        let locked = authority.certificate("locked", "DNS:locked", Some("secret"));
        let other = authority.certificate("other", "DNS:other", None);
        let ca = authority.ca();
        let revoking = authority.path().join("revoking.pem");
        let lists = fs::read_to_string(&ca).unwrap() + &authority.revocations(None);
        fs::write(&revoking, lists).unwrap();
        let [two_keys, damaged] =
            ["two.key", "damaged.pem"].map(|name| authority.path().join(name));
        let read = |file: &Path| fs::read_to_string(file).unwrap();
        fs::write(&two_keys, read(&own.key) + &read(&other.key)).unwrap();
        let key_in_one_line = read(&own.key).replace('\n', "");
        fs::write(&damaged, read(&ca) + &key_in_one_line).unwrap();
        let without = Tls::without_certificate;
        for (tls, why) in [
            (without(ca.clone()).verify_host_name(false), "server's name"),
            (without(revoking), "revocation lists"),
            (without("/nowhere/ca.pem".into()), "/nowhere/ca.pem: No such file"),
            (without(own.key.clone()), "own.key: it has no certificate"),
            (Tls::new(&ca, &own.cert, &own.key).key_password("secret"), "key with a password"),
            (Tls::new(&ca, &locked.cert, &locked.key), "locked.key: it has no key"),
            (Tls::new(&ca, &own.cert, &other.key), "other.key"),
            (Tls::new(&ca, &own.cert, two_keys), "two.key: it has no key in PEM form, several"),
            (without(damaged), "damaged.pem: a section of it is no valid PEM"),
        ] {
            let options = StoreOptions::new().tls(tls);
            let error = options.connect(&kind.address_at("127.0.0.1:1")).wait().unwrap_err();
            let says = error.to_string();
            assert!(error.code() == Code::BAD_ARGUMENTS && says.contains(why), "{why}: {says}");
            assert!(!says.contains("PRIVATE"), "{says}");
        }
    }
}

#[test]
fn a_place_without_a_server_and_an_address_that_contradicts_are_refused() {
    let authority = Authority::new();
    let options = StoreOptions::new().tls(Tls::without_certificate(authority.ca()));
    for (address, why) in [
        ("local:", "no server"),
        #[cfg(feature = "sqlite")]
        ("sqlite:/nowhere/locks.db", "no server"),
        #[cfg(feature = "postgres-tls")]
        ("postgres://127.0.0.1:1/a?sslmode=disable", "sslmode=disable"),
        #[cfg(feature = "postgres-tls")]
        ("postgres://127.0.0.1:1/a?sslrootcert=/a", "beside the address"),
        #[cfg(feature = "mysql-tls")]
        ("mysql://127.0.0.1:1/a?root_cert_path=/a", "beside the address"),
        #[cfg(feature = "mysql-tls")]
        ("mysql://127.0.0.1:1/a?socket=/a", "names a socket"),
    ] {
        let error = options.connect(address).wait().unwrap_err();
        assert!(error.code() == Code::BAD_ARGUMENTS && error.to_string().contains(why), "{error}");
    }
    for address in [
        #[cfg(feature = "postgres")]
        "postgres://127.0.0.1:1/a?sslmode=verify-full",
        #[cfg(feature = "mysql")]
        "mysql://127.0.0.1:1/a?root_cert_path=/a",
    ] {
        let error = zklock::connect(address).wait().unwrap_err();
        assert!(error.to_string().contains("StoreOptions::tls"), "{error}");
    }
}
