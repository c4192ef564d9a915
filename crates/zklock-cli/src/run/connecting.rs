//! Connects to the store. With `--restart` it tries until the servers answer: a service may be started before them.

use std::time::Duration;

use zklock::{Store, StoreOptions};

use super::stop::Stop;
use super::{Place, Run, SESSION_TIMEOUT};

impl Run {
    pub(super) fn connect(&mut self) -> Result<Store, Stop> {
        let at_least = self.options.grace.map_or(SESSION_TIMEOUT, |grace| grace * 5);
        let timeout = self.options.session_timeout.or(self.place.session_timeout());
        let timeout = timeout.unwrap_or(at_least.max(SESSION_TIMEOUT));
        self.asked_timeout = timeout;
        let limit = self.limit();
        let settings = match &self.place {
            Place::Servers(settings) => settings,
            Place::Elsewhere(place) => {
                let mut options = StoreOptions::new().session_timeout(timeout);
                if let Some(token) = self.options.tokens_above {
                    options = options.tokens_above(token);
                }
                let connecting = if self.options.restart {
                    place.connect(options.connect_timeout(Duration::MAX))
                } else {
                    let limit = limit.unwrap_or(self.options.servers.connect_timeout);
                    place.connect(options.connect_timeout(limit)).within(limit)
                };
                return Ok(self.meanwhile(move || connecting.wait())??);
            }
        };
        let (options, hosts) = (settings.options(timeout), settings.hosts.clone());
        if self.options.restart {
            let client = options.connect_lazily(&hosts)?;
            let connected = client.clone();
            self.meanwhile(move || connected.connected().wait())??;
            return Ok(client.into());
        }
        let connecting = options.connect(&hosts);
        let connecting = match limit {
            Some(limit) => connecting.within(limit),
            None => connecting,
        };
        Ok(self.meanwhile(move || connecting.wait())??.into())
    }

    /// The rest of `--wait`.
    pub(super) fn limit(&self) -> Option<Duration> {
        let wait = self.options.wait.filter(|wait| !wait.is_zero());
        wait.map(|wait| wait.saturating_sub(self.begun.elapsed()))
    }
}
