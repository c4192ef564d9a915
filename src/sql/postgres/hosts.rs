//! Connects to the first host of an address that answers.

use std::pin::Pin;
use std::time::Duration;

use futures_lite::{Stream, stream};
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Socket};

use super::answer::{NoAnswer, within};
use crate::tls::Tls;

/// The server's messages. Requests are sent and answered only while this is polled.
type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, Error>> + Send>>;
type Connected = (Client, Messages);

/// The server's address, and how to connect to it.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) config: Config,
    #[cfg_attr(not(feature = "postgres-tls"), allow(dead_code, reason = "there is none"))]
    pub(super) tls: Option<Tls>,
}

impl Place {
    /// Tries each address of each host for as long as the address says (`connect_timeout`), or else for `limit`: the driver
    /// limits no more than its TCP connection, and a frozen server accepts that.
    pub(super) async fn connect(&self, limit: Duration) -> Result<Connected, NoAnswer> {
        let config = &self.config;
        let limit = config
            .get_connect_timeout()
            .filter(|limit| !limit.is_zero())
            .map_or(limit, |limit| *limit);
        let mut hosts = each_host(config);
        if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            fastrand::shuffle(&mut hosts);
        }
        let mut failed = None;
        for host in &hosts {
            for address in each_address(host, limit).await {
                match self.connect_to(&address, limit).await {
                    Ok(connected) => return Ok(connected),
                    Err(failure) => failed = Some(failure),
                }
            }
        }
        match failed {
            Some(failure) => Err(failure),
            None => self.connect_to(config, limit).await,
        }
    }

    /// Connects with the current files.
    #[cfg(feature = "postgres-tls")]
    async fn connect_to(&self, address: &Config, limit: Duration) -> Result<Connected, NoAnswer> {
        let Some(tls) = &self.tls else { return connect(address, NoTls, limit).await };
        let mut tls = crate::leased::tls::config(tls).map_err(NoAnswer::lost)?;
        // For servers that are asked for TLS at once (`sslnegotiation=direct`).
        tls.alpn_protocols = vec![b"postgresql".to_vec()];
        connect(address, tokio_postgres_rustls::MakeRustlsConnect::new(tls), limit).await
    }

    #[cfg(not(feature = "postgres-tls"))]
    async fn connect_to(&self, address: &Config, limit: Duration) -> Result<Connected, NoAnswer> {
        connect(address, NoTls, limit).await
    }
}

async fn connect<T>(address: &Config, tls: T, limit: Duration) -> Result<Connected, NoAnswer>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, mut connection) = within(limit, address.connect(tls)).await?;
    let messages = stream::poll_fn(move |context| connection.poll_message(context));
    Ok((client, Box::pin(messages)))
}

/// The host, once for each address of its name. What is no name, or does not resolve, is left to the driver.
async fn each_address(host: &Config, limit: Duration) -> Vec<Config> {
    let name = match host.get_hosts() {
        [Host::Tcp(name)] if host.get_hostaddrs().is_empty() => name,
        _ => return vec![host.clone()],
    };
    let port = host.get_ports().first().copied().unwrap_or(5432);
    let found = tokio::time::timeout(limit, tokio::net::lookup_host((&**name, port))).await;
    let found: Vec<_> = found.ok().and_then(Result::ok).into_iter().flatten().collect();
    if found.len() < 2 {
        return vec![host.clone()];
    }
    let at = |address: std::net::SocketAddr| {
        let mut one = without_hosts(host);
        one.host(name).hostaddr(address.ip()).port(port);
        one
    };
    found.into_iter().map(at).collect()
}

/// The address, once for each of its hosts. If the numbers of hosts and ports do not match, the driver reports that.
fn each_host(config: &Config) -> Vec<Config> {
    let (names, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let number = names.len().max(addresses.len());
    let is_one_each = |length: usize| length == 0 || length == number;
    if number < 2
        || !is_one_each(names.len())
        || !is_one_each(addresses.len())
        || !(ports.len() == 1 || is_one_each(ports.len()))
    {
        return vec![config.clone()];
    }
    let one = |at: usize| {
        let mut one = without_hosts(config);
        match names.get(at) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(at) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(at).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..number).map(one).collect()
}

/// All that an address says but its hosts and ports, which the driver lets nobody take away.
fn without_hosts(config: &Config) -> Config {
    let mut same = Config::new();
    same.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    config.get_user().map(|user| same.user(user));
    config.get_password().map(|password| same.password(password));
    config.get_dbname().map(|name| same.dbname(name));
    config.get_options().map(|options| same.options(options));
    config.get_application_name().map(|name| same.application_name(name));
    config.get_connect_timeout().map(|limit| same.connect_timeout(*limit));
    config.get_tcp_user_timeout().map(|limit| same.tcp_user_timeout(*limit));
    config.get_keepalives_interval().map(|interval| same.keepalives_interval(interval));
    config.get_keepalives_retries().map(|retries| same.keepalives_retries(retries));
    same
}

#[cfg(all(test, not(zklock_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_all_else_that_the_address_says() {
        const REST: &str = "user=app password=secret dbname=locks options='-c search_path=a' application_name=x \
             sslmode=require sslnegotiation=direct connect_timeout=7 tcp_user_timeout=8 keepalives=0 \
             keepalives_idle=9 keepalives_interval=10 keepalives_retries=11 target_session_attrs=read-write \
             channel_binding=disable load_balance_hosts=random";
        let with = |hosts: &str| format!("{hosts} {REST}").parse::<Config>().unwrap();
        let two = with("host=a,/run/b hostaddr=192.0.2.1,192.0.2.2 port=1,2");
        let [first, second] =
            ["host=a hostaddr=192.0.2.1 port=1", "host=/run/b hostaddr=192.0.2.2 port=2"].map(with);
        assert_eq!(each_host(&two), [first, second]);
        let ported = each_host(&with("host=a,b port=3"));
        assert_eq!(ported, ["host=a port=3", "host=b port=3"].map(with));
        // The driver reports the wrong number of ports.
        let wrong = with("host=a,b port=1,2,3");
        assert_eq!(each_host(&wrong), std::slice::from_ref(&wrong));
    }
}
