//! How to connect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::settings::Settings;
use super::{Client, ClientInner, hosts, secure, session};
use crate::error::{Code, Error, Result};
use crate::logging::log;
use crate::raw::{Adopted, Credentials};
use crate::runtime::{Pending, now, within};
use crate::sasl::Sasl;
use crate::session_key::SessionKey;
use crate::tls::Tls;

/// Options to connect with: see [`Client::options`].
///
/// ```no_run
/// # fn main() -> zklock::Result<()> {
/// use std::time::Duration;
///
/// let zk = zklock::Client::options()
///     .session_timeout(Duration::from_secs(6))
///     .auth("digest", "orders:secret")
///     .connect("10.0.0.1,10.0.0.2,10.0.0.3/shop")
///     .wait()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientOptions {
    settings: Settings,
    connect_timeout: Duration,
}

/// In less, no connection can be relied on to be made: the C client gives it two thirds of that.
const SHORTEST_MS: u128 = 500;
/// A day. The C client counts in milliseconds, and overflows at half of what its numbers hold.
const LONGEST_MS: u128 = 24 * 60 * 60 * 1_000;

impl Settings {
    /// Says what is wrong with credentials, if anything is.
    pub(super) fn check_credentials(
        &self,
        credentials: &Credentials,
    ) -> std::result::Result<(), &'static str> {
        if credentials.scheme.is_empty() || credentials.scheme.contains('\0') {
            return Err("an auth scheme that is empty or has a NUL");
        }
        if credentials.scheme.len() + credentials.secret.len() > self.max_request {
            return Err("credentials of more bytes than a request takes (see max_request)");
        }
        Ok(())
    }
}

impl Client {
    /// Connects with the default options: see [`ClientOptions`].
    ///
    /// `hosts` is `host[:port][,host[:port]...][/chroot]`. The default port is 2181. Put IPv6 addresses in brackets.
    /// The addresses of a name are looked up again whenever the client has no connection, so servers may move.
    ///
    /// ```no_run
    /// # fn main() -> zklock::Result<()> {
    /// let zk = zklock::Client::connect("127.0.0.1:2181").wait()?;
    /// let znode = zk.get("/zookeeper").wait()?;
    /// println!("{} bytes, {} children", znode.data.len(), znode.stat.num_children);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// - `BAD_ARGUMENTS`: `hosts` cannot be parsed.
    /// - `OPERATION_TIMEOUT`: no server accepted the session in time. The error says what is wrong with each host.
    /// - `AUTH_FAILED`: credentials were refused.
    /// - `SESSION_CLOSED_REQUIRE_SASL_AUTH`: the servers accept only clients that authenticate.
    /// - `SYSTEM_ERROR`: no thread or file descriptor is available. The error names the limit.
    ///
    /// # Cancel safety
    /// Dropping it ends the attempt, and the session if there is one already.
    pub fn connect(hosts: &str) -> Pending<Client> {
        ClientOptions::new().connect(hosts)
    }

    /// Options to connect with.
    pub fn options() -> ClientOptions {
        ClientOptions::new()
    }
}

impl ClientOptions {
    /// The defaults: a session timeout of 10 s, 10 s to connect, and 15 s for an operation.
    pub fn new() -> ClientOptions {
        let settings = Settings {
            hosts: String::new(),
            session_timeout: Duration::from_secs(10),
            tick_time: None,
            operation_timeout: Duration::from_secs(15),
            // The servers take packets of up to 1 MiB less a byte; the rest is for what surrounds
            // path and data.
            max_request: 1024 * 1024 - 1024,
            session: None,
            reopen: true,
            credentials: Vec::new(),
            announces_releases: true,
            takes_shortcuts: true,
            tls: None,
            sasl: None,
        };
        ClientOptions { settings, connect_timeout: Duration::from_secs(10) }
    }

    /// The session timeout to request, in whole milliseconds, from 500 ms to a day. The server may grant another, which
    /// is logged as a warning (see [`Client::session_timeout`]).
    ///
    /// A lock outlives a crash of its holder by this time. With a shorter timeout, pauses of the process or the network
    /// are more likely to cost the locks. A guard of a client that is cut off becomes `Lost` before
    /// this time has passed: after 0.4 of it at the earliest, and later with [`tick_time`](ClientOptions::tick_time).
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// The servers' `tickTime`, if it is known and less than half the session timeout. Do not give a shorter one than
    /// the servers'.
    ///
    /// A server reports live sessions to its leader twice in that time. So it decides how long a guard can be trusted
    /// without an answer. The default is half the session timeout, because servers grant no sessions shorter than two
    /// ticks.
    ///
    /// **If your servers set `minSessionTimeout` lower, you must set this**: otherwise a guard may be lost only after
    /// another client can hold the lock.
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.settings.tick_time = Some(tick);
        self
    }

    /// How long [`connect`](ClientOptions::connect) may take in total.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an operation may take. Then it ends with `OPERATION_TIMEOUT` and an unknown outcome. Without a
    /// connection most operations end sooner, with `CONNECTION_LOSS`.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.operation_timeout = timeout;
        self
    }

    /// The limit for path, data and ACL of one request, in bytes. A larger request is refused here, because a server
    /// drops the connection if a request exceeds its `jute.maxbuffer`. Watched paths may take three quarters of the
    /// limit, because a reconnection sets all watches again in one request.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.settings.max_request = bytes;
        self
    }

    /// Takes over a session of another handle instead of opening a new one. If that session is over, connecting fails
    /// with `SESSION_EXPIRED`.
    ///
    /// If a lock claim of the previous client blocks an acquire, it is deleted, because no one else would release it.
    ///
    /// # What can't be promised
    /// A session has one owner. Two live handles disconnect each other, and each may delete what the other holds, or
    /// end the session for both. The guards of the other handle stay `Held` until it notices. That usually takes
    /// milliseconds, until a server closes its connection or refuses a request with `SESSION_MOVED`. If it is cut off
    /// from the servers, its guards stay `Held` until [`Guard::remaining`](crate::Guard::remaining) has passed, up to
    /// 0.95 of the session timeout.
    ///
    /// So take over a session only after the process that had it has certainly ended. Even then, only the [fencing
    /// token](crate::Guard::fencing_token) makes a write safe.
    pub fn session(mut self, session: SessionKey) -> Self {
        self.settings.session = Some(session);
        self
    }

    /// Whether to open a new session after an expiry (the default). Otherwise the client closes then.
    pub fn reopen(mut self, reopen: bool) -> Self {
        self.settings.reopen = reopen;
        self
    }

    /// Adds an identity to every session of the client, such as `digest` with `user:password`.
    pub fn auth(mut self, scheme: impl Into<String>, secret: impl Into<Vec<u8>>) -> Self {
        let credentials = Credentials { scheme: scheme.into(), secret: secret.into() };
        self.settings.credentials.push(credentials);
        self
    }

    /// Whether a contended lock passes to the next waiter by one write and one event (on by default).
    ///
    /// With [`Strategy::Queue`](crate::Strategy::Queue), the next waiter holds as soon as the event of the release
    /// arrives. If the holder or the waiter has this off, the waiter asks the servers once more. Clients with and
    /// without it exclude each other.
    ///
    /// This requires that only the holder's session can write to its claim. So each session gets its own identity of
    /// the scheme `digest`, with a random password. The consequences:
    /// - If the servers refuse the scheme, the client logs that once and opens a session without.
    /// - [`Acl::creator`](crate::zookeeper::Acl::creator) includes that identity. It is refused with `INVALID_ACL` if the
    ///   session has no other one.
    /// - A write to a claim means a release to waiters. So this client refuses the program's writes to claims with
    ///   `BAD_ARGUMENTS`.
    /// - A waiter trusts a write only on a connection where the servers have refused one that an ACL forbids. With
    ///   `skipACL=yes`, for example, it asks the servers once more.
    /// - It has no effect on a session that is [taken over](ClientOptions::session), or on a handle that a C program
    ///   owns. It also has none where a TLS certificate may be the program's only identity.
    ///
    /// # What can't be prevented
    /// A session with super rights (`X509AuthenticationProvider.superUser`, `DigestAuthenticationProvider.superDigest`)
    /// may write to every znode. If it writes to such a claim, the next waiter holds together with the holder. The same
    /// happens when somebody deletes a holder's claim by hand. If somebody deletes a waiter's claim in its first 100 ms,
    /// the waiter may still get the lock. Its guard is [`Lost`](crate::GuardState::Lost) about 100 ms later.
    pub fn announced_releases(mut self, announced: bool) -> Self {
        self.settings.announces_releases = announced;
        self
    }

    /// Without shortcuts, a lock lists its directory each time it looks.
    #[cfg(test)]
    pub(crate) fn shortcuts(mut self, taken: bool) -> Self {
        self.settings.takes_shortcuts = taken;
        self
    }

    /// Connects by TLS, to the servers' `secureClientPort`. Later sessions and the probes of hosts use it too.
    ///
    /// The C client must be built with TLS; those of the distributions are not. Enable the feature `tls` of this crate,
    /// and set `ZOOKEEPER_SRC_DIR` to the source of the C client (see `zookeeper-sys`). Otherwise connecting fails with
    /// `BAD_ARGUMENTS`, as it does for unusable files. A certificate that either side refuses shows as
    /// `OPERATION_TIMEOUT`, and the error says what is wrong with each host.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Authenticates each connection by SASL.
    ///
    /// The C client must be built with SASL: enable the feature `sasl` of this crate, and set `ZOOKEEPER_SRC_DIR` to
    /// the source of the C client (see `zookeeper-sys`). Otherwise connecting fails with `BAD_ARGUMENTS`. If the
    /// servers refuse the user or the password, it fails with `AUTH_FAILED`. So do all operations if they refuse the
    /// password later.
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.settings.sasl = Some(sasl);
        self
    }

    /// Connects: see [`Client::connect`].
    pub fn connect(&self, hosts: &str) -> Pending<Client> {
        match self.start(hosts) {
            Ok(client) => {
                let deadline = now().checked_add(self.connect_timeout);
                Pending::run("connect", hosts, established(client, hosts.to_owned(), deadline))
            }
            Err(error) => Pending::ready(Err(error)),
        }
    }

    /// Returns a client at once and connects in the background without a limit: for programs that may start before
    /// their servers. The connect timeout does not apply. Acquires of locks wait for the connection. Other operations
    /// fail with `SESSION_EXPIRED` until the first session; wait for it with [`Client::connected`].
    ///
    /// # Errors
    /// - `BAD_ARGUMENTS`: `hosts` cannot be parsed, or options are invalid.
    /// - `SYSTEM_ERROR`: no thread is available.
    ///
    /// If the servers later refuse the client for good, its state is
    /// [`Closed`](crate::zookeeper::SessionState::Closed), and waiting operations fail with the reason.
    pub fn connect_lazily(&self, hosts: &str) -> Result<Client> {
        let client = self.start(hosts)?;
        let (inner, hosts) = (Arc::clone(client.inner()), hosts.to_owned());
        client.inner().spawn(async move {
            if inner.trusted_session().await.is_ok() {
                if let Err(error) = check_timeouts(&inner, &hosts) {
                    log!(ERROR, %error, "the client is closed");
                    inner.request_close();
                }
            }
        });
        Ok(client)
    }

    /// Works on a handle of the program. The program has also chosen its hosts, session timeout and
    /// identities. The client ends with the handle's session.
    pub(crate) fn adopt(&self, adopted: Adopted) -> Result<Client> {
        let mut settings = self.settings.clone();
        settings.reopen = false;
        settings.session = None;
        settings.credentials.clear();
        (settings.tls, settings.sasl) = (None, None);
        Ok(Client::from_inner(session::start(settings, Some(adopted))?))
    }

    pub(crate) fn start(&self, hosts: &str) -> Result<Client> {
        let refused = |shown: &str, why: String| {
            Error::with_detail("connect", shown, Code::BAD_ARGUMENTS, why)
        };
        let refuse = |why: String| refused(hosts, why);
        let mut settings = self.settings.clone();
        // What are no hosts may be an address of another store, with a password.
        settings.hosts = hosts::parse(hosts).map_err(|error| refused("", error.to_string()))?;
        let millis = settings.session_timeout.as_millis();
        if !(SHORTEST_MS..=LONGEST_MS).contains(&millis) {
            return Err(refuse(format!(
                "a session timeout of {:?}: it takes {SHORTEST_MS} ms to {LONGEST_MS} ms",
                settings.session_timeout
            )));
        }
        if settings.tick_time.is_some_and(|tick| tick.is_zero()) {
            return Err(refuse("a tick time of zero".to_owned()));
        }
        for credentials in &settings.credentials {
            settings.check_credentials(credentials).map_err(|why| refuse(why.to_owned()))?;
        }
        secure::check(settings.tls.as_ref(), settings.sasl.as_ref()).map_err(refuse)?;
        Ok(Client::from_inner(session::start(settings, None)?))
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions::new()
    }
}

async fn established(client: Client, hosts: String, deadline: Option<Instant>) -> Result<Client> {
    let connected = async {
        let session = client.inner().trusted_session().await;
        session.map(drop).map_err(|error| {
            let why = error.detail_or("the session can't be used");
            Error::with_detail("connect", &hosts, error.code(), why)
        })
    };
    let too_late = || {
        let detail = match client.inner().hosts().describe() {
            Some(known) => format!("no server took the session in time: {known}"),
            None => "no server answered in time: are they up, and is the port right?".to_owned(),
        };
        Err(Error::with_detail("connect", &hosts, Code::OPERATION_TIMEOUT, detail))
    };
    within(deadline, connected, too_late).await?;
    check_timeouts(client.inner(), &hosts)?;
    Ok(client)
}

/// Whether the session timeout that the servers have granted can be trusted; logs where it is not what was asked for.
fn check_timeouts(inner: &ClientInner, hosts: &str) -> Result<()> {
    let options = &inner.options;
    let granted = inner.session_timeout().unwrap_or(options.session_timeout);
    let ticks = options.tick_time.map(|tick| (tick, granted));
    if let Some((tick, granted)) = ticks.filter(|(tick, granted)| *tick > *granted / 2) {
        let detail = format!(
            "a session timeout of {granted:?} can't be trusted where tickTime is {tick:?}: ask for two ticks or more"
        );
        return Err(Error::with_detail("connect", hosts, Code::BAD_ARGUMENTS, detail));
    }
    let asked = options.session_timeout;
    if granted > asked {
        log!(
            WARN,
            ?asked,
            ?granted,
            "the servers' shortest session timeout: guards are lost after less than half of it without an answer"
        );
    } else if granted < asked {
        log!(WARN, ?asked, ?granted, "the servers' longest session timeout");
    }
    Ok(())
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions")
            .field("session_timeout", &self.settings.session_timeout)
            .field("tick_time", &self.settings.tick_time)
            .field("connect_timeout", &self.connect_timeout)
            .field("operation_timeout", &self.settings.operation_timeout)
            .field("max_request", &self.settings.max_request)
            .field("session", &self.settings.session)
            .field("reopen", &self.settings.reopen)
            .field("announced_releases", &self.settings.announces_releases)
            // The secrets stay secret.
            .field("tls", &self.settings.tls)
            .field("sasl", &self.settings.sasl)
            .field("auth", &self.settings.credentials.iter().map(|c| &c.scheme).collect::<Vec<_>>())
            .finish()
    }
}
