//! A server, a program, and a client that looks on and makes other claims.

use std::sync::Arc;
use std::time::Duration;

use test_support::{eventually, shared, unused_path};
use zklock::Client;
use zklock::zookeeper::CreateMode;
use zklock_testing::wire::RawClient;
use zklock_testing::{Proxy, Server};

use crate::driver::Driver;

pub const TIMEOUT: Duration = Duration::from_secs(120);

/// The longest that servers give. Valgrind on a busy machine lets threads wait for many seconds, and
/// a session that can't be proved alive meanwhile is lost.
pub const SESSION: Duration = Duration::from_secs(60);

/// The lock's path in all scenarios.
pub const PATH: &str = "/locks/recipe";

pub struct Scene {
    pub program: Driver,
    pub zk: Client,
    /// Where handles connect: it can end a session so that the C client is certain to hear of it at once.
    pub proxy: Proxy,
    pub server: Arc<Server>,
    /// Below which all of it is.
    chroot: String,
}

impl Scene {
    pub fn new() -> Scene {
        Scene::with(Driver::start())
    }

    pub fn with(program: Driver) -> Scene {
        let chroot = unused_path();
        let mut raw = RawClient::connect(shared().addr(), SESSION).unwrap();
        raw.create(&chroot, b"").unwrap();
        Scene::at(Arc::clone(shared()), chroot, program)
    }

    /// With a server that may be stopped, and no other znodes than its own.
    pub fn on_own_server(program: Driver) -> Scene {
        Scene::at(Arc::new(Server::start().unwrap()), String::new(), program)
    }

    fn at(server: Arc<Server>, chroot: String, program: Driver) -> Scene {
        let options = Client::options().session_timeout(SESSION);
        let zk = options.connect(&(server.hosts() + &chroot)).wait().unwrap();
        let proxy = Proxy::start(server.addr()).unwrap();
        Scene { program, zk, proxy, server, chroot }
    }

    /// The host string by way of that proxy.
    pub fn hosts_by(&self, proxy: &Proxy) -> String {
        proxy.hosts() + &self.chroot
    }

    /// The host string of the server itself.
    pub fn hosts(&self) -> String {
        self.server.hosts() + &self.chroot
    }

    pub fn open(&mut self, handle: char) {
        self.open_at(handle, &self.hosts_by(&self.proxy));
    }

    pub fn open_at(&mut self, handle: char, hosts: &str) {
        self.open_for(handle, hosts, SESSION);
    }

    /// The C client may take two thirds of its session's timeout to notice that a server which has
    /// accepted its connection does not answer: shorter where servers restart.
    ///
    /// Locks with the handle once: the first lock returns without its place if the handle's thread takes two seconds to
    /// answer, as it can on a busy machine.
    pub fn open_for(&mut self, handle: char, hosts: &str, timeout: Duration) {
        self.open_only(handle, hosts, timeout);
        self.program.expect(&format!("init z {handle} /locks/first"), "0");
        self.program.ask("lock z");
        self.await_owner('z', true);
        self.program.expect("unlock z", "0");
        self.program.expect("destroy z", "0");
    }

    pub fn open_only(&mut self, handle: char, hosts: &str, timeout: Duration) {
        self.program.expect(&format!("open {handle} {hosts} {}", timeout.as_millis()), "ok");
    }

    /// Opens one handle, `a`, and initialises mutexes on it.
    pub fn on_one_handle(mutexes: &str) -> Scene {
        let mut scene = Scene::new();
        scene.open('a');
        scene.init(mutexes, 'a');
        scene
    }

    pub fn init(&mut self, mutexes: &str, handle: char) {
        for mutex in mutexes.chars() {
            self.program.expect(&format!("init {mutex} {handle} {PATH}"), "0");
        }
    }

    /// Locks the first, which then owns, and has the others wait in this order.
    pub fn line_up(&mut self, mutexes: &str) {
        for (n, mutex) in mutexes.chars().enumerate() {
            self.program.expect(&format!("lock {mutex}"), "0");
            self.await_owner(mutex, n == 0);
        }
    }

    /// The claims, first in the queue first.
    pub fn claims(&self) -> Vec<String> {
        self.look().unwrap()
    }

    fn look(&self) -> zklock::Result<Vec<String>> {
        let mut claims = match self.zk.children(PATH).wait() {
            Err(error) if error.is_no_node() => Vec::new(),
            there => there?.names,
        };
        claims.sort_by_key(|name| suffix(name));
        Ok(claims)
    }

    /// The name of a mutex's claim, as the struct has it.
    pub fn id(&mut self, mutex: char) -> String {
        let fields = self.program.ask(&format!("fields {mutex}"));
        fields.split(' ').nth(1).unwrap().to_owned()
    }

    /// A claim of another program's: by the recipe's rules, the lowest suffix owns.
    pub fn old_claim(&self) -> String {
        self.old_claim_at(PATH)
    }

    /// The same on another lock's path.
    pub fn old_claim_at(&self, path: &str) -> String {
        self.zk.make_path(path).wait().unwrap();
        let mode = CreateMode::EphemeralSequential;
        let node = format!("{path}/x-00000000000000aa-");
        let created = self.zk.create(&node, b"", mode).wait().unwrap();
        created.path.rsplit('/').next().unwrap().to_owned()
    }

    pub fn delete(&self, claim: &str) {
        self.zk.delete(&format!("{PATH}/{claim}"), None).wait().unwrap();
    }

    /// Ends the session of a handle that was opened here by `open`, behind its back.
    pub fn expire(&mut self, handle: char) {
        let said = self.program.ask(&format!("session {handle}"));
        let id = u64::from_str_radix(&said, 16).unwrap() as i64;
        self.proxy.expire_session(id).unwrap();
    }

    /// Waits until it owns, or does not.
    #[track_caller]
    pub fn await_owner(&mut self, mutex: char, owns: bool) {
        self.program.expect(&format!("await_owner {mutex} {}", u8::from(owns)), "ok");
    }

    /// Waits until the completion has been told so often.
    #[track_caller]
    pub fn await_told(&mut self, mutex: char, rc: i32, count: usize) {
        self.program.expect(&format!("await {mutex} {rc} {count}"), "ok");
    }

    #[track_caller]
    pub fn expect_told(&mut self, mutex: char, told: &str) {
        self.program.expect(&format!("told {mutex}"), told);
    }

    /// Has the mutex locked in vain: the program is notified once, inside the call, and can ask why.
    #[track_caller]
    pub fn expect_refused(&mut self, mutex: char, error: &str) {
        let told = self.program.ask(&format!("told {mutex}"));
        self.program.expect(&format!("lock {mutex}"), "0");
        self.program.expect(&format!("error {mutex}"), error);
        self.program.expect(&format!("isowner {mutex}"), "0");
        self.expect_told(mutex, format!("{told} 1c").trim());
    }

    #[track_caller]
    pub fn await_claims(&self, count: usize) {
        // Its own connection may be lost where a server restarts.
        eventually("the claims", || self.look().is_ok_and(|claims| claims.len() == count));
    }
}

/// What the recipe goes by: the number after the last dash.
fn suffix(name: &str) -> Option<String> {
    name.rsplit_once('-').map(|(_, number)| number.to_owned())
}
