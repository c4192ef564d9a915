//! What a worker works with, case after case.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zklock::Client;
use zklock_testing::{Proxy, Server};

use crate::recipe::Recipe;
use crate::scenario::{Outcome, Scenario, TIMEOUT};
use crate::tree::Tree;

pub struct Bench {
    pub server: Arc<Server>,
    /// Before the client whose operations are tested, and nobody else.
    pub proxy: Arc<Proxy>,
    /// Before whoever comes next.
    pub aside: Arc<Proxy>,
    pub tree: Arc<Tree>,
    /// Whoever comes next, and one who announces releases.
    others: [Client; 2],
}

impl Bench {
    pub fn at(server: Arc<Server>) -> Bench {
        let proxy = Arc::new(Proxy::start(server.addr()).unwrap());
        let aside = Arc::new(Proxy::start(server.addr()).unwrap());
        let tree = Arc::new(Tree::behind(&aside));
        let options = Client::options().session_timeout(Duration::from_secs(60));
        let options = options.operation_timeout(TIMEOUT).connect_timeout(TIMEOUT);
        let others = [false, true].map(|announced| {
            options.clone().announced_releases(announced).connect(&aside.hosts()).wait().unwrap()
        });
        Bench { server, proxy, aside, tree, others }
    }

    pub fn other(&self, recipe: &Recipe) -> &Client {
        &self.others[usize::from(recipe.is_announced())]
    }

    /// A fresh path and a fresh client.
    pub fn scenario(
        &self,
        recipe: &'static Recipe,
        session_timeout: Duration,
        operation_timeout: Duration,
    ) -> Outcome<Arc<Scenario>> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let directory = format!("/{}-{}", recipe.name, NEXT.fetch_add(1, Ordering::Relaxed));
        let options = Client::options().session_timeout(session_timeout);
        let options = options.operation_timeout(operation_timeout).connect_timeout(TIMEOUT);
        let options = options.announced_releases(recipe.is_announced());
        let client = options.connect(&self.proxy.hosts()).wait();
        let client = client.map_err(|error| error.to_string())?;
        self.proxy.clear_seen();
        Scenario::new(recipe, self, directory, client)
    }
}
