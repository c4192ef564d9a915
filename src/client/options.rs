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

/// How to connect: made by [`Client::options`].
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
    /// `hosts` reads `host[:port][,host[:port]...][/chroot]`; the port defaults to 2181; IPv6
    /// addresses stand in brackets.
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
    /// `BAD_ARGUMENTS` when `hosts` can't be parsed, `OPERATION_TIMEOUT` when no server took the
    /// session in time (the error says of each host what is wrong with it), `AUTH_FAILED` when credentials were
    /// refused, `SESSION_CLOSED_REQUIRE_SASL_AUTH` when the servers take only clients that give some,
    /// `SYSTEM_ERROR` when there is no thread or no descriptor to be had: the error names the limit.
    ///
    /// # Cancellation
    /// Dropping the [`Pending`] ends the attempt, and the session if there is one already.
    pub fn connect(hosts: &str) -> Pending<Client> {
        ClientOptions::new().connect(hosts)
    }

    /// Options to connect with.
    pub fn options() -> ClientOptions {
        ClientOptions::new()
    }
}

impl ClientOptions {
    /// The defaults: a session timeout of 10 s, 10 s to connect, 15 s for an operation.
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
            announces_releases: false,
            tls: None,
            sasl: None,
        };
        ClientOptions { settings, connect_timeout: Duration::from_secs(10) }
    }

    /// The session timeout to ask for, in whole milliseconds, from 500 ms to a day; the server may grant
    /// another (see [`Client::session_timeout`]), which is logged as a warning. It is how long a lock outlives the crash of its holder; a
    /// shorter one makes pauses of this process or of the network more likely to cost the locks.
    /// A guard turns to `Lost` when the servers have proven nothing for four to six tenths of it (for
    /// more where [`tick_time`](ClientOptions::tick_time) says so).
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// The servers' `tickTime`, where it is known and less than half the session timeout.
    ///
    /// Twice in that time a server reports to its leader which sessions are alive, so it is what
    /// decides how long a guard can be trusted without an answer. Half the session timeout is
    /// assumed otherwise: servers grant no shorter sessions than of two ticks, unless their
    /// `minSessionTimeout` is set lower. **There it has to be said**: the promise that a guard is
    /// lost before another client can hold rests on it. Do not name a shorter one than the
    /// servers'.
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.settings.tick_time = Some(tick);
        self
    }

    /// How long [`connect`](ClientOptions::connect) may take in all.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an operation may take before it ends with `OPERATION_TIMEOUT`, its outcome
    /// unknown. Without a connection most operations end sooner, with `CONNECTION_LOSS`.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.operation_timeout = timeout;
        self
    }

    /// The most bytes of path, data and ACL in one request. A larger request is refused here, because a
    /// server answers one over its `jute.maxbuffer` by dropping the connection. Watched paths take three
    /// quarters of it at the most: a reconnection sets all watches again in one request.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.settings.max_request = bytes;
        self
    }

    /// Takes up a session that another handle had, instead of opening a new one. If it is over,
    /// connecting fails with `SESSION_EXPIRED`.
    ///
    /// Claims to locks that the other handle's client left on the session are deleted when they are
    /// found to stand in the way of an acquire: nobody would ever release them.
    ///
    /// # What can't be promised
    /// A session has one owner. Two live handles push each other off the servers, and while they do,
    /// each may delete what the other holds, or end the session for both. The other's guards say `Held` until it hears
    /// of that: usually for some milliseconds, until a server closes its connection or refuses a request with
    /// `SESSION_MOVED`. While it is cut off from the servers, they say so until
    /// [`Guard::remaining`](crate::Guard::remaining) has passed, up to 0.95 T. So take a session up only when the process
    /// that had it has certainly ended. Even then, only the [fencing token](crate::Guard::fencing_token) makes a write
    /// safe.
    pub fn session(mut self, session: SessionKey) -> Self {
        self.settings.session = Some(session);
        self
    }

    /// Whether a new session is opened when the present one has expired (the default). Otherwise
    /// the client is closed then.
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

    /// Whether locks that are contended for are handed over by one write and one event (off by default).
    ///
    /// With [`Strategy::Queue`](crate::Strategy::Queue), and between clients that all have this set, the next in line
    /// holds as soon as the event of the release arrives, where it asks the servers once more otherwise. For that, nobody
    /// but the holder's session may write to the claim: the session gets an identity of its own, of the scheme `digest`,
    /// with a password that nobody knows. Where others do not have it set, or do not know of it, they exclude each other all
    /// the same.
    ///
    /// What it changes besides: the servers have to accept the scheme `digest`, as they do unless it was switched off;
    /// else the client ends with `AUTH_FAILED`. And what the client creates with [`Acl::creator`](crate::zookeeper::Acl::creator)
    /// names that identity as well: with no other, nobody has access any more once the session is over. Not on a session that
    /// is [taken up](ClientOptions::session), nor on a handle that a C program owns.
    ///
    /// A waiter takes the first write to such a claim for its release. So this client refuses to write to claims, with
    /// `BAD_ARGUMENTS`, and a waiter believes a write only on a connection on which the servers have refused one that an ACL
    /// forbids. Not with `skipACL=yes`, for example: there it asks the servers once more, as without this option.
    ///
    /// # What can't be prevented
    /// A session with super rights (`X509AuthenticationProvider.superUser`, `DigestAuthenticationProvider.superDigest`) may
    /// write to every znode. If it writes to such a claim, the next waiter holds beside its holder; as it does when somebody
    /// deletes a claim by hand.
    pub fn announced_releases(mut self, announced: bool) -> Self {
        self.settings.announces_releases = announced;
        self
    }

    /// Talks to the servers by TLS, at their `secureClientPort`. Sessions that follow one that has expired do so too,
    /// and what asks the hosts how they are.
    ///
    /// The C client has to be built with it, which that of the distributions is not: turn on the feature `tls` of this
    /// crate, and set `ZOOKEEPER_SRC_DIR` to the C client's source (see `zookeeper-sys`). Otherwise connecting fails
    /// with `BAD_ARGUMENTS`, as it does for files that can't be used. A certificate that either side refuses is found
    /// out by connecting: `OPERATION_TIMEOUT`, and the error says of each host what is wrong.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// Authenticates each connection by SASL. The C client has to be built with it: turn on the feature `sasl` of this
    /// crate, and set `ZOOKEEPER_SRC_DIR` to the C client's source (see `zookeeper-sys`). Otherwise connecting fails
    /// with `BAD_ARGUMENTS`. Where the servers refuse the user or the password it fails with `AUTH_FAILED`, and so
    /// does all that is done with a client whose password they refuse later.
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

    /// Gives a client at once, which connects in the background for as long as that takes: for a program that may be
    /// started before its servers. The connect timeout does not count. Acquires of locks wait for the connection;
    /// other operations fail with `SESSION_EXPIRED` until there is a first session, for which
    /// [`Client::connected`] waits.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` for hosts that can't be parsed, or bad options; `SYSTEM_ERROR` when there is no thread to be
    /// had. What only servers can tell comes later: where they refuse the client for good, it is
    /// [`Closed`](crate::zookeeper::SessionState::Closed), and what waits fails with the reason.
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

    /// Works on a handle of the program's: its hosts, session timeout and identities are the
    /// program's too. When its session is over, so is the client.
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
    let options = inner.options();
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
